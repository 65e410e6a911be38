"""How much of a file's instruction streams is understood: words decoded, encoded again, with consistent operands.

A word counts as encoded again when text made of its declared fields alone assembles to the same bytes; bytes that are
merely kept do not count.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from formats.isa import Instruction
    from formats.neff.reader import Neff

__all__ = ["Coverage", "Example", "coverage"]


@dataclass
class Example:
    """Something that is not understood: how often it occurs, and where it first does.

    `place` is subgraph/engine and the instruction's number, `raw` the word in hexadecimal.
    """

    count: int
    place: str
    raw: str


_NUMBER = re.compile(r"-?\b(?:0x[0-9a-f]+|\d+)\b")
# Different words whose verdict is kept: streams repeat themselves, and memory must not grow with them.
_REMEMBERED = 1 << 18


class _Judged(NamedTuple):
    known: bool
    exact: bool
    problems: tuple[str, ...]
    unnamed: tuple[str, ...]


@dataclass
class Coverage:
    """Counts over all words of a file.

    `consistent` are known words that break no rule of their class. `unknown` has the words no class explains by
    opcode, `inexact` those that fields do not explain in full by name, `inconsistent` broken rules, `unnamed`
    codes without a name as NAME.field=code.
    """

    words: int = 0
    decoded: int = 0
    reencoded: int = 0
    consistent: int = 0
    names: Counter[str] = field(default_factory=Counter)
    unknown: dict[str, Example] = field(default_factory=dict)
    inexact: dict[str, Example] = field(default_factory=dict)
    inconsistent: dict[str, Example] = field(default_factory=dict)
    unnamed: dict[str, Example] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Return whether every word is understood."""
        return self.words == self.decoded == self.reencoded == self.consistent and not self.unnamed

    def _add(self, word: Instruction, judged: _Judged, place: str) -> None:
        self.words += 1
        self.decoded += judged.known
        self.reencoded += judged.exact
        self.consistent += judged.known and not judged.problems
        self.names[word.name] += 1
        if not judged.known:
            _note(self.unknown, word.name, word, place)
        elif not judged.exact:
            _note(self.inexact, word.name, word, place)
        for problem in judged.problems:
            _note(self.inconsistent, problem, word, place)
        for code in judged.unnamed:
            _note(self.unnamed, code, word, place)


def coverage(neff: Neff, most: int | None = None) -> Coverage:
    """Return how much of every stream of a file is understood.

    With `most`, only about that many words are looked at, evenly over all streams. Raises FormatError where a stream is
    missing or not a whole number of words.
    """
    found = Coverage()
    seen: dict[tuple[str, str, bytes], _Judged] = {}
    generation = neff.target.generation
    total = sum(len(stream) for graph in neff.subgraphs for stream in graph.streams.values())
    every = 1 if most is None else max(1, -(-total // most))
    for graph in neff.subgraphs:
        functions = frozenset(function.func_id for function in graph.activation_functions)
        for engine, stream in graph.streams.items():
            for pc in range(0, len(stream), every):
                word = stream[pc]
                # whether an engine may have a word, and what its bits mean, is part of the verdict
                key = engine, graph.dialect, word.raw
                judged = seen.get(key)
                if judged is None:
                    if len(seen) >= _REMEMBERED:
                        seen.clear()
                    judged = seen[key] = _judge(word, generation, graph.dialect, engine, functions)
                found._add(word, judged, f"{graph.name}/{engine} {pc}")
    return found


def _judge(word: Instruction, generation: str, dialect: str, engine: str, functions: frozenset[int]) -> _Judged:
    from formats import isa  # deferred: start-up
    from formats.isa.field import Enumeration  # deferred: start-up

    if isinstance(word, isa.Unknown):
        return _Judged(False, False, (), ())
    problems = tuple(f"{word.NAME} {one.field}: {_rule(one.message)}" for one in isa.check(word, generation, engine))
    unnamed = tuple(
        f"{word.NAME}.{name}={code:#x}"
        for name, one in word.FIELDS.items()
        if isinstance(one, Enumeration)
        and (code := one.peek(word.raw)) not in one.enum.__members__.values()
        # A file's own table names the functions it uses.
        and not (one.enum is isa.ActivationFunction and code in functions)
    )
    return _Judged(True, _exact(word, generation, dialect), problems, unnamed)


def _exact(word: Instruction, generation: str, dialect: str) -> bool:
    from formats import isa  # deferred: start-up

    text = word.asm
    if "{raw=" in text:
        return False
    try:
        return isa.assemble(text, generation, dialect) == word.raw
    except FormatError:
        return False


def _rule(message: str) -> str:
    """Return a message without its numbers, so that a thousand words with one fault are one line."""
    return _NUMBER.sub("N", message)


def _note(table: dict[str, Example], key: str, word: Instruction, place: str) -> None:
    known = table.get(key)
    if known is None:
        table[key] = Example(1, place, word.raw.hex())
    else:
        known.count += 1
