"""The program as its file has it: words, their source lines, and what a breakpoint's text refers to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from formats.engines import ENGINES
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.neff import SourceLocation
from formats.neff.operations import Operations
from formats.neff.visits import Value, Variable, Visits
from neurontools.debugger.errors import UsageError
from neurontools.debugger.graphs import Graphs
from neurontools.debugger.names import engine_name, is_engine, parse_core, parse_number
from neurontools.debugger.statements import Reader, statement_around
from neurontools.debugger.turns import DeviceTurns, places_of

if TYPE_CHECKING:
    from emulator.loaded import LoadedWord
    from emulator.machine_view import MachineView

__all__ = ["Location", "Program", "Target"]

Location = tuple[int, str, int]  # core, engine, pc

_LINE = re.compile(r"(.+):(\d{1,9})")
_OPCODE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def _no_text(file: str) -> list[str]:
    raise NotFoundError(f"no text of {file}")


class Target(NamedTuple):
    """What a text like "PE:12" or "kernel.py:88" means; fields as in `Breakpoint`."""

    kind: str
    where: str
    places: frozenset[Location] = frozenset()
    owners: frozenset[tuple[int, str]] = frozenset()


class Program:
    """Words and lines of the loaded file, by core, engine and compiler pc."""

    def __init__(
        self,
        device: MachineView,
        visits: Sequence[Callable[[], Visits | None]] = (),
        read: Reader = _no_text,
        graphs: Sequence[Callable[[], Operations | None]] = (),
    ) -> None:
        self.device = device
        self.graphs = Graphs(graphs, self.streams, self.source)
        self.turns = DeviceTurns(self.streams, self.source)
        self._read, self._read_visits = read, visits
        self._visits: dict[int, Visits | None] = {}
        self._sources: dict[Location, SourceLocation | None] = {}
        self._lines: dict[str, dict[int, dict[tuple[int, str], list[int]]]] | None = None
        self._functions: dict[str, frozenset[Location]] | None = None

    def words(self, core: int, engine: str) -> list[LoadedWord]:
        """Return the words that an engine executes."""
        return list(self.device.cores[core].engines[engine].words)

    def streams(self, core: int | None = None) -> Iterator[tuple[int, str, list[LoadedWord]]]:
        """Yield (core, engine, words) for every engine of one core or of all."""
        for each in self.device.cores:
            if core is None or each.index == core:
                for engine in ENGINES:
                    yield each.index, engine, self.words(each.index, engine)

    def text(self, core: int, engine: str, pc: int) -> str:
        """Return a word as the file has it, "" where the engine has no such pc."""
        return self.device.cores[core].text_of(engine, pc) if engine in ENGINES and pc >= 0 else ""

    def word(self, core: int, engine: str, pc: int) -> object:
        """Return a word as the engine executes it, None where it has no such pc."""
        words = self.device.cores[core].engines[engine].words
        return next((loaded.word for loaded in words if loaded.pc == pc), None)

    def source(self, core: int, engine: str, pc: int) -> SourceLocation | None:
        """Return the source line of a word, None where the file names none."""
        place = core, engine, pc
        if place not in self._sources:
            known = 0 <= core < len(self.device.cores) and engine in ENGINES and pc >= 0
            found = self.device.cores[core].source_of(engine, pc) if known else None
            self._sources[place] = found if found is not None and found.file is not None else None
        return self._sources[place]

    # --- where the kernel was ----------------------------------------------------------------------------------------

    def visits(self, core: int) -> Visits | None:
        """Return where the kernel stood when it called for the words of a core; None where the file does not say."""
        if core not in self._visits:
            self._visits[core] = self._read_visits[core]() if 0 <= core < len(self._read_visits) else None
        return self._visits[core]

    def chain(self, core: int, engine: str, pc: int) -> tuple[int, ...]:
        """Return the visit that a word comes from and those that called it, the innermost first; () where unknown."""
        known = self.visits(core)
        return () if known is None else known.chain(known.at(engine, pc))

    def iteration(self, core: int, engine: str, pc: int, before: int | None = None) -> tuple[Variable, ...]:
        """Return the turn of every loop that a word comes from: those of the kernel, and those that the device runs.

        The word is the next one of its engine after the events with a number below `before`, all without one; -1 for a
        transfer, which may be of an earlier turn of the device.
        """
        known, turns = self.visits(core), self.turns.at((core, engine, pc), before)
        visit = -1 if known is None else known.at(engine, pc)
        if known is None or visit < 0:
            return tuple(Variable("#", turn) for _, turn in turns if turn is not None)
        return known.iteration(visit, places_of(turns))

    def variables(self, core: int, engine: str, pc: int) -> dict[str, Value]:
        """Return the kernel's variables at a word; those of inner functions hide those of their callers."""
        known = self.visits(core)
        found: dict[str, Value] = {}
        for visit in reversed(self.chain(core, engine, pc)):
            assert known is not None
            found |= known.variables(visit)
        return found

    @property
    def lines(self) -> dict[str, dict[int, dict[tuple[int, str], list[int]]]]:
        """Return file -> line -> (core, engine) -> pcs where an engine begins the line, once for each visit of it.

        Lines that call functions are among them. Where the file does not tell visits, words of a line that follow each
        other are one.
        """
        if self._lines is None:
            self._lines = {}
            for core, engine, words in self.streams():
                self._add_lines(core, engine, words)
        return self._lines

    def _add_lines(self, core: int, engine: str, words: list[LoadedWord]) -> None:
        assert self._lines is not None
        known = self.visits(core)
        before: tuple[str | None, int | None] = (None, None)
        seen: set[int] = set()
        for loaded in words:
            visit = -1 if known is None else known.at(engine, loaded.pc)
            if known is not None and visit >= 0:
                # The first word of a call begins the lines of all its callers too.
                while visit >= 0 and visit not in seen:
                    seen.add(visit)
                    site = known.site(visit)
                    starts = self._lines.setdefault(site.file, {}).setdefault(site.line, {})
                    pcs = starts.setdefault((core, engine), [])
                    if not pcs or pcs[-1] != loaded.pc:
                        pcs.append(loaded.pc)
                    visit = known.parent(visit)
                before = (None, None)
                continue
            source = self.source(core, engine, loaded.pc)
            here = (source.file, source.line) if source is not None else (None, None)
            if here != before and here[0] is not None and here[1] is not None:
                starts = self._lines.setdefault(here[0], {}).setdefault(here[1], {})
                starts.setdefault((core, engine), []).append(loaded.pc)
            before = here

    @property
    def functions(self) -> dict[str, frozenset[Location]]:
        """Return the kernel's functions by name: the first word that each engine has of each call."""
        if self._functions is None:
            found: dict[str, set[Location]] = {}
            for core, engine, words in self.streams():
                known, begun = self.visits(core), set[tuple[int, str]]()
                for loaded in words if known is not None else ():
                    assert known is not None
                    for visit in known.chain(known.at(engine, loaded.pc)):
                        call = known.parent(visit), known.site(visit).function
                        if call not in begun:
                            begun.add(call)
                            found.setdefault(call[1], set()).add((core, engine, loaded.pc))
            self._functions = {name: frozenset(places) for name, places in found.items() if name}
        return self._functions

    def function_lines(self, name: str) -> tuple[str, int] | None:
        """Return the file of a function of the kernel and the first of its lines that has a word, None for no name."""
        lines = []
        for core, engine, pc in self.functions.get(name, ()):
            known = self.visits(core)
            assert known is not None
            sites = map(known.site, self.chain(core, engine, pc))
            lines += [(site.file, site.line) for site in sites if site.function == name]
        return min(lines, default=None)

    def find_file(self, text: str) -> str:
        """Return the file that a name or the end of a path means; NotFoundError where none or several do."""
        wanted = PurePath(text).parts
        found = [file for file in self.lines if file == text or PurePath(file).parts[-len(wanted) :] == wanted]
        if len(found) == 1:
            return found[0]
        if found:
            raise NotFoundError(f"{text!r} may be {' or '.join(sorted(found))}")
        raise NotFoundError(
            f"no source file {text!r}; the program comes from {', '.join(self.lines) or 'none it names'}"
        )

    # --- places ------------------------------------------------------------------------------------------------------

    def resolve(self, text: str, focus: str) -> Target:
        """Return what a breakpoint's text means; a bare number is a pc of the focus engine.

        Raises NotFoundError for what the program does not have, UsageError for text that means nothing.
        """
        core, rest = parse_core(text.strip())
        if core is not None and core >= len(self.device.cores):
            raise NotFoundError(f"no core {core}; there are {len(self.device.cores)}")
        if not rest:
            raise UsageError("break where? ENGINE:PC, FILE:LINE, PC, %OPERATION, ENGINE, QUEUE, OPCODE or FUNCTION")
        if rest.startswith("%"):
            return self._operation(core, rest[1:])
        if rest[0].isdigit() and not _LINE.fullmatch(rest):  # files may begin with a digit
            # In gdb this would be a line, which here may be of several files.
            return self._pc(core, focus, parse_number(rest, "a pc"), f"; a source line is FILE:{rest}")
        head, colon, tail = rest.rpartition(":")
        if colon and is_engine(head):
            return self._pc(core, engine_name(head), parse_number(tail, "a pc"))
        # Engines first: `act` is the engine, whatever a program calls its queues and functions.
        if is_engine(rest):
            engine = engine_name(rest)
            owners = [(number, engine) for number, name, words in self.streams(core) if name == engine and words]
            if not owners:
                raise NotFoundError(f"{engine} has no words")
            return Target("engine", f"every word of {engine}", owners=frozenset(owners))
        if found := _LINE.fullmatch(rest):
            return self._line(core, found[1], int(found[2]))
        queues = [(q.core, q.name) for q in self.device.queues if q.name == rest and core in (None, q.core)]
        if queues:
            return Target("queue", f"every transfer of {rest}", owners=frozenset(queues))
        if _OPCODE.fullmatch(rest):
            return self._opcode(core, rest)
        raise UsageError(f"{rest!r} is not an ENGINE:PC, FILE:LINE, PC, %OPERATION, ENGINE, QUEUE, OPCODE or FUNCTION")

    def _operation(self, core: int | None, name: str) -> Target:
        """Return the first word that each engine has of an operation of the graph."""
        cores = range(len(self.device.cores)) if core is None else [core]
        # The second core of a logical core may have no part in an operation.
        places = {
            (number, engine, pcs[0])
            for number in cores
            for engine, pcs in self.graphs.all_words(number).get(name, {}).items()
        } or {(cores[0], engine, pcs[0]) for engine, pcs in self.graphs.words(cores[0], name).items()}
        return Target("operation", f"%{name}", frozenset(places))

    def _pc(self, core: int | None, engine: str, pc: int, hint: str = "") -> Target:
        places = [
            (number, engine, pc)
            for number, name, words in self.streams(core)
            if name == engine and any(loaded.pc == pc for loaded in words)
        ]
        if not places:
            last = max((words[-1].pc for _, name, words in self.streams(core) if name == engine and words), default=-1)
            known = f"it has 0 to {last}" if last >= 0 else "it has no words"
            raise NotFoundError(f"no {engine} pc {pc}; {known}{hint}")
        return Target("pc", f"{engine} pc {pc}", frozenset(places))

    def _line(self, core: int | None, file: str, line: int) -> Target:
        name = self.find_file(file)
        lines = self.lines[name]
        actual = self._line_with_words(name, line, lines)
        if actual is None:
            raise NotFoundError(f"no words from {file}:{line} on; the last line with any is {max(lines)}")
        places = [
            (number, engine, pc)
            for (number, engine), pcs in lines[actual].items()
            if core in (None, number)
            for pc in pcs
        ]
        if not places:
            raise NotFoundError(f"core {core} has no words from {file}:{actual}")
        return Target("line", f"{name}:{actual}", frozenset(places))

    def _line_with_words(self, file: str, line: int, lines: Iterable[int]) -> int | None:
        """Return the line that a line stands for: itself, the statement it is a part of, else, as in gdb, the next."""
        if line in lines:
            return line
        span = statement_around(self._read, file, line)
        own = None if span is None else max((each for each in lines if span[0] <= each <= span[1]), default=None)
        return min((each for each in lines if each >= line), default=None) if own is None else own

    def _opcode(self, core: int | None, text: str) -> Target:
        wanted = text.upper()
        names: dict[str, None] = {}
        places = []
        for number, engine, words in self.streams(core):
            for loaded in words:
                own = {loaded.word.name}
                if loaded.transfer is not None:  # the loader put another word in its place
                    word = self.device.cores[number].file_word(engine, loaded.pc)
                    own |= set() if word is None else {word.name}
                names.update(dict.fromkeys(own))
                if wanted in own:
                    places.append((number, engine, loaded.pc))
        # Opcodes first: they are fixed, and a kernel that calls a function like one can still name its line.
        if not places and text in self.functions:
            calls = frozenset(place for place in self.functions[text] if core in (None, place[0]))
            return Target("function", f"every call of {text}", calls)
        if not places:
            queues = ", ".join(dict.fromkeys(queue.name for queue in self.device.queues))
            functions = f", its functions {', '.join(self.functions)}" if self.functions else ""
            raise NotFoundError(
                f"no engine, queue, opcode or function {text!r} in this program; its opcodes are "
                f"{', '.join(sorted(names)) or 'none'}, its queues {queues or 'none'}{functions}"
            )
        return Target("opcode", wanted, frozenset(places))
