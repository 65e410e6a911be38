"""What an ISA call returns: a handle to the operation it appended."""

from __future__ import annotations

from typing import Any

from neurontools.builder.trace import LoopOp
from neurontools.nki.objects import NKIObject
from neurontools.nki.tracer import Tracer, tracer
from neurontools.nki.views import complain

__all__ = ["NkiInstruction"]


class NkiInstruction(NKIObject):
    """Handle of a traced operation (`op`, a value of `neurontools.builder.trace`)."""

    __slots__ = ("op",)

    def __init__(self, handle: Any) -> None:
        self.op = handle
        if handle is not None:
            name = handle.name
            if name is not None and name.__class__ is not str and not isinstance(name, str):
                raise tracer().unnamed(name)

    def __repr__(self) -> str:
        what = getattr(self.op, "instruction", type(self.op)).__name__
        return f"<instruction {what}, which is no tile: its result is in dst>"

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction:
        """Let this instruction begin when the producers, which stand before it, are complete; return it.

        All stand in the same loop of the device, or a producer in one around it.
        """
        t = tracer()
        own = _number(t, self)
        for producer in producers:
            if not isinstance(producer, NkiInstruction):
                raise complain(f"depends_on: {producer!r} is no instruction")
            number = _number(t, producer)
            if number >= own:
                raise complain("depends_on: the producer does not stand before the instruction that waits for it")
            if any(first < number < last and not first < own < last for first, last in _loops(t)):
                raise complain("depends_on: the producer stands in a loop on the device that the other is not in")
            t.trace.after.setdefault(own, set()).add(number)
        return self


def _number(t: Tracer, instruction: NkiInstruction) -> int:
    """Return the number of an instruction's operation; handles are asked for soon after they are made."""
    ops = t.ops
    # from the end, since handles are asked for soon after they are made
    for number in range(len(ops) - 1, -1, -1):
        if ops[number] is instruction.op:
            return number
    raise complain("depends_on: the instruction belongs to another launch of a kernel")


def _loops(t: Tracer) -> list[tuple[int, int]]:
    """Return the first and last operation of every loop so far; one that is open goes on."""
    found, open_loops = [], []
    for number in t.loop_edges:
        if isinstance(t.ops[number], LoopOp):
            open_loops.append(number)
        else:
            found.append((open_loops.pop(), number))
    return found + [(first, len(t.ops)) for first in open_loops]
