"""What instruction words do: one executor per class, bound to a core's memory once per program counter."""

from emulator.engines import activation, control, elementwise, moves, pe, reduce, scan  # noqa: F401  registers executors
from emulator.engines.pe_state import PeState
from emulator.engines.registry import ELSEWHERE, bind, executes, executor_of

__all__ = ["ELSEWHERE", "PeState", "bind", "executes", "executor_of"]
