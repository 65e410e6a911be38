"""Loops of the first generation, and `loop_reduce`, which folds what each turn gives it."""

from __future__ import annotations

import ctypes
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from neurontools.neuronxcc.nki.refusals import unsupported
from neurontools.neuronxcc.nki.tile import Tile, apply, copy_into
from neurontools.nki import language as nl
from neurontools.nki.tracer import current, kernel_line, tracer
from neurontools.nki.views import complain

__all__ = ["Turn", "folded", "turns"]


# What a fold begins with: what turns that a mask leaves out contribute.
_LARGEST = 3.4028234663852886e38
_IDENTITY = {"add": 0.0, "multiply": 1.0, "maximum": -_LARGEST, "max": -_LARGEST, "minimum": _LARGEST, "min": _LARGEST}


class Turn(int):
    """The index of a loop's turn; `execution` is one for all turns of a loop that runs once through."""

    execution: object = None


# What a body may count and rename with; tiles are changed in place, and stay what they are.
_PLAIN = frozenset({int, float, bool, str, tuple, type(None)})


def _plain_variables(frame: FrameType) -> dict[str, Any]:
    return {name: value for name, value in frame.f_locals.items() if type(value) in _PLAIN}


def _restore(frame: FrameType, before: dict[str, Any]) -> None:
    """Give the variables of a kernel their values from before a turn of its loop."""
    current = frame.f_locals
    changed = {name: value for name, value in before.items()
               if name in current and type(current[name]) in _PLAIN and current[name] is not value}  # fmt: skip
    if changed:
        current.update(changed)
        if sys.version_info < (3, 13):  # from then on, the mapping is the frame's own
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def turns(function: Callable[..., Any], once: bool) -> Callable[..., Iterator[Turn]]:
    """Return a loop whose indices know which loop they are of.

    The compiler of the first generation traced the body of a loop `once`: a number that it changes at its end, for
    what comes behind the loop, is the old one in the next turn.
    """

    def loop(*bounds: Any, **unused: Any) -> Iterator[Turn]:
        before: dict[str, Any] = {}
        running, execution = _running(), object()
        named = {name: unused[name] for name in ("start", "stop", "step") if name in unused}
        try:
            for number, index in enumerate(function(*bounds, **named)):
                kernel = sys._getframe(1) if once else None
                if kernel is not None and number:
                    _restore(kernel, before)
                elif kernel is not None:
                    before = _plain_variables(kernel)
                del kernel
                turn = running[execution] = Turn(index)
                turn.execution = execution
                yield turn
        finally:  # a loop that is left ends here too
            running.pop(execution, None)

    loop.__name__ = loop.__qualname__ = function.__name__
    loop.__doc__ = f"Return the indices of a loop, as `nl.{function.__name__}` of the present generation does."
    return loop


def _running() -> dict[object, Turn]:
    """Return the turns of the kernel that run now, by the execution of their loop, the outermost first."""
    tracing = current()
    found: dict[object, Turn] = {} if tracing is None else tracing.cache.setdefault("turns", {})
    return found


class _Site:
    """One place of a kernel that folds: a sum for each turn of the loops that it does not fold over.

    What no loop of ours tells apart, the order of calls in a turn does.
    """

    def __init__(self) -> None:
        self.execution: object = None
        self.turn: tuple[Turn, ...] = ()
        self.calls: Counter[tuple[int, ...]] = Counter()
        self.sums: dict[tuple[tuple[int, ...], int], Tile] = {}

    def place(self, turn: tuple[Turn, ...]) -> tuple[tuple[int, ...], int]:
        """Return which of the sums a call of this turn adds to; another run through the loops begins anew."""
        running = _running().values()
        folding = [one for one in running if any(one is index for index in turn)]
        if len(folding) != len(turn):
            raise complain("loop_reduce: loop_indices must be those of loops that run")
        if folding[0].execution is not self.execution:
            self.execution, self.sums = folding[0].execution, {}
        if len(self.turn) != len(turn) or any(a is not b for a, b in zip(self.turn, turn, strict=True)):
            self.turn, self.calls = turn, Counter()
        others = tuple(int(one) for one in running if not any(one is index for index in turn))
        self.calls[others] += 1
        return others, self.calls[others]


def folded(x: Tile, op: Any, loop_indices: Any, dtype: Any, mask: Any) -> Tile:
    """Return op over this turn's x and that of the turns before; a turn that an `if` leaves out adds nothing."""
    turn = tuple(loop_indices)
    if not turn or not all(isinstance(one, Turn) for one in turn):
        raise complain("loop_reduce: loop_indices must be the indices of loops")
    name = getattr(getattr(op, "plain", op), "name", getattr(op, "__name__", ""))
    function = getattr(nl, {"max": "maximum", "min": "minimum"}.get(name, name), None)
    if name not in _IDENTITY or function is None:
        raise unsupported(f"loop_reduce with op={op!r}")
    sites = tracer().cache
    site = sites.setdefault(("loop_reduce", kernel_line()), _Site())
    place = site.place(turn)
    so_far = site.sums.get(place)
    if so_far is None:
        so_far = site.sums[place] = Tile(nl.full(x.shape, _IDENTITY[name], nl.float32))
        copy_into(so_far, x, mask)
    else:
        copy_into(so_far, apply(function, None, so_far, x), mask)
    return apply(lambda one: nl.copy(one, dtype=dtype or x.dtype), None, so_far)
