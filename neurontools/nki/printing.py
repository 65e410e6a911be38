"""What a kernel prints while it is traced: a launch of the same kernel that needs no tracing says it again."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

__all__ = ["Printed", "noticed", "say"]


class Printed:
    """The texts that a thread printed in a block; `is_text` is False where there is more to it than text."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.is_text = True

    def note(self, values: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Note a call of `print`."""
        sep, end = options.get("sep"), options.get("end")
        parts = (*values, *(one for one in (sep, end) if one is not None))
        # of what else is printed, the text may be another one the next time, as the address of an object is
        if options.keys() <= {"sep", "end"} and all(type(one) is str and " at 0x" not in one for one in parts):
            self.texts.append((" " if sep is None else sep).join(values) + ("\n" if end is None else end))
        else:
            self.is_text = False


class _StandIn:
    """Print, and note it for the blocks of the thread."""

    def __init__(self, real: Callable[..., None]) -> None:
        self.real = real
        self.blocks: dict[int, list[Printed]] = {}

    def __call__(self, *values: Any, **options: Any) -> None:
        for one in self.blocks.get(threading.get_ident(), ()):
            one.note(values, options)
        self.real(*values, **options)


_lock = threading.Lock()
_standing: list[_StandIn] = []  # in the place of `print`: one at most


def noticed(is_wanted: bool) -> AbstractContextManager[Printed]:
    """Give what this thread prints in the block; nothing is looked at where that is not wanted."""
    return _noticed() if is_wanted else nullcontext(Printed())


@contextmanager
def _noticed() -> Iterator[Printed]:
    printed, thread = Printed(), threading.get_ident()
    with _lock:
        if not _standing:
            _standing.append(_StandIn(builtins.print))
            builtins.print = _standing[0]
        stand_in = _standing[0]
        stand_in.blocks.setdefault(thread, []).append(printed)
    try:
        yield printed
    finally:
        with _lock:
            stand_in.blocks[thread].remove(printed)
            if not stand_in.blocks[thread]:
                del stand_in.blocks[thread]
            standing: object = builtins.print
            if standing is not stand_in:
                printed.is_text = False  # somebody put another one over it
            elif not stand_in.blocks:
                builtins.print = stand_in.real
            if not stand_in.blocks:
                _standing.remove(stand_in)


def say(texts: Iterable[str]) -> None:
    """Print texts again, as they were printed."""
    for text in texts:
        print(text, end="")
