"""Index expressions (`nl.arange(128)[:, None] * 2 + 3`) and the masks that comparisons of them make."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from neurontools.nki.errors import UnsupportedError
from neurontools.nki.tracer import kernel_place
from neurontools.nki.views import complain

__all__ = ["Grid", "Index", "Mask", "arange", "mgrid", "refuse_unknown", "unsupported"]


def unsupported(what: str) -> UnsupportedError:
    """Return the error for what the first generation allowed and this package does not, with the kernel line."""
    return UnsupportedError(f"neuronxcc.nki: {what} is not supported, at {kernel_place()}")


# Keywords that change neither results nor where they go.
_HARMLESS = frozenset({"lazy_initialization", "max_free_vec_size", "name"})


def refuse_unknown(space: dict[str, Any]) -> None:
    """Make every function of a module that takes `**unused` refuse keywords that would change what it does."""
    for name, function in list(space.items()):
        if inspect.isfunction(function) and function.__module__ == space["__name__"]:
            parameters = inspect.signature(function).parameters
            if "unused" in parameters:
                space[name] = _strict(function, frozenset(parameters) | _HARMLESS)


def _strict(function: Callable[..., Any], known: frozenset[str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def strict(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                raise unsupported(f"{function.__name__} with {name}=")
        return function(*args, **kwargs)

    return strict


def _integer(value: Any) -> int | None:
    try:
        return operator.index(value)
    except TypeError:
        return None


class Index:
    """An affine expression over the axes of an iteration: `const` plus, for each axis, coefficient times place.

    `axes` maps the number of an axis, of `ndim`, to (coefficient, extent). On an axis of one place nothing moves, so
    its coefficient is 0: it may meet a longer axis, whose places it must not scale.
    """

    def __init__(self, axes: Mapping[int, tuple[int, int]], const: int, ndim: int) -> None:
        self.axes = {axis: (coefficient if extent != 1 else 0, extent)
                     for axis, (coefficient, extent) in axes.items()}  # fmt: skip
        self.const = const
        self.ndim = ndim

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
            return NotImplemented
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
        product: Index = self * -1
        return product

    def __mul__(self, other: Any) -> Any:
        number = _integer(other)
        if number is None:
            return NotImplemented
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

    def __lt__(self, other: Any) -> Mask:
        return Mask([(other - self) - 1])

    def __le__(self, other: Any) -> Mask:
        return Mask([other - self])

    def __gt__(self, other: Any) -> Mask:
        return Mask([(self - other) - 1])

    def __ge__(self, other: Any) -> Mask:
        return Mask([self - other])

    def __eq__(self, other: Any) -> Any:  # noqa: PYI032  a mask, as the interface says
        return Mask([self - other, other - self])

    __hash__ = object.__hash__


class Mask:
    """Conditions that all hold: each an expression of at least 0."""

    def __init__(self, conditions: list[Index]) -> None:
        self.conditions = conditions

    def __and__(self, other: Any) -> Any:
        if isinstance(other, bool):
            return self if other else False
        return Mask(self.conditions + other.conditions) if isinstance(other, Mask) else NotImplemented

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        """Return the mask of either; one of them must hold nowhere, or one everywhere."""
        if isinstance(other, bool):
            return other or self
        if not isinstance(other, Mask):
            return NotImplemented
        for one, another in ((self, other), (other, self)):
            bounds = [condition.bounds() for condition in one.conditions]
            if any(high < 0 for _, high in bounds):
                return another
            if all(low >= 0 for low, _ in bounds):
                return one
        raise unsupported("a mask of either of two conditions")

    __ror__ = __or__

    def box(self, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """Return first and last + 1 place of each axis of an iteration of that shape; conditions must make a box."""
        low, high = [0] * len(shape), list(shape)
        for one in self.conditions:
            # Masks of fewer axes than the tile has speak of its first ones, the partitions and what follows.
            axes = {axis: c for axis, (c, _) in one.axes.items() if c}
            if any(axis >= len(shape) for axis in axes):
                raise unsupported(f"a mask over {one.ndim} axes on a tile of {len(shape)}")
            for axis in axes:
                if one.axes[axis][1] < shape[axis]:
                    raise complain(f"a mask over {one.axes[axis][1]} places of dimension {axis} of a tile of {shape}")
            least = one.const + sum(min(0, c * (shape[axis] - 1)) for axis, c in axes.items())
            if least >= 0:
                continue
            if len(axes) > 1:
                raise unsupported("a mask that is no box")
            if not axes:
                return tuple((0, 0) for _ in shape)
            ((axis, c),) = axes.items()
            if c > 0:
                low[axis] = max(low[axis], -(one.const // c))
            else:
                high[axis] = min(high[axis], one.const // -c + 1)
        return tuple((first, max(first, last)) for first, last in zip(low, high, strict=True))


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
