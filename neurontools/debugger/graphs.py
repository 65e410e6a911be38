"""The operations of the graph that a program was compiled from: by name, and which words each became."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from formats.errors import NotFoundError
from formats.neff.operations import Held, Operation, Operations
from neurontools.debugger.errors import UsageError

if TYPE_CHECKING:
    from emulator.loaded import LoadedWord
    from formats.neff import SourceLocation

__all__ = ["Graphs", "held_text"]

_NAME = re.compile(r"%?([^\s{}\[\]]+?)(?:\{(\d{1,9})\})?")
Words = dict[str, list[int]]


class Graphs:
    """The operations of each core's program; most files have none.

    `words` and `source` say what an engine executes and where each word comes from.
    """

    def __init__(
        self,
        found: Sequence[Callable[[], Operations | None]],
        words: Callable[[int], Iterable[tuple[int, str, list[LoadedWord]]]],
        source: Callable[[int, str, int], SourceLocation | None],
    ) -> None:
        self._found, self._streams, self._source = found, words, source
        self._words: dict[int, dict[str, Words]] = {}

    def of(self, core: int) -> Operations | None:
        """Return the operations of a core, None where the file has none."""
        return self._found[core]() if 0 <= core < len(self._found) else None

    def find(self, text: str, core: int) -> tuple[Operation, Held | None]:
        """Return the operation of "%NAME" or "%PATH/NAME", and its result.

        "{1}" behind it chooses another result than the first. Raises NotFoundError, UsageError for what is no name.
        """
        operations = self.of(core)
        if operations is None:
            raise NotFoundError(f"no operation {text}: the file has no graph, it was not compiled from one here")
        matched = _NAME.fullmatch(text)
        if matched is None:
            raise UsageError(f"{text!r} is not a %OPERATION")
        path, _, name = matched[1].rpartition("/")
        rows = [row for row in operations.by_name.get(name, ()) if not path or row.path == path]
        if not rows:
            near = get_close_matches(name, operations.by_name, n=3) or list(operations.by_name)[:8]
            raise NotFoundError(f"no operation %{matched[1]}; there is {', '.join('%' + one for one in near)}")
        if len(rows) > 1:
            raise NotFoundError(f"%{name} may be {' or '.join('%' + row.key for row in rows)}")
        number = int(matched[2] or 0)
        if matched[2] and number >= len(rows[0].results):
            raise NotFoundError(f"%{name} has {len(rows[0].results)} results")
        return rows[0], rows[0].results[number] if rows[0].results else None

    def all_words(self, core: int) -> dict[str, Words]:
        """Return, by operation, the pcs of its words by engine.

        Waits and table loads, which the builder puts where they fit, count only where an operation has no others.
        """
        if core not in self._words:
            own: dict[str, Words] = {}
            added: dict[str, Words] = {}
            if self.of(core) is not None:
                for number, engine, words in self._streams(core):
                    for loaded in words:
                        source = self._source(number, engine, loaded.pc)
                        if source is not None and source.operation is not None:
                            kind = own if source.operation == source.name else added
                            kind.setdefault(source.operation, {}).setdefault(engine, []).append(loaded.pc)
            self._words[core] = {**added, **own}
        return self._words[core]

    def words(self, core: int, name: str) -> Words:
        """Return the pcs of an operation's words by engine; NotFoundError says what became of one without any."""
        found = self.all_words(core).get(name)
        if found:  # also of a body that is called from several places
            return found
        row, held = self.find(f"%{name}", core)
        found = self.all_words(core).get(row.name)
        if found:
            return found
        raise NotFoundError(f"%{row.name} has no instructions of its own: {_fate(held)}")


def _fate(held: Held | None) -> str:
    """Return what became of an operation without instructions."""
    if held is not None and held.by:
        return f"it is what %{held.by} makes, seen in another way"
    return f"it {held_text(held)}"


def held_text(held: Held | None) -> str:
    """Return where a result lies, to stand behind "it"."""
    if held is None:
        return "became part of other operations"
    if held.tensor:
        return f"lies in tensor {held.tensor}"
    if held.number is not None:
        return f"is {held.number:.9g} throughout"
    tiles = len({one.tile for one in held.pieces})
    return f"lies in {tiles} tile{'s' if tiles != 1 else ''}" if tiles else "became part of other operations"
