"""How much a piece of code does, as a count of calls: the same on every machine, however busy."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")


def counted(run: Callable[[], Result], *, builtins: bool = False) -> tuple[int, Result]:
    """Return how many Python functions `run` calls, with `builtins` those written in C as well, and what it returns.

    What earlier tests left is collected before, and nothing in between: finalizers and weak references call, too.
    """
    calls = 0
    kinds = ("call", "c_call") if builtins else ("call",)

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in kinds

    before, was_enabled = sys.getprofile(), gc.isenabled()
    gc.collect()
    gc.disable()
    sys.setprofile(count)
    try:
        result = run()
    finally:
        sys.setprofile(before)
        if was_enabled:
            gc.enable()
    return calls, result
