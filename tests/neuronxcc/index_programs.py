"""Random programs of index expressions: one description that NumPy evaluates and that a kernel of this package runs.

NumPy's side knows nothing of ours: it takes elements by arrays of numbers, masks by arrays of truth values, and marks
what no one has computed by NaN. A program that leaves a tensor outside of its masks raises OutOfBoundsError there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import neurontools.neuronxcc.nki.isa as nisa
import neurontools.neuronxcc.nki.language as nl

__all__ = ["OutOfBoundsError", "Program", "UndecidedError", "draw"]

UNDEFINED = np.float32(np.nan)


class OutOfBoundsError(Exception):
    """A program names elements that are not there."""


class UndecidedError(Exception):
    """A program whose result the rules of NumPy do not settle: an element written twice, shapes that a mask widens."""


@dataclass(frozen=True)
class Expr:
    """A sum of (factor, axis, extent, start) terms, a constant, and so much for each turn of the loop."""

    terms: tuple[tuple[int, int, int, int], ...]
    const: int
    loop: int
    style: int

    def bounds(self, turns: int) -> tuple[int, int]:
        reach = [factor * (extent - 1) for factor, _, extent, _ in self.terms] + [self.loop * (turns - 1)]
        return self.const + sum(min(0, one) for one in reach), self.const + sum(max(0, one) for one in reach)

    def build(self, ndim: int, turn: int, space: Any) -> Any:
        """Return the expression as a kernel writes it, of `nl` or of NumPy."""
        total: Any = None
        for factor, axis, extent, start in self.terms:
            term = space.arange(start, start + extent) if start else space.arange(extent)
            term = term[tuple(slice(None) if place == axis else None for place in range(ndim))] if ndim > 1 else term
            term = (term - start if start else term) * factor if self.style else factor * (term - start)
            total = term if total is None else total + term if self.style < 2 else term + total
        const = self.const + self.loop * turn
        return const if total is None else const + total if self.style else total + const


# A comparison is (expression, sign, number, swapped); others are joined by "&" and "|", or turned round by "~".
Condition = tuple[Any, ...]
SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip
UNARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "copy": (nl.copy, lambda a: a), "tensor_copy": (nisa.tensor_copy, lambda a: a),
    "scalar": (lambda t, **more: nisa.tensor_scalar(t, np.multiply, 2.0, **more), lambda a: a * 2),
    "relu": (lambda t, **more: nisa.activation(nl.relu, t, **more), lambda a: a), "times": (
        lambda t, **more: nl.multiply(t, 3.0, **more), lambda a: a * 3),
}  # fmt: skip
BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (nl.add, np.add), "maximum": (nl.maximum, np.maximum), "tensor_tensor": (
        lambda a, b, **more: nisa.tensor_tensor(a, b, op=nl.subtract, **more), np.subtract),
}  # fmt: skip


@dataclass(frozen=True)
class Program:
    """Inputs, and the two ways to what the program makes of them."""

    kind: str
    inputs: tuple[Any, ...]
    reference: Callable[..., Any]
    kernel: Callable[..., Any]


def _places(index: tuple[Any, ...], shape: tuple[int, ...], mask: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the numbers of each dimension and where the mask holds, all of one shape."""
    extents = np.broadcast_shapes(*(np.shape(one) for one in index))
    if mask is not None and np.broadcast_shapes(extents, np.shape(mask)) != extents:
        raise UndecidedError("a mask of more places than the index has")
    inside = np.broadcast_to(True if mask is None else mask, extents)
    arrays = [np.broadcast_to(one, extents) for one in index]
    for numbers, extent in zip(arrays, shape, strict=True):
        if ((numbers < 0) | (numbers >= extent))[inside].any():
            raise OutOfBoundsError
    return tuple(np.clip(one, 0, extent - 1) for one, extent in zip(arrays, shape, strict=True)), inside


def read(tensor: Any, index: tuple[Any, ...], mask: Any = None) -> Any:
    """Return the elements of an index, undefined outside of the mask."""
    arrays, inside = _places(index, tensor.shape, mask)
    return np.where(inside, tensor[arrays], UNDEFINED)


def write(tensor: Any, index: tuple[Any, ...], value: Any, mask: Any = None, adds: bool = False) -> None:
    """Write, or add, a value at the elements of an index, inside the mask."""
    arrays, inside = _places(index, tensor.shape, mask)
    if np.broadcast_shapes(np.shape(value), inside.shape) != inside.shape:
        raise UndecidedError("a value of more places than its target")
    value = np.broadcast_to(value, inside.shape)
    flat = np.ravel_multi_index(arrays, tensor.shape)[inside]
    if len(np.unique(flat)) != len(flat):
        raise UndecidedError("an element written twice")
    at = tuple(one[inside] for one in arrays)
    tensor[at] = tensor[at] + value[inside] if adds else value[inside]


class Draw:
    """The choices of one program."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.turns = 1
        self.extents: list[int] = []

    def of(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def axes(self, *counts: int) -> list[int]:
        """Choose the extents of the iteration: partitions first."""
        self.extents = [self.of(1, 2, 8, 16, 32, 33, 40)]
        self.extents += [self.of(1, 1, 2, 3, 5, 7) for _ in range(self.of(*counts) - 1)]
        return self.extents

    def expr(self, axes: list[int], factors: tuple[int, ...], loop: bool = True) -> Expr:
        terms = [(self.of(*factors), axis, self.extents[axis], self.of(0, 0, 2)) for axis in axes]
        if self.chance(0.3):  # an axis of one place adds nothing
            terms.append((self.of(-3, 0, 4), self.of(*range(len(self.extents))), 1, 0))
        turning = self.of(0, 1, self.extents[0]) if loop and self.turns > 1 else 0
        return Expr(tuple(terms), self.of(0, 0, 1, 5), turning, self.of(0, 1, 2))

    def index(self, chip: bool, broadcasts: bool = True, tight: float = 0.0) -> tuple[list[Expr], list[int]]:
        """Choose the expressions of a subscript, and the shape of a tensor that has room for it, mostly."""
        order = list(range(len(self.extents)))
        if not chip and self.chance(0.3):
            self.random.shuffle(order)
        groups = [[axis] for axis in order]
        if len(groups) > 2 and self.chance(0.25):
            groups[-2:] = [groups[-2] + groups[-1]]
        if self.chance(0.2):
            groups.insert(self.of(*range(int(chip), len(groups) + 1)), [])
        if broadcasts and len(groups) > 1 and self.chance(0.15):
            groups[self.of(*range(1, len(groups)))] = []
        made, shape = [], []
        for place, group in enumerate(groups):
            rows = chip and not place
            one = self.expr(group, (1,) if rows else (1, 1, 2, 3, -1, -2), not rows)
            if len(group) == 2 and self.chance(0.6):  # two axes count through one dimension
                first, second = one.terms[0], one.terms[1]
                one = Expr(((second[2], *first[1:]), (1, *second[1:]), *one.terms[2:]), one.const, one.loop, one.style)
            low, high = one.bounds(self.turns)
            const = self.of(0, 0, 32, 1) if rows else one.const - min(low, 0)
            made.append(Expr(one.terms, const, one.loop, one.style))
            low, high = made[-1].bounds(self.turns)
            shape.append(int(self.random.integers(1, high + 1)) if high and self.chance(tight)
                         else high + 1 + self.of(0, 0, 1, 3))  # fmt: skip
        return made, shape

    def mask(self, probability: float) -> Condition | None:
        if not self.chance(probability):
            return None
        result = self._compared()
        for _ in range(self.of(0, 0, 1, 2)):
            result = (self.of("&", "&", "&", "|"), result, self._compared())
        return ("~", result) if self.chance(0.1) else result

    def _compared(self) -> Condition:
        axes = sorted({self.of(*range(len(self.extents))) for _ in range(self.of(1, 1, 1, 1, 2))})
        one = self.expr(axes, (1, 1, -1, 2))
        low, high = one.bounds(self.turns)
        return one, self.of("<", "<", "<=", ">", ">=", "==", "!="), int(self.random.integers(low - 1, high + 3)), (
            self.chance(0.2))  # fmt: skip

    def holds(self, mask: Condition | None, turn: int, space: Any) -> Any:
        """Return a mask as a kernel writes it, of `nl` or of NumPy."""
        if mask is None:
            return None
        if mask[0] == "~":
            inner = self.holds(mask[1], turn, space)
            return not inner if isinstance(inner, bool) else ~inner
        if isinstance(mask[0], str):
            first, second = self.holds(mask[1], turn, space), self.holds(mask[2], turn, space)
            return first & second if mask[0] == "&" else first | second
        one, sign, bound, swapped = mask
        value = one.build(len(self.extents), turn, space)
        return SIGNS[sign](bound, value) if swapped else SIGNS[sign](value, bound)

    def keys(self, expressions: list[Expr], turn: int, space: Any) -> tuple[Any, ...]:
        return tuple(one.build(len(self.extents), turn, space) for one in expressions)

    def values(self, shape: list[int]) -> Any:
        size = int(np.prod(shape))
        return (self.random.permutation(size).reshape(shape) % 251 + 1).astype(np.float32)


def _copies(d: Draw) -> Program:
    """Load by one index, perhaps change, store by another, in the turns of a loop."""
    d.turns = d.of(1, 1, 2, 3)
    d.axes(1, 2, 2, 3, 4)
    (source, shape), (target, room) = d.index(False, tight=0.25), d.index(False, broadcasts=False)
    if d.turns > 1:  # the turns write apart
        place = d.of(*range(len(target)))
        one = target[place]
        low, high = Expr(one.terms, one.const, 0, 0).bounds(1)
        target[place] = Expr(one.terms, one.const, high - low + 1, one.style)
        room[place] += d.turns * (high - low + 1)
    loaded, stored, computed = d.mask(0.5), d.mask(0.3), d.mask(0.3)
    if d.chance(0.5):  # a mask that keeps the index inside
        for one, extent in zip(source, shape, strict=True):
            loaded = (one, "<", extent, False) if loaded is None else ("&", loaded, (one, "<", extent, False))
    if d.chance(0.5):
        stored = loaded
    op, loop = d.of(None, *UNARY), d.of(nl.affine_range, nl.sequential_range, nl.static_range)

    def reference(x: Any) -> Any:
        out = np.full(room, -7, np.float32)
        for turn in range(d.turns):
            value = read(x, d.keys(source, turn, np), d.holds(loaded, turn, np))
            if op is not None:
                where = d.holds(computed, turn, np)
                if where is not None and np.broadcast_shapes(np.shape(where), value.shape) != value.shape:
                    raise UndecidedError("a mask of more places than the value has")
                value = np.where(True if where is None else where, UNARY[op][1](value), UNDEFINED)
            write(out, d.keys(target, turn, np), value, d.holds(stored, turn, np))
        return out

    def kernel(x: Any) -> Any:
        out = nl.full(tuple(room), -7.0, nl.float32, buffer=nl.shared_hbm)
        for turn in loop(d.turns):
            value = nl.load(x[d.keys(source, turn, nl)], mask=d.holds(loaded, turn, nl))
            if op is not None:
                value = UNARY[op][0](value, mask=d.holds(computed, turn, nl))
            nl.store(out[d.keys(target, turn, nl)], value, mask=d.holds(stored, turn, nl))
        return out

    return Program("copies", (d.values(shape),), reference, kernel)


def _tiles(d: Draw) -> Program:
    """Combine parts of tiles into a part of another one."""
    d.turns = d.of(1, 1, 2)
    d.axes(2, 2, 3, 4)
    (first, one_shape), (second, other_shape) = d.index(True, tight=0.1), d.index(True, tight=0.1)
    target, room = d.index(True, broadcasts=False)
    where, op, way = d.mask(0.5), d.of(*UNARY, *BINARY), d.of("set", "add", "copy", "store")

    def reference(x: Any, y: Any, out: Any) -> Any:
        for turn in range(d.turns):
            mask = d.holds(where, turn, np)
            value = read(x, d.keys(first, turn, np), mask)
            value = UNARY[op][1](value) if op in UNARY else (
                BINARY[op][1](value, read(y, d.keys(second, turn, np), mask)))  # fmt: skip
            write(out, d.keys(target, turn, np), value, mask, adds=way == "add")
        return out

    def kernel(x: Any, y: Any, out: Any) -> Any:
        tiles, into = (nl.load(x), nl.load(y)), nl.load(out)
        result = nl.ndarray(out.shape, nl.float32, buffer=nl.shared_hbm)
        for turn in nl.affine_range(d.turns):
            mask, at = d.holds(where, turn, nl), d.keys(target, turn, nl)
            operands = [tiles[0][d.keys(first, turn, nl)]]
            operands += [] if op in UNARY else [tiles[1][d.keys(second, turn, nl)]]
            value = (UNARY | BINARY)[op][0](*operands, mask=mask)
            if way == "set":
                into[at] = value
            elif way == "add":
                into[at] += value
            elif way == "copy":
                into[at] = nl.copy(value, mask=mask)
            else:
                nl.store(out[at], value, mask=mask)
        if way == "store":
            return out
        nl.store(result, into)
        return result

    return Program("tiles", tuple(d.values(one) for one in (one_shape, other_shape, room)), reference, kernel)


def _folds(d: Draw) -> Program:
    """Reduce a part of a tile over some of its free axes."""
    d.axes(2, 3, 3, 4)
    index, shape = d.index(True, broadcasts=False)
    free = list(range(1, len(d.extents)))
    axes = sorted(int(one) for one in d.random.choice(free, d.of(*range(1, len(free) + 1)), replace=False))
    where, keepdims, of_isa = d.mask(0.5), d.chance(0.5), d.chance(0.5)
    name, fold, token = d.of(("sum", np.add, np.add), ("max", np.fmax, np.max), ("min", np.fmin, np.min))

    def reference(x: Any) -> Any:
        value = read(x, d.keys(index, 0, np), d.holds(where, 0, np))
        value = np.broadcast_to(value, tuple(d.extents))
        undefined = np.isnan(value).all(axis=tuple(axes), keepdims=keepdims)
        numbers = np.where(np.isnan(value), 0, value) if name == "sum" else value
        return np.where(undefined, UNDEFINED, fold.reduce(numbers, axis=tuple(axes), keepdims=keepdims))

    def kernel(x: Any) -> Any:
        part, mask = nl.load(x)[d.keys(index, 0, nl)], d.holds(where, 0, nl)
        if of_isa:
            value = nisa.tensor_reduce(token, part, axis=axes, mask=mask, keepdims=keepdims)
        else:
            value = getattr(nl, name)(part, axis=axes, mask=mask, keepdims=keepdims)
        out = nl.ndarray(value.shape, nl.float32, buffer=nl.shared_hbm)
        nl.store(out, value)
        return out

    return Program("folds", (d.values(shape),), reference, kernel)


def _products(d: Draw) -> Program:
    """Multiply or transpose parts of tiles."""
    rows, columns, width = d.of(1, 3, 16, 32, 64), d.of(1, 2, 8, 32, 40), d.of(1, 3, 8, 33)
    d.extents = [rows, columns]
    left, left_shape = d.index(True, broadcasts=False)
    right_draw = Draw(int(d.random.integers(1 << 30)))
    right_draw.extents = [rows, width]
    right, right_shape = right_draw.index(True, broadcasts=False)
    how = d.of("nc_matmul", "matmul", "matmul of a transpose", "sums", "transpose")

    def reference(x: Any, y: Any) -> Any:
        stationary, moving = read(x, d.keys(left, 0, np)), read(y, right_draw.keys(right, 0, np))
        return stationary.T if how == "transpose" else stationary.T @ moving * (2 if how == "sums" else 1)

    def kernel(x: Any, y: Any) -> Any:
        stationary, moving = nl.load(x)[d.keys(left, 0, nl)], nl.load(y)[right_draw.keys(right, 0, nl)]
        value: Any = nl.zeros((columns, width), nl.float32, buffer=nl.psum)
        if how == "nc_matmul":
            value = nl.copy(nisa.nc_matmul(stationary, moving))
        elif how == "matmul":
            value = nl.matmul(stationary, moving, transpose_x=True)
        elif how == "matmul of a transpose":
            value = nl.matmul(nl.transpose(stationary), moving)
        elif how == "transpose":
            value = nl.transpose(stationary)
        else:
            for _ in nl.affine_range(2):
                value[nl.arange(columns)[:, None], nl.arange(width)[None, :]] += nisa.nc_matmul(stationary, moving)
        out = nl.ndarray(value.shape, nl.float32, buffer=nl.shared_hbm)
        nl.store(out, value)
        return out

    return Program("products", (d.values(left_shape) % 7, d.values(right_shape) % 5), reference, kernel)


def draw(seed: int) -> Program:
    """Return the program of a seed."""
    return (_copies, _tiles, _copies, _tiles, _folds, _products)[seed % 6](Draw(seed))
