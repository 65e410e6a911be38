"""Index expressions (`nl.arange(128)[:, None] * 2 + 3`) and the masks that comparisons of them make."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from neurontools.neuronxcc.nki.refusals import unsupported
from neurontools.neuronxcc.nki.truth import asked, joined
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.tracer import kernel_place
from neurontools.nki.views import complain

__all__ = ["Grid", "Index", "Mask", "arange", "mgrid"]

# Terms that a mask may have; a `~` of many comparisons makes a product of them.
_MOST_TERMS = 64


class _NoNumberError(NkiValidationError, TypeError):
    """An index expression where Python wants one number."""


def _integer(value: Any) -> int | None:
    if isinstance(value, Index):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _shown(value: Any) -> str:
    if isinstance(value, Index):
        return "an index expression"
    return f"a {type(value).__name__}" if hasattr(value, "shape") else repr(value)


class Index:
    """An affine expression over the axes of an iteration: `const` plus, for each axis, coefficient times place.

    `axes` maps the number of an axis, of `ndim`, to (coefficient, extent). On an axis of one place nothing moves, so
    its coefficient is 0: it may meet a longer axis, whose places it must not scale.
    """

    __array_ufunc__ = None  # so that NumPy's numbers leave `number * index` to the index

    def __init__(self, axes: Mapping[int, tuple[int, int]], const: int, ndim: int) -> None:
        self.axes = {axis: (coefficient if extent != 1 else 0, extent)
                     for axis, (coefficient, extent) in axes.items()}  # fmt: skip
        self.const = const
        self.ndim = ndim

    def __repr__(self) -> str:
        return f"<index expression of shape {self.shape}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents, 1 for the axes that the expression does not depend on."""
        return tuple(self.axes.get(axis, (0, 1))[1] for axis in range(self.ndim))

    @property
    def varies(self) -> bool:
        """Return whether the value is not the same at every place."""
        return any(coefficient for coefficient, _ in self.axes.values())

    def bounds(self) -> tuple[int, int]:
        """Return the least and the largest value."""
        reach = [coefficient * (extent - 1) for coefficient, extent in self.axes.values()]
        return self.const + sum(min(0, one) for one in reach), self.const + sum(max(0, one) for one in reach)

    def over(self, ndim: int) -> Index:
        """Return the expression over more axes; NumPy's rule: the last axes are the same."""
        shift = ndim - self.ndim
        return Index({axis + shift: one for axis, one in self.axes.items()}, self.const, ndim)

    def __getitem__(self, key: Any) -> Index:
        keys = key if isinstance(key, tuple) else (key,)
        axes: dict[int, tuple[int, int]] = {}
        old = 0
        for new, one in enumerate(keys):
            if one is None:
                continue
            if one != slice(None):
                raise complain(f"an index expression takes only : and None, not {one!r}")
            if old in self.axes:
                axes[new] = self.axes[old]
            old += 1
        if old != self.ndim:
            raise complain(f"an index expression of {self.ndim} dimensions is indexed by {old}")
        return Index(axes, self.const, len(keys))

    def _plus(self, other: Any, sign: int) -> Any:
        number = _integer(other)
        if number is not None:
            return Index(self.axes, self.const + sign * number, self.ndim)
        if not isinstance(other, Index):
            raise unsupported(f"an index expression plus {_shown(other)}, which is no whole number,")
        ndim = max(self.ndim, other.ndim)
        mine, theirs = self.over(ndim), other.over(ndim)
        axes = dict(mine.axes)
        for axis, (coefficient, extent) in theirs.axes.items():
            before, its = axes.get(axis, (0, extent))
            if its != extent and 1 not in (its, extent):
                raise complain(f"index expressions of {its} and {extent} places do not go together")
            axes[axis] = before + sign * coefficient, max(its, extent)
        return Index(axes, mine.const + sign * theirs.const, ndim)

    def __add__(self, other: Any) -> Any:
        return self._plus(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._plus(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._plus(other, 1)

    def __neg__(self) -> Index:
        negative: Index = self * -1
        return negative

    def __mul__(self, other: Any) -> Any:
        number = _integer(other)
        if number is None:
            raise unsupported(f"an index expression times {_shown(other)}, which is no whole number,")
        axes = {axis: (coefficient * number, extent) for axis, (coefficient, extent) in self.axes.items()}
        return Index(axes, self.const * number, self.ndim)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        """Return the quotient; what is left of the division must not reach the divisor."""
        number = _integer(other)
        if not number or number < 0:
            raise unsupported("division of an index expression by anything but a whole number above 0")
        rest = Index({axis: one for axis, one in self.axes.items() if one[0] % number}, self.const % number, self.ndim)
        low, high = rest.bounds()
        if low < 0 or high >= number:
            raise unsupported("division of an index expression that is not affine")
        axes = {axis: (0 if coefficient % number else coefficient // number, extent)
                for axis, (coefficient, extent) in self.axes.items()}  # fmt: skip
        return Index(axes, self.const // number, self.ndim)

    def __mod__(self, other: Any) -> Any:
        return self - (self // other) * other

    def _difference(self, other: Any) -> Index:
        """Return the expression less another one or a number, for a comparison with it."""
        if _integer(other) is None and not isinstance(other, Index):
            raise complain(f"an index expression is compared with {_shown(other)}; masks compare index expressions "
                           "and whole numbers, nisa.iota makes a tile of an expression's values")  # fmt: skip
        difference: Index = self - other
        return difference

    def __lt__(self, other: Any) -> Any:
        return joined(Mask([[-self._difference(other) - 1]]), sys._getframe(1))

    def __le__(self, other: Any) -> Any:
        return joined(Mask([[-self._difference(other)]]), sys._getframe(1))

    def __gt__(self, other: Any) -> Any:
        return joined(Mask([[self._difference(other) - 1]]), sys._getframe(1))

    def __ge__(self, other: Any) -> Any:
        return joined(Mask([[self._difference(other)]]), sys._getframe(1))

    def __eq__(self, other: Any) -> Any:  # noqa: PYI032  a mask, as the interface says
        one = self._difference(other)
        return joined(Mask([[one, -one]]), sys._getframe(1))

    def __ne__(self, other: Any) -> Any:  # noqa: PYI032  a mask, as the interface says
        one = self._difference(other)
        return joined(Mask([[one - 1], [-one - 1]]), sys._getframe(1))

    def __bool__(self) -> bool:
        """Refuse to be true or false: an expression has as many values as places."""
        raise complain("an index expression is neither true nor false; compare it for a mask=, or use nl.where")

    def __index__(self) -> int:
        """Refuse to be one number."""
        raise _NoNumberError(
            "an index expression is no single number; range() and lists take loop indices and numbers, at "
            + kernel_place()
        )

    __hash__ = object.__hash__


def _refused(what: str) -> Callable[..., Any]:
    def method(self: Index, *others: Any) -> Any:
        raise unsupported(f"{what} of an index expression, which has whole numbers, +, -, * with a number, // and %,")

    return method


for _operation, _what in {
    "truediv": "/", "rtruediv": "/", "rfloordiv": "//", "rmod": "%", "pow": "**", "rpow": "**", "and": "&", "rand": "&",
    "or": "|", "ror": "|", "xor": "^", "rxor": "^", "lshift": "<<", "rlshift": "<<", "rshift": ">>", "rrshift": ">>",
    "matmul": "@", "divmod": "divmod", "abs": "abs", "invert": "~", "float": "float", "iter": "iteration",
}.items():  # fmt: skip
    setattr(Index, f"__{_operation}__", _refused(_what))


class Mask:
    """Conditions on the places of an iteration: one of the `terms` holds where all its expressions are at least 0."""

    __array_ufunc__ = None  # so that NumPy's truth values leave `value & mask` to the mask
    joined = False  # by `and`, `or` or a chain of comparisons

    def __init__(self, terms: list[list[Index]]) -> None:
        # What always holds says nothing, and what never does is no alternative.
        kept = [[one for one in term if one.bounds()[0] < 0] for term in terms
                if all(one.bounds()[1] >= 0 for one in term)]  # fmt: skip
        self.terms = kept if all(kept) else [[]]
        if len(self.terms) > _MOST_TERMS:
            raise unsupported(f"a mask of more than {_MOST_TERMS} alternatives")

    @property
    def conditions(self) -> list[Index]:
        """Return expressions that are all at least 0 where the mask holds; UnsupportedError for alternatives."""
        if len(self.terms) > 1:
            raise unsupported("a mask of either of two conditions here")
        return self.terms[0] if self.terms else [Index({}, -1, 1)]

    def __and__(self, other: Any) -> Any:
        if isinstance(other, (bool, np.bool_)):
            return self if other else False
        if not isinstance(other, Mask):
            raise complain(f"a mask is joined with {_shown(other)}; masks join masks and truth values")
        return Mask([one + another for one, another in product(self.terms, other.terms)])

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        if isinstance(other, (bool, np.bool_)):
            return True if other else self
        if not isinstance(other, Mask):
            raise complain(f"a mask is joined with {_shown(other)}; masks join masks and truth values")
        return Mask(self.terms + other.terms)

    __ror__ = __or__

    def __invert__(self) -> Any:
        result = Mask([[]])
        for term in self.terms:
            result = result & Mask([[-one - 1] for one in term])
        return result

    def __bool__(self) -> bool:
        """Answer `and`, `or` and chained comparisons of masks, which are joined; anything else would drop one side."""
        goes_on = asked(self, Mask, sys._getframe(1))
        if goes_on is None:
            raise complain("a mask is neither true nor false; join masks by &, | and ~ instead of and, or and not")
        return goes_on


def arange(*bounds: int) -> Index:
    """Return the places `start` to `stop` - 1 of one axis, as range() counts them."""
    numbers = range(*bounds)
    return Index({0: (numbers.step, len(numbers))}, numbers.start, 1)


class Grid:
    """The axes of a box, one index expression each; `p`, `x`, `y`, `z`, `w` are the first ones."""

    def __init__(self, axes: list[Index]) -> None:
        self.axes = axes

    def __iter__(self) -> Iterator[Index]:
        return iter(self.axes)

    def __getitem__(self, number: int) -> Index:
        return self.axes[number]

    def __len__(self) -> int:
        return len(self.axes)


def _axis(number: int) -> Callable[[Grid], Index]:
    return lambda grid: grid.axes[number]


for _number, _name in enumerate("pxyzw"):
    setattr(Grid, _name, property(_axis(_number)))


class _Mgrid:
    """`nl.mgrid[0:128, 0:512]`."""

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        axes = []
        for number, one in enumerate(keys):
            numbers = range(one.start or 0, one.stop, one.step or 1)
            axes.append(Index({number: (numbers.step, len(numbers))}, numbers.start, len(keys)))
        return Grid(axes) if isinstance(key, tuple) else axes[0]


mgrid = _Mgrid()
