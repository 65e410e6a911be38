"""Virtual registers, of which only the device knows the value.

A register stands in a 1 x 1 tile of SBUF; the words that use it read it there when they start. Where it decides a
branch, each engine loads it into a register of its own first.
"""

from __future__ import annotations

import operator
from typing import Any

from neurontools.nki.device_loops import begin, end, while_test
from neurontools.nki.dtype import int32, uint8, uint16
from neurontools.nki.isa.checks import tensor
from neurontools.nki.isa.dma import dma_copy
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.moves import memset, tensor_copy
from neurontools.nki.isa.refusals import reject
from neurontools.nki.objects import NKIObject
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracer

__all__ = ["VirtualRegister", "register_alloc", "register_load", "register_move", "register_store"]

_UNKNOWN = (
    "the value of a VirtualRegister is not known while the kernel is traced: Python's if and int() cannot use it, and "
    "while takes a register alone as its test"
)


class VirtualRegister(NKIObject):
    """A 32-bit register; `tile` holds its value on the device."""

    __slots__ = ("frozen", "tile")

    def __init__(self, state: Any = None, frozen: bool = False) -> None:
        self.tile: NkiTensor = new_tensor(tracer(), (1, 1), int32, name="register")
        self.frozen = frozen
        if state is not None:
            _set(tracer(), "register_alloc", self, state)

    def __bool__(self) -> bool:
        """Begin the loop of `while register:`, asked the first time; end it, asked again after the body."""
        t = tracer()
        key = while_test()
        if key is None:
            raise TypeError(_UNKNOWN)
        if t.loops and t.loops[-1].key == key:
            end(t, t.loops[-1])
            return False
        begin(t, self.tile, counting=False, key=key)
        return True

    def __int__(self) -> int:
        raise TypeError(_UNKNOWN)

    def __index__(self) -> int:
        raise TypeError(_UNKNOWN)


def register_alloc(x: Any = None) -> VirtualRegister:
    """Return a new register, with a number or the element of a tensor in it where one is given."""
    return VirtualRegister(x)


def register_move(dst: VirtualRegister, src: Any = None, *, imm: Any = None) -> NkiInstruction:
    """Put a number, or another register's value, into a register."""
    t = tracer()
    if src is not None and imm is not None:
        raise reject(t, "register_move", "imm", repr(imm), "must be None where src is given")
    return _set(t, "register_move", dst, imm if src is None else src)


def register_load(dst: VirtualRegister, src: NkiTensor) -> NkiInstruction:
    """Put the one element of a tensor in HBM or SBUF into a register; of floats the bits."""
    t = tracer()
    return _set(t, "register_load", dst, tensor(t, "register_load", "src", src))


def register_store(dst: NkiTensor, src: VirtualRegister) -> NkiInstruction:
    """Put a register's value into the one element of a tensor in HBM or SBUF, of floats as their bits."""
    t = tracer()
    _register(t, "register_store", "src", src)
    return dma_copy(_element(t, "register_store", "dst", dst), src.tile)


def _register(t: Tracer, instruction: str, argument: str, value: Any) -> VirtualRegister:
    if not isinstance(value, VirtualRegister):
        raise reject(t, instruction, argument, repr(value), "must be a register from nisa.register_alloc")
    return value


def _set(t: Tracer, instruction: str, register: VirtualRegister, value: Any) -> NkiInstruction:
    tile = _register(t, instruction, "dst", register).tile
    if isinstance(value, VirtualRegister):
        return tensor_copy(tile, value.tile)
    if isinstance(value, NkiTensor):
        return dma_copy(tile, _element(t, instruction, "src", value))
    try:
        number = operator.index(value)
    except TypeError:
        raise reject(t, instruction, "src", repr(value), "must be an integer, a register or a tensor") from None
    if not -(1 << 31) <= number < 1 << 32:
        raise reject(t, instruction, "src", number, "must fit in 32 bits")
    # a number without sign has the bits of a negative one
    return memset(tile, number if number < 1 << 31 else number - (1 << 32))


def _element(t: Tracer, instruction: str, argument: str, value: Any) -> NkiTensor:
    """Return the bits of a tensor of one element: 32 as int32, fewer as an integer that keeps its sign or has none."""
    one = tensor(t, instruction, argument, value)
    if one.size != 1:
        raise reject(t, instruction, argument, f"of shape {one.shape}", "must have one element")
    if one.itemsize == int32.itemsize:
        return one.view(int32)
    return one if one.dtype.is_int else one.view(uint16 if one.itemsize == uint16.itemsize else uint8)
