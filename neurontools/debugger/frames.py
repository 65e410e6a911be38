"""Calls of the kernel's functions, as words tell them: frames, variables, what is one turn of a line."""

from __future__ import annotations

import re

from formats.named_tuple import NamedTuple
from formats.neff.visits import TensorName, Variable
from neurontools.debugger.errors import UsageError
from neurontools.debugger.execution import Execution
from neurontools.debugger.program import Location, Program
from neurontools.debugger.results import FrameRow, LocalRow
from neurontools.debugger.tensors import Tensors
from neurontools.debugger.turns import places_of

__all__ = ["Standing", "backtrace", "bound", "local_rows", "need_call", "standing_at"]

_NAME = re.compile(r"([A-Za-z_]\w*)(?![\w.:])|[\"']([^\"']+)[\"']")


class Standing(NamedTuple):
    """Where a word is in the kernel: its file and line, and the visits that led there, the outermost first.

    A visit is one call that the kernel makes in one turn of its loops; without visits a line is all that is known.
    """

    file: str | None
    line: int | None
    visits: tuple[int, ...]
    pc: int

    def same_line(self, other: Standing, depth: int) -> bool:
        """Return whether another word belongs to the same turn of the same line, `depth` calls deep or deeper."""
        if self.visits and other.visits:
            return self.visits[:depth] == other.visits[:depth]
        return (self.file, self.line) == (other.file, other.line)


def need_call(here: Standing | None, done: bool) -> tuple[int, ...]:
    """Return the visits of a word in a function that the kernel calls; UsageError for any other, or an end."""
    if done:
        raise UsageError("the engine has completed all its instructions and is in no function any more")
    if here is None or len(here.visits) < 2:
        raise UsageError("this line is in no function that the kernel calls, or the file does not say so")
    return here.visits


def standing_at(program: Program, location: Location) -> Standing | None:
    """Return where a word is in the kernel, None where the file does not say."""
    source = program.source(*location)
    if source is None:
        return None
    return Standing(source.file, source.line, program.chain(*location)[::-1], location[2])


def backtrace(program: Program, location: Location) -> tuple[FrameRow, ...]:
    """Return the calls that led to a word, the innermost first; without visits its line is all there is."""
    known, chain = program.visits(location[0]), program.chain(*location)
    if known is None or not chain:
        source = program.source(*location)
        if source is None or source.file is None:
            return ()
        return (FrameRow(0, "", source.file, source.line or 0, (), source.operation or ""),)
    rows, turns = [], places_of(program.turns.at(location))
    for level, visit in enumerate(chain):
        site = known.site(visit)
        whole, outer = known.iteration(visit, turns), known.parent(visit)
        own = whole[len(known.iteration(outer, turns)) :] if outer >= 0 else whole
        rows.append(FrameRow(level, site.function, site.file, site.line, own))
    return tuple(rows)


def local_rows(execution: Execution, location: Location) -> tuple[LocalRow, ...]:
    """Return the variables of the functions that led to a word, those of the innermost first."""
    program, core = execution.program, location[0]
    known = program.visits(core)
    rows: list[LocalRow] = []
    for level, visit in enumerate(program.chain(*location)):
        assert known is not None
        function = known.site(visit).function
        loops = {name for loop in known.site(visit).loops for name in loop.names}
        found = known.variables(visit)
        for name in sorted(found, key=lambda each: (each not in loops, isinstance(found[each], TensorName))):
            rows.append(_row(execution.tensors, core, level, function, Variable(name, found[name])))
    return tuple(rows)


def bound(execution: Execution, text: str) -> str:
    """Return a place with the tensor that the kernel's variable at its beginning stands for, where one is there.

    A name in quotes is that of a tensor itself.
    """
    found = _NAME.match(text)
    if found is None:
        return text
    if found[2] is not None:
        return found[2] + text[found.end() :]
    variables = execution.program.variables(*execution.standing())
    # A part of a list that holds tensors, as `tiles[0]`, the longest that the text begins with.
    parts = [each for each in variables if "[" in each and text.startswith(each)]
    name = max(parts, key=len, default=found[1])
    tensor = variables.get(name)
    # A tile of another core, or one that the builder did away with, is no place to watch.
    known = isinstance(tensor, TensorName) and tensor in execution.tensors.names(execution.focus[0])
    return f"{tensor}{text[len(name) if parts else found.end() :]}" if known else text


def _row(tensors: Tensors, core: int, level: int, function: str, variable: Variable) -> LocalRow:
    name, value = variable
    if not isinstance(value, TensorName):
        return LocalRow(level, function, name, value, False)
    facts = tensors.facts(value, core)
    return LocalRow(level, function, name, str(value), True, *(facts or ()))
