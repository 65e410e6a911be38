"""The breakpoints that an editor sets: its own lists by kind, and what stands for them in the session."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from formats.errors import NeuronError
from neurontools.dap.places import Places
from neurontools.debugger import Breakpoint, Session, UsageError
from neurontools.debugger.execution import Owner
from neurontools.debugger.results import TensorValue

__all__ = ["FILTERS", "Stopping"]

# What the editor's list of exceptions offers: name, label, whether it is on at first.
FILTERS: tuple[tuple[str, str, bool], ...] = (
    ("nan", "NaN written", False),
    ("inf", "Infinity written", False),
    ("finding", "Finding of a check", False),
)
Asked = dict[str, Any]
_HITS = re.compile(r"\s*(>=|>|==|=)?\s*(\d{1,9})\s*")
_LOGGED = re.compile(r"\{([^{}]+)\}")


class Stopping:
    """Sets what requests ask for; a list of a kind replaces the one before it."""

    def __init__(self, session: Session, places: Places, say: Callable[[str], object]) -> None:
        self._session, self._places, self._say = session, places, say
        self._numbers: dict[tuple[str, str], list[int]] = {}
        self._caught: dict[int, str] = {}

    def lines(self, path: str, wanted: list[Asked]) -> list[Asked]:
        """Set the breakpoints of a source file."""
        self._clear("line", path)
        return [self._set("line", path, one, partial(self._line, path)) for one in wanted]

    def _line(self, path: str, one: Asked) -> Breakpoint:
        place = f"{self._places.file_of(path)}:{int(one['line'])}"
        return self._session.break_at(place, condition=one.get("condition"))

    def functions(self, wanted: list[Asked]) -> list[Asked]:
        """Set breakpoints by name: an opcode, an engine, a queue, ENGINE:PC, S[5] >= 3."""
        self._clear("function", "")
        return [self._set("function", "", one, self._function) for one in wanted]

    def _function(self, one: Asked) -> Breakpoint:
        return self._session.break_at(str(one["name"]), condition=one.get("condition"))

    def words(self, wanted: list[Asked]) -> list[Asked]:
        """Set breakpoints on words by their addresses."""
        self._clear("word", "")
        return [self._set("word", "", one, self._word) for one in wanted]

    def _word(self, one: Asked) -> Breakpoint:
        core, engine, pc = self._places.word(str(one["instructionReference"]), int(one.get("offset", 0)))
        return self._session.break_at(f"nc{core} {engine}:{pc}", condition=one.get("condition"))

    def data(self, wanted: list[Asked]) -> list[Asked]:
        """Set watchpoints."""
        self._clear("data", "")
        return [self._set("data", "", one, self._watch) for one in wanted]

    def _watch(self, one: Asked) -> Breakpoint:
        kind = {"read": "read", "readWrite": "access"}.get(one.get("accessType", ""), "write")
        return self._session.watch(str(one["dataId"]), kind, one.get("condition"))

    def exceptions(self, filters: list[str], options: list[Asked]) -> list[Asked]:
        """Set catchpoints for NaN, infinities and findings; faults and hangs stop in any case."""
        self._clear("exception", "")
        every = [*({"filterId": name} for name in filters), *options]
        made = [self._set("exception", "", one, self._catch) for one in every]
        self._caught = {row["id"]: str(one["filterId"]) for row, one in zip(made, every, strict=True) if "id" in row}
        return made

    def _catch(self, one: Asked) -> Breakpoint:
        return self._session.catch(str(one["filterId"]), one.get("condition"))

    def _clear(self, kind: str, key: str) -> None:
        known = {each.number for each in self._session.breakpoints}
        gone = [number for number in self._numbers.pop((kind, key), []) if number in known]
        if gone:
            self._session.delete(*gone)

    def _set(self, kind: str, key: str, one: Asked, make: Callable[[Asked], Breakpoint]) -> Asked:
        """Set one breakpoint; what the session refuses is not verified, and says why."""
        try:
            hits = _HITS.fullmatch(one.get("hitCondition") or ">= 1")
            if hits is None:
                raise UsageError(f"{one['hitCondition']!r} is no count of hits such as 5 or >= 5")
            made = make(one)
            skipped = int(hits[2]) - (hits[1] != ">")
            if skipped > 0:
                self._session.ignore(made.number, skipped)
            if hits[1] in ("=", "=="):
                self._session.enable(made.number, once=True)
        except NeuronError as error:
            return {"verified": False, "message": str(error)}
        self._numbers.setdefault((kind, key), []).append(made.number)
        if one.get("logMessage"):
            self._session.breakpoints.passing[made.number] = partial(self._log, one["logMessage"])
        row: dict[str, Any] = {"id": made.number, "verified": True}
        if made.kind == "line":
            file, _, line = made.where.rpartition(":")
            row |= {"line": int(line), "source": self._places.source(file)}
        return row

    # --- at a stop ---------------------------------------------------------------------------------------------------

    def kind_of(self, numbers: tuple[int, ...]) -> str:
        """Return why the protocol says that the program stopped at these."""
        if any(number in self._caught for number in numbers):
            return "exception"
        kinds = {each.kind: each for each in self._session.breakpoints if each.number in numbers}
        watched = [each for each in kinds.values() if each.watches]
        return "data breakpoint" if watched and len(watched) == len(kinds) else "breakpoint"

    def caught(self, numbers: tuple[int, ...]) -> str:
        """Return which filter stopped the program, "" where none did."""
        return next((self._caught[number] for number in numbers if number in self._caught), "")

    def _log(self, text: str, owner: Owner) -> None:
        """Say the text of a log point, with the values that it names where the engine stands that passes it."""
        before = self._session.focus()
        self._session.focus(*self._session.execution.word_of(owner)[:2])
        self._say(_LOGGED.sub(lambda found: self._value(found[1]), text))
        self._session.focus(*before)

    def _value(self, text: str) -> str:
        try:
            found = self._session.evaluate(text)
        except NeuronError as error:
            return f"<{error}>"
        value = found.array if isinstance(found, TensorValue) else found.value
        return str(value)
