"""What instruction words do: one executor per class, bound to a core's memory once per program counter."""

from emulator.engines import (  # noqa: F401  registers executors
    activation,
    control,
    elementwise,
    gpsimd,
    indirection,
    moves,
    mx,
    pe,
    random_words,
    reduce,
    scan,
    search,
    selection,
)
from emulator.engines.pe_state import PeState
from emulator.engines.registry import ELSEWHERE, bind, bind_unguarded, executes, executor_of

__all__ = ["ELSEWHERE", "PeState", "bind", "bind_unguarded", "executes", "executor_of"]
