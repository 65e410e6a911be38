"""Loops whose number of turns only the device knows. Source: the page on dynamic loops, the docstrings of nl."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from neurontools.nki import device_loops
from neurontools.nki.dtype import int32
from neurontools.nki.isa.moves import memset, tensor_copy
from neurontools.nki.isa.registers import VirtualRegister
from neurontools.nki.isa.vector import tensor_tensor
from neurontools.nki.operators import OPERATORS
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import OpenLoop, Tracer, tracer
from neurontools.nki.views import complain

__all__ = ["dynamic_range", "fori_loop", "while_loop"]


class dynamic_range:
    """Iterate on the device from `start` to `stop` (exclusive) in steps of a positive integer known while tracing.

    Bounds are integers or registers, read once. The body is traced once, with a register as the loop's variable; it
    may be written to, which does not change the loop.
    """

    def __init__(self, start: Any, stop: Any = None, step: Any = 1) -> None:
        t = tracer()
        if stop is None:
            start, stop = 0, start
        if isinstance(step, VirtualRegister):
            raise AssertionError(f"dynamic_range: step must be an int known while tracing, not {step!r}")
        try:
            self.step = operator.index(step)
        except TypeError:
            raise complain(f"dynamic_range: step is {step!r}, must be a positive int") from None
        if self.step < 1:
            raise complain(f"dynamic_range: step is {self.step}, must be at least 1")
        self._bounds = _bound(t, "start", start), _bound(t, "stop", stop)

    def __iter__(self) -> Iterator[VirtualRegister]:
        return _Turns(*self._bounds, self.step)


class _Turns:
    """The one turn that is traced: `next` begins the loop, `next` again ends it."""

    def __init__(self, start: int | VirtualRegister, stop: int | VirtualRegister, step: int) -> None:
        self.step = step
        self.loop: OpenLoop | None = None
        self.counter, self.limit, self.left, self.amount = (_tile(name) for name in ("counter", "stop", "left", "step"))
        _put(self.counter, start)
        _put(self.limit, stop)
        # a tile and no immediate: only words of two tiles are exact in 32 bits
        memset(self.amount, step)
        self._count()

    def _count(self) -> None:
        # 32-bit integers are exact on GpSimd, and wrap: bounds more than 2**31 apart are not told from empty ones.
        tensor_tensor(self.left, self.limit, self.counter, OPERATORS["subtract"])

    def __iter__(self) -> Iterator[VirtualRegister]:
        return self

    def __next__(self) -> VirtualRegister:
        t = tracer()
        if self.loop is None:
            self.loop = device_loops.begin(t, self.left, counting=True)
            index = VirtualRegister()
            tensor_copy(index.tile, self.counter)
            return index
        tensor_tensor(self.counter, self.counter, self.amount, OPERATORS["add"])
        self._count()
        device_loops.end(t, self.loop)
        raise StopIteration


def _tile(name: str) -> NkiTensor:
    return new_tensor(tracer(), (1, 1), int32, name=f"loop_{name}")


def _put(tile: NkiTensor, value: int | VirtualRegister) -> None:
    if isinstance(value, VirtualRegister):
        tensor_copy(tile, value.tile)
    else:
        memset(tile, value)


def _bound(t: Tracer, name: str, value: Any) -> int | VirtualRegister:
    if isinstance(value, VirtualRegister):
        return value
    try:
        number = operator.index(value)
    except TypeError:
        raise complain(f"dynamic_range: {name} is {value!r}, must be an int or a register") from None
    if not -(1 << 31) <= number < 1 << 31:
        raise complain(f"dynamic_range: {name} is {number}, must fit in 32 bits")
    return number


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[VirtualRegister], None], step: int = 1) -> None:
    """Call `body_fun(i)` on the device for i from `lower` to `upper` (exclusive)."""
    for index in dynamic_range(lower, upper, step):
        body_fun(index)


def while_loop(init: VirtualRegister, body_fun: Callable[[VirtualRegister], VirtualRegister]) -> None:
    """Call `register = body_fun(register)` on the device while the register, `init` at first, is not 0."""
    if not isinstance(init, VirtualRegister):
        raise complain(f"while_loop: init is {init!r}, must be a register")
    t = tracer()
    condition = _tile("condition")
    _put(condition, init)
    loop = device_loops.begin(t, condition, counting=False)
    value = VirtualRegister()
    tensor_copy(value.tile, condition)
    following = body_fun(value)
    if not isinstance(following, VirtualRegister):
        raise complain(f"while_loop: the body returned {following!r}, must be a register")
    _put(condition, following)
    device_loops.end(t, loop)
