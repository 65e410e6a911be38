"""Which function executes which instruction class, and which classes are executed elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from emulator.dtypes import Step
from emulator.port import Port
from emulator.scratch import arena_of, taking_from
from formats import isa
from formats.errors import UnsupportedError

__all__ = ["ELSEWHERE", "bind", "bind_unguarded", "executes", "executor_of", "is_lasting", "is_movable"]

Executor = Callable[[Any, Port], Step]
E = TypeVar("E", bound=Callable[..., Step])

_EXECUTORS: dict[type[isa.Instruction], Executor] = {}

# Classes without an executor, each with who carries it out instead.
ELSEWHERE: dict[type[isa.Instruction], str] = {cls: cls.CARRIED_OUT for cls in isa.CLASSES if cls.CARRIED_OUT}
# Classes whose executors cannot overflow, divide by zero or make a NaN.
_QUIET: set[type[isa.Instruction]] = set()
# Classes of whose words an executor asks nothing about where operands lie: views of memory are all it works on.
_MOVABLE: set[type[isa.Instruction]] = set()
# Classes whose steps hold on to memories, scratch, accumulators and the state of the Tensor engine, and to no device.
_LASTING: set[type[isa.Instruction]] = set()


def executes(
    *classes: type[isa.Instruction], quiet: bool = False, movable: bool = False, lasting: bool = False
) -> Callable[[E], E]:
    """Register the decorated function as the executor of classes.

    It is called once per word with (word, port) and returns the step that has the word's effect. A `quiet` one does no
    arithmetic of which NumPy could warn.  A `movable` one reads no address, nor the machine besides operands,
    accumulators and the names of functions: its steps do for words that differ in addresses only.  The steps of a
    `lasting` one, as of every movable one, keep neither port nor device: another device on the same memories may use
    them.
    """

    def register(function: E) -> E:
        for cls in classes:
            if cls in _EXECUTORS or cls in ELSEWHERE:
                raise TypeError(f"{cls.__name__} has an executor already")
            _EXECUTORS[cls] = function
            if quiet:
                _QUIET.add(cls)
            if movable:
                _MOVABLE.add(cls)
            if lasting or movable:
                _LASTING.add(cls)
        return function

    return register


def executor_of(cls: type[isa.Instruction]) -> Executor | None:
    """Return the executor of a class, None where it is executed elsewhere."""
    return _EXECUTORS.get(cls)


def is_movable(cls: type[isa.Instruction]) -> bool:
    """Return whether words of a class that differ in addresses only can share the steps of one of them."""
    return cls in _MOVABLE


def is_lasting(cls: type[isa.Instruction]) -> bool:
    """Return whether the steps of a class's words do for any device that has the same memories."""
    return cls in _LASTING


def bind_unguarded(word: isa.Instruction, port: Port) -> Step:
    """Return the effect of a word as `bind` does, for callers that have turned NumPy's warnings off themselves."""
    executor = _EXECUTORS.get(type(word))
    if executor is None:
        reason = ELSEWHERE.get(type(word))
        raise UnsupportedError(f"{word.name} has no executor" + (f": {reason}" if reason else ""))
    with taking_from(arena_of(port.core)):
        return executor(word, port)


def bind(word: isa.Instruction, port: Port) -> Step:
    """Return the effect of a word as a step bound to `port`; may be run any number of times.

    Raises FormatError for operands that contradict each other, UnsupportedError for what is not modelled, and whatever
    `port` raises for operands out of bounds. A word whose meaning is unknown binds, and raises when the step runs.
    """
    step = bind_unguarded(word, port)
    if type(word) in _QUIET:
        return step

    def quietly() -> None:
        # Overflow, division by zero and NaN are results here, not warnings of the host.
        with np.errstate(all="ignore"):
            step()

    return quietly
