"""Source lines and words around where engines stand, ten at a time."""

from __future__ import annotations

from formats.errors import NotFoundError
from formats.neff import SourceLocation
from neurontools.debugger import listing
from neurontools.debugger.breakpoints import Breakpoints
from neurontools.debugger.errors import UsageError
from neurontools.debugger.execution import Execution
from neurontools.debugger.names import parse_number, positive
from neurontools.debugger.place import index_of, place_of
from neurontools.debugger.results import Disassembly, DisassemblyRow, Listing

__all__ = ["SourceView"]

_MOST = 10_000  # lines of one listing
_SOON = 16  # words after the present one that may say which file an engine is about to be in


class SourceView:
    """Lists source lines and words; it remembers what was listed last, from where a listing goes on."""

    def __init__(self, execution: Execution, breakpoints: Breakpoints) -> None:
        self._execution, self._breakpoints = execution, breakpoints
        self._listed: tuple[str, int] | None = None
        self._bare: dict[tuple[int, str], int] = {}  # how many words of an engine, from its first on, name no line

    def list_source(self, around: str | int | None = None, count: int = 10, *, remember: bool = True) -> Listing:
        """Return source lines around "FILE:LINE", a line, a function, or the focus engine; then those after the last.

        "20,25" and "FILE:20,25" are from one line to another.

        Without `remember`, the next call goes on from where the one before this left off.
        """
        positive(count)
        if around is None and self._listed is not None and remember:
            file, first = self._listed
        elif isinstance(around, str) and "," in around:
            begin, _, last = around.rpartition(",")
            file, first = self._place(begin.strip())
            end = parse_number(last.strip(), "a line") if last.strip() else first + count - 1
            if end < first:
                raise UsageError(f"the last line, {end}, comes before the first, {first}")
            count = min(end - first + 1, _MOST)
        else:
            file, line = self._place(around)
            first = max(1, line - count // 2)
        found = self._lines(file, first, count)
        if remember:
            self._listed = file, first + count
        return found

    def _lines(self, file: str, first: int, count: int) -> Listing:
        here = self._execution
        lines = here.source_lines(file)
        if first > len(lines):
            raise NotFoundError(f"{file} has {len(lines)} lines")
        return listing.listing(here.device, here.program, self._breakpoints, file, lines, first, count)

    def forget_listing(self) -> None:
        """Let the next `list_source` begin around the focus engine again."""
        self._listed = None

    def _place(self, around: str | int | None) -> tuple[str, int]:
        core, name = self._execution.focus
        function = self._execution.program.function_lines(around) if isinstance(around, str) else None
        if function is not None:
            return function
        if around is None or isinstance(around, int) or ":" not in around:
            here = self._near(core, name)
            if here is None or here.file is None:
                raise NotFoundError(f"the file names no source line for {name}")
            return here.file, (here.line or 1) if around is None else parse_number(str(around), "a line or FILE:LINE")
        file, _, line = around.rpartition(":")
        return self._execution.program.find_file(file), parse_number(line, "a line")

    def _near(self, core: int, name: str) -> SourceLocation | None:
        """Return the line of the word where an engine stands, else of the last one before it, else of one soon."""
        engine = self._execution.device.cores[core].engines[name]
        place = min(place_of(self._execution.device, engine), engine.count - 1)
        bare = self._bare.get((core, name), 0)
        for index in (*range(place, bare - 1, -1), *range(place + 1, min(place + 1 + _SOON, engine.count))):
            source = self._execution.program.source(core, name, engine.words[index].pc)
            if source is not None:
                return source
        self._bare[core, name] = max(bare, place + 1)
        return None

    # --- words -------------------------------------------------------------------------------------------------------

    def disassemble(
        self, engine: str | None = None, around: int | None = None, count: int = 10, core: int | None = None
    ) -> Disassembly:
        """Return words around a pc, else around where the engine stands, and whether their waits hold now."""
        positive(count)
        number, name = self._execution.engine(engine, core)
        found = self._execution.device.cores[number].engines[name]
        if around is None:
            index = min(place_of(self._execution.device, found), max(found.count - 1, 0))
        else:
            index = index_of(found, around)
            if index == found.count or around < 0:
                known = f"it has 0 to {found.words[-1].pc}" if found.words else "it has no words"
                raise NotFoundError(f"no {name} pc {around}; {known}")
        first = max(0, min(index - count // 2, found.count - count))
        return self._words(number, name, first, count)

    def words_from(self, pc: int, count: int, engine: str, core: int) -> tuple[DisassemblyRow, ...]:
        """Return `count` words from a pc on, none after the last, without source lines: a screen asks often."""
        first = index_of(self._execution.device.cores[core].engines[engine], pc)
        return self._words(core, engine, first, count, sources=False).rows

    def _words(self, core: int, engine: str, first: int, count: int, *, sources: bool = True) -> Disassembly:
        here = self._execution
        return listing.disassemble(
            here.device, here.program, self._breakpoints, core, engine, first, count, sources=sources
        )
