"""Which function executes which instruction class, and which classes are executed elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from emulator.dtypes import Step
from emulator.scratch import arena_of, taking_from
from formats import isa
from formats.errors import UnsupportedError

__all__ = ["ELSEWHERE", "bind", "executes", "executor_of"]

Executor = Callable[[Any, Any], Step]
E = TypeVar("E", bound=Callable[..., Step])

_EXECUTORS: dict[type[isa.Instruction], Executor] = {}

# Classes without an executor, each with who carries it out instead.
ELSEWHERE: dict[type[isa.Instruction], str] = {
    isa.PseudoDmaTrigger:  "a DMA word: the loader turns it into a doorbell, emulator.dma moves the data",
    isa.PseudoDmaDirect2d: "a DMA word: the loader resolves it, emulator.dma moves the data",
    isa.DmaDirect2d:       "a DMA word: emulator.dma moves the data",
    isa.DmaIndirect:       "a DMA word: emulator.dma reads its indices and moves the data",
    isa.SendReceive:       "a DMA word: emulator.dma moves the data to the other core",
    isa.CoreBarrier:       "a wait on the other core: the sequencer carries it out with the semaphores of both",
}


def executes(cls: type[isa.Instruction]) -> Callable[[E], E]:
    """Register the decorated function as the executor of `cls`.

    It is called once per word with (word, port) and returns the step that has the word's effect.
    """
    def register(function: E) -> E:
        if cls in _EXECUTORS or cls in ELSEWHERE:
            raise TypeError(f"{cls.__name__} has an executor already")
        _EXECUTORS[cls] = function
        return function
    return register


def executor_of(cls: type[isa.Instruction]) -> Executor | None:
    """Return the executor of a class, None where it is executed elsewhere."""
    return _EXECUTORS.get(cls)


def bind(word: isa.Instruction, port: Any) -> Step:
    """Return the effect of a word as a step bound to `port`; may be run any number of times.

    Raises FormatError for operands that contradict each other, UnsupportedError for what is not modelled, and whatever
    `port` raises for operands out of bounds. A word whose meaning is unknown binds, and raises when the step runs.
    """
    executor = _EXECUTORS.get(type(word))
    if executor is None:
        reason = ELSEWHERE.get(type(word))
        raise UnsupportedError(f"{word.name} has no executor" + (f": {reason}" if reason else ""))
    with taking_from(arena_of(port.core)):
        step = executor(word, port)
    if isinstance(word, _WITHOUT_ARITHMETIC):
        return step

    def quietly() -> None:
        # Overflow, division by zero and NaN are results here, not warnings of the host.
        with np.errstate(all="ignore"):
            step()
    return quietly


# LDWEIGHTS widens, which warns of nothing; where it has to flush a product it keeps that quiet itself.
_WITHOUT_ARITHMETIC = (isa.Copy, isa.LoadWeights, isa.Drain, isa.EventSemaphore, isa.EventSemaphoreRangeClear, isa.Nop,
                       isa.Notify, isa.OpcodeCC, isa.SetOrderingMode, isa.ActTableLoad, isa.Write, isa.TensorLoad,
                       isa.TensorStore, isa.CompareBranch)
