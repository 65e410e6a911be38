"""Numbers and names that the protocol wants: threads, frames, instruction addresses, source files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from formats.engines import ENGINES
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD
from formats.numerals import parse_signed
from formats.source_files import is_trusted
from neurontools.debugger import Session, UsageError
from neurontools.debugger.program import Location

__all__ = ["Frame", "Places"]

_STREAM = 1 << 32  # addresses between the streams of two engines
_LEVELS = 1000  # frames of one engine
_SEARCHED = 4  # how many parts of a path's end a source file is looked for by


class Frame(NamedTuple):
    """A frame of an engine; level 0 is the innermost."""

    core: int
    engine: str
    level: int


class Places:
    """Threads are engines, from 1; a word has an address by core, engine and pc; frames live until the next stop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._texts: list[str] = []  # files that have no path here, by source reference

    def threads(self) -> list[tuple[int, str]]:
        """Return the number and name of every engine that has words."""
        return [(self.thread(core, engine), f"nc{core} {engine}")
                for core, engine, words in self._session.program.streams() if words]  # fmt: skip

    @staticmethod
    def thread(core: int, engine: str) -> int:
        """Return the number of an engine."""
        return core * len(ENGINES) + ENGINES.index(engine) + 1

    def engine(self, thread: int) -> tuple[int, str]:
        """Return the engine of a number; NotFoundError."""
        core, index = divmod(thread - 1, len(ENGINES))
        if not 0 <= core < len(self._session.device.cores):
            raise NotFoundError(f"no thread {thread}")
        return core, ENGINES[index]

    def frame_number(self, frame: Frame) -> int:
        """Return the number of a frame."""
        return self.thread(frame.core, frame.engine) * _LEVELS + frame.level

    def frame(self, number: int | None) -> Frame:
        """Return the frame of a number, the innermost of the focus engine without one."""
        if number is None:
            core, engine = self._session.focus()
            return Frame(core, engine, 0)
        thread, level = divmod(number, _LEVELS)
        return Frame(*self.engine(thread), level)

    # --- words -------------------------------------------------------------------------------------------------------

    def address(self, location: Location) -> str:
        """Return the address of a word."""
        core, engine, pc = location
        return hex(_STREAM * self.thread(core, engine) + WORD * pc)

    def word(self, text: str, offset: int = 0) -> Location:
        """Return the word at an address, behind which `offset` bytes are added; UsageError, NotFoundError."""
        try:
            address = parse_signed(text) + offset
        except ValueError:
            raise UsageError(f"{text!r} is no address of an instruction") from None
        thread, byte = divmod(address, _STREAM)
        return (*self.engine(thread), byte // WORD)

    # --- files -------------------------------------------------------------------------------------------------------

    def source(self, file: str) -> dict[str, Any]:
        """Return a source as the protocol has it: by path where the file may be read here, else by a number."""
        path = self._path(file)
        if path is not None:
            return {"name": path.name, "path": str(path)}
        if file not in self._texts:
            self._texts.append(file)
        return {"name": os.path.basename(file), "path": file, "sourceReference": self._texts.index(file) + 1}

    def text(self, number: int) -> str:
        """Return the text of a source without a path; NotFoundError."""
        if not 0 < number <= len(self._texts):
            raise NotFoundError(f"no source {number}")
        rows = self._session.list_source(f"{self._texts[number - 1]}:1", 1 << 16, remember=False).rows
        return "\n".join(row.text for row in rows)

    def _path(self, file: str) -> Path | None:
        here = self._session.execution
        folders = (*here.folders, *here.named_folders)
        parts = Path(file).parts
        ends = [Path(*parts[-count:]) for count in range(1, min(len(parts), _SEARCHED) + 1)]
        for path in (Path(file), *(folder / end for folder in folders for end in reversed(ends))):
            try:
                if path.is_file() and is_trusted(path, here.folders):
                    return path.resolve()
            except OSError:
                continue
        return None

    def file_of(self, path: str) -> str:
        """Return the name that the program gives a file of the editor; NotFoundError where it has none of it."""
        for count in range(len(Path(path).parts), 0, -1):
            end = Path(*Path(path).parts[-count:])
            found = [file for file in self._session.program.lines if file == str(end) or self._same(file, path)
                     or Path(file).parts[-count:] == end.parts]  # fmt: skip
            if len(found) == 1:
                return found[0]
            if found:
                break
        return self._session.program.find_file(os.path.basename(path))

    @staticmethod
    def _same(file: str, path: str) -> bool:
        try:
            return os.path.samefile(file, path)
        except OSError:
            return False
