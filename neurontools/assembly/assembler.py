"""Programs as text: directives that declare a NEFF, and instruction words in the profiler's grammar.

    .target trn2                       chip; first, and once
    .name   deadlock                   name in the header
    .dialect extended                  also accept extension words (the file then says so)
    .input  x float32 [128, 64]        tensors that the caller gives or gets
    .output y float32 [128, 64]
    .constant ones float32 [128] 1.0   values in row-major order; the last one repeats
    .var    scratch 65536 512          HBM scratch: bytes, alignment
    .queue  qIn sp 8                   DMA queue: owner engine, first of its 16 semaphores
    .dma    qIn 0 8 x+0[1,256][256,128] -> SB+0x4000[1,262144][256,128]
                                       block 0 of qIn raises semaphore 8; steps and sizes in bytes, innermost first
    .engine pe                         the words that follow belong to this engine
    loop:                              a label
        COMPARE_BRANCH cmp_op=ALWAYS label_id=%loop
    # comment                          %NAME: offset of a label, id of a variable, first semaphore of a queue

`SB` is on-chip memory: byte offset = partition * 0x40000 + byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import prod
from pathlib import Path

from formats.dtypes import Dtype
from formats.engines import engine_name
from formats.errors import FormatError, NotFoundError
from formats.named_tuple import NamedTuple
from formats.neuron_core import DMA_ENGINES, SYNC_COUNT
from formats.numerals import parse_real, parse_signed
from formats.targets import Target, resolve_target

__all__ = ["Copy", "End", "Program", "Tensor", "Word", "engine_name", "parse_program"]

_KEPT = 1 << 10  # words that a process remembers, by their text
FIRST_SEMAPHORES = (8, 24, 40, 56)  # the blocks that real files use (isa.md 3)


class Tensor(NamedTuple):
    """An input, output or constant: `data` is the constant's bytes in row-major order."""

    name: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes = b""

    @property
    def size(self) -> int:
        """Return the bytes of the tensor."""
        size = Dtype.from_numpy_name(self.dtype).size
        for extent in self.shape:
            size *= extent
        return size


class Scratch(NamedTuple):
    """Memory in HBM that is not visible outside."""

    name: str
    size: int
    alignment: int


class Queue(NamedTuple):
    """A DMA queue and the 16 semaphores that start at `semaphore`."""

    name: str
    owner: str
    semaphore: int


class End(NamedTuple):
    """One end of a copy; steps and the innermost size in bytes, innermost first."""

    variable: str
    offset: int
    steps: tuple[int, ...]
    sizes: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> float:
        """Return how many elements of its type it has; a part of one where the bytes are no whole number of them."""
        return prod(self.sizes) / Dtype.from_numpy_name(self.dtype).size


class Copy(NamedTuple):
    """One block of a queue."""

    queue: str
    block: int
    semaphore: int
    source: End
    target: End
    line: int = 0


class Word(NamedTuple):
    """One instruction as encoded, and the line it stands on."""

    raw: bytes
    line: int
    text: str


@dataclass
class Program:
    """A parsed .s file."""

    path: str
    target: Target
    name: str
    dialect: str = "neuron"
    tensors: list[Tensor] = field(default_factory=list)
    scratch: list[Scratch] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    words: dict[str, list[Word]] = field(default_factory=dict)
    # The state buffer is variable 0 of every subgraph that AWS's compiler writes; the words name variables by these
    # numbers.
    variable_ids: dict[str, int] = field(default_factory=lambda: {"SB": 0})

    def stream(self, engine: str) -> bytes:
        """Return the bytes of one engine's stream."""
        return b"".join(word.raw for word in self.words.get(engine, ()))


def parse_program(text: str, path: str = "<text>", target: str | None = None) -> Program:
    """Return the program in `text`; every error names file and line.

    `target` is used where the text has no `.target`, and must agree where it has.
    """
    return _Parser(path, target).parse(text)


class _Pending(NamedTuple):
    line: int
    text: str


class _Position(NamedTuple):
    """The word that is being encoded: its engine and byte offset, and the offsets of all words once they are known."""

    engine: str
    here: int
    offsets: list[int]
    final: bool


_LABEL = re.compile(r"([A-Za-z_][\w.]*):$")
_REFERENCE = re.compile(r"%([A-Za-z_][\w.]*)")
_SHAPE = re.compile(r"\[([^\]]*)\]")
_END = re.compile(r"(?:(\w+)@)?([A-Za-z_][\w.]*)\+(\w+)\[([^\]]*)\]\[([^\]]*)\]$")


class _Parser:
    def __init__(self, path: str, target: str | None) -> None:
        self.path = path
        self.program = Program(path, resolve_target(target or "trn2"), Path(path).stem)
        self.forced = resolve_target(target) if target else None
        self.seen_target = False
        self.engine: str | None = None
        self.lines: dict[str, list[_Pending]] = {}
        self.labels: dict[str, tuple[str, int]] = {}
        self.line = 0

    def parse(self, text: str) -> Program:
        for self.line, full in enumerate(text.splitlines(), 1):
            content = full.split("#", 1)[0].strip()
            if not content:
                continue
            try:
                if content.startswith("."):
                    self.directive(content)
                elif match := _LABEL.match(content):
                    self.label(match[1])
                else:
                    self.lines.setdefault(self.need_engine(), []).append(_Pending(self.line, content))
            except (FormatError, NotFoundError) as error:
                raise self.here(error, self.line) from None
        for engine, pending in self.lines.items():
            self.program.words[engine] = self.encode(engine, pending)
        return self.program

    def here(self, error: FormatError | NotFoundError, line: int) -> FormatError:
        place = f"{self.path}:{line}"
        return error.at(path=place) if isinstance(error, FormatError) else FormatError(str(error), path=place)

    def need_engine(self) -> str:
        if self.engine is None:
            raise FormatError("an instruction before any .engine directive")
        return self.engine

    def label(self, name: str) -> None:
        engine = self.need_engine()
        if name in self.labels or name in self.program.variable_ids:
            raise FormatError(f"{name!r} is defined twice")
        self.labels[name] = engine, len(self.lines.get(engine, ()))

    def directive(self, content: str) -> None:
        word, *more = content.split(None, 1)
        rest = more[0] if more else ""
        handler = getattr(self, "do_" + word[1:], None)
        if handler is None:
            known = ", ".join("." + name[3:] for name in dir(self) if name.startswith("do_"))
            raise FormatError("unknown directive", expected=f"one of {known}", got=word)
        handler(rest)

    def do_target(self, rest: str) -> None:
        target = resolve_target(rest)
        if self.seen_target or self.program.tensors or self.lines:
            raise FormatError(".target stands first, and once")
        if self.forced and self.forced.generation != target.generation:
            raise FormatError("the file is for another target", expected=self.forced.name, got=target.name)
        self.seen_target, self.program.target = True, self.forced or target

    def do_name(self, rest: str) -> None:
        self.program.name = self.words(rest, "NAME")[0]

    def do_dialect(self, rest: str) -> None:
        if rest not in ("neuron", "extended"):
            raise FormatError("unknown dialect", expected="neuron or extended", got=repr(rest))
        self.program.dialect = rest

    def do_engine(self, rest: str) -> None:
        self.engine = engine_name(self.words(rest, "ENGINE")[0])
        self.lines.setdefault(self.engine, [])

    def do_input(self, rest: str) -> None:
        self.tensor("input", rest)

    def do_output(self, rest: str) -> None:
        self.tensor("output", rest)

    def do_constant(self, rest: str) -> None:
        self.tensor("constant", rest)

    def do_var(self, rest: str) -> None:
        name, size, *more = self.words(rest, "NAME BYTES [ALIGNMENT]", most=3)
        self.define(name)
        alignment = _number(more[0], "alignment") if more else 64
        if alignment.bit_count() != 1:
            raise FormatError("an alignment is a power of two", got=alignment)
        self.program.scratch.append(Scratch(name, _number(size, "bytes"), alignment))

    def do_queue(self, rest: str) -> None:
        name, owner, *more = self.words(rest, "NAME ENGINE [SEMAPHORE]", most=3)
        taken = {queue.semaphore for queue in self.program.queues}
        free = [number for number in FIRST_SEMAPHORES if number not in taken]
        if not more and not free:
            raise FormatError("no free block of semaphores: name the first one")
        first = _number(more[0], "semaphore") if more else free[0]
        # 0 to 2 are the runtime's own.
        if any(abs(first - other) < DMA_ENGINES for other in taken) or not 3 <= first <= SYNC_COUNT - DMA_ENGINES:
            raise FormatError("semaphores overlap another queue's, or are not 3 to 255", got=first)
        if any(queue.name == name for queue in self.program.queues):
            raise FormatError(f"{name!r} is defined twice")
        self.program.queues.append(Queue(name, engine_name(owner), first))

    def do_dma(self, rest: str) -> None:
        left, arrow, right = rest.partition("->")
        parts = left.split(None, 3)
        if not arrow or len(parts) != 4:
            raise FormatError("expected QUEUE ID SEMAPHORE FROM -> TO", got=repr(rest))
        queue, block, semaphore, source = parts
        owner = next((q for q in self.program.queues if q.name == queue), None)
        if owner is None:
            raise FormatError(f"no queue {queue!r} above")
        number = _number(semaphore, "semaphore")
        if not owner.semaphore <= number < owner.semaphore + DMA_ENGINES:
            raise FormatError(
                "not a semaphore of the queue",
                got=number,
                expected=f"{owner.semaphore} to {owner.semaphore + DMA_ENGINES - 1}",
            )
        given, taken = self.end(source), self.end(right)
        if given.elements != taken.elements:
            raise FormatError(
                "the two sides of a .dma differ in elements",
                expected=f"{given.elements:.10g} of {given.dtype}",
                got=f"{taken.elements:.10g} of {taken.dtype}",
            )
        self.program.copies.append(Copy(queue, _number(block, "id"), number, given, taken, self.line))

    def tensor(self, kind: str, rest: str) -> None:
        match = _SHAPE.search(rest)
        if match is None:
            raise FormatError(f".{kind} needs NAME DTYPE [SHAPE]" + (" VALUE..." if kind == "constant" else ""))
        name, dtype = self.words(rest[: match.start()], "NAME DTYPE")
        shape = tuple(_number(extent.strip(), "shape") for extent in match[1].split(",") if extent.strip())
        if not all(shape):
            raise FormatError("an extent of zero", field="shape")
        code = Dtype.from_numpy_name(dtype)
        item = Tensor(name, kind, code.numpy_name, shape)
        self.define(name)
        values = rest[match.end() :].split()
        if kind == "constant":
            item = item._replace(data=_constant(item, values))
        elif values:
            raise FormatError("too many words", got=" ".join(values))
        self.program.tensors.append(item)

    def end(self, text: str) -> End:
        match = _END.match(text.replace(" ", ""))
        if match is None:
            raise FormatError("not VARIABLE+OFFSET[STEPS][SIZES]", got=repr(text))
        if match[2] not in self.program.variable_ids:
            raise FormatError(f"no variable {match[2]!r} above")
        steps, sizes = (tuple(_number(n, "pattern") for n in match[group].split(",")) for group in (4, 5))
        if len(steps) != len(sizes) or not 1 <= len(steps) <= 4:
            raise FormatError("one to four steps, and as many sizes", got=repr(text))
        dtype = Dtype.from_spelling(match[1]).numpy_name if match[1] else "uint8"
        return End(match[2], _number(match[3], "offset"), steps, sizes, dtype)

    def define(self, name: str) -> None:
        if name in self.program.variable_ids or name in self.labels:
            raise FormatError(f"{name!r} is defined twice")
        self.program.variable_ids[name] = len(self.program.variable_ids)

    def words(self, rest: str, form: str, most: int | None = None) -> list[str]:
        found = rest.split()
        least = sum(not part.startswith("[") for part in form.split())
        if not least <= len(found) <= (most or least):
            raise FormatError(f"expected {form}", got=repr(rest))
        return found

    def encode(self, engine: str, pending: list[_Pending]) -> list[Word]:
        offsets: list[int] = []
        words: list[Word] = []
        here = 0
        for line, text in pending:
            offsets.append(here)
            raw = self.word(line, text, _Position(engine, here, offsets, False))
            words.append(Word(raw, line, text))
            here += len(raw)
        offsets.append(here)
        # Words have several lengths, so labels have their offsets only now; what names none is as it has to be.
        for number, word in enumerate(words):
            if "%" in word.text:
                place = _Position(engine, offsets[number], offsets, True)
                words[number] = word._replace(raw=self.word(word.line, word.text, place))
        return words

    def word(self, line: int, text: str, place: _Position) -> bytes:
        try:
            if "%" in text:
                text = _REFERENCE.sub(partial(self.resolve, place), text)
            raw, is_ours = _word(text, self.program.target.generation)
            if is_ours and self.program.dialect == "neuron":
                raise FormatError("this word is an extension of ours: declare `.dialect extended`")
        except (FormatError, NotFoundError) as error:
            raise self.here(error, line) from None
        return raw

    def resolve(self, place: _Position, match: re.Match[str]) -> str:
        name = match[1]
        if name in self.labels:
            owner, index = self.labels[name]
            if owner != place.engine:
                raise FormatError(f"label {name!r} belongs to {owner}; an engine branches in its own stream only")
            # Branches are relative to their own word; any offset has the length of 0, so that lengths stay.
            return str((place.offsets[index] - place.here) & 0xFFFFFFFF) if place.final else "0"
        if name in self.program.variable_ids:
            return str(self.program.variable_ids[name])
        for queue in self.program.queues:
            if queue.name == name:
                return str(queue.semaphore)
        raise FormatError(f"no label, variable or queue {name!r}")


@lru_cache(maxsize=_KEPT)
def _word(text: str, generation: str) -> tuple[bytes, bool]:
    """Return the word that a line gives, and whether only the extended dialect has it; programs repeat their lines."""
    from formats.isa import Unknown, lookup, parse_instruction  # deferred: start-up

    raw = parse_instruction(text, generation).raw
    return raw, [lookup(raw, extended=extended) is not Unknown for extended in (False, True)] == [False, True]


def _number(text: str, what: str) -> int:
    try:
        value = parse_signed(text)
    except ValueError:
        raise FormatError("not a number", field=what, got=repr(text)) from None
    if value < 0:
        raise FormatError("negative", field=what, got=text)
    return value


_MOST_CONSTANT = 1 << 32  # bytes; a file of AWS's compiler has constants of some MiB


def _constant(item: Tensor, values: list[str]) -> bytes:
    import ml_dtypes  # noqa: F401  its import teaches NumPy the names of bfloat16 and fp8
    import numpy as np

    count = item.size // Dtype.from_numpy_name(item.dtype).size
    if not 1 <= len(values) <= count:
        raise FormatError("wrong number of values", expected=f"1 to {count}", got=len(values))
    if item.size > _MOST_CONSTANT:
        raise FormatError(
            "a constant this large does not fit a file", expected=f"{_MOST_CONSTANT} bytes", got=item.size
        )
    dtype = np.dtype(item.dtype)
    try:
        if dtype.kind in "iu":
            given = np.array([parse_signed(value) for value in values], dtype=dtype)
        else:
            wide = np.array([parse_real(value) for value in values])
            with np.errstate(over="ignore"):
                given = wide.astype(dtype)
            # Not every narrow type says that it overflows: some have no infinity, and give NaN.
            if (np.isfinite(wide) & ~np.isfinite(given.astype(np.float64))).any():
                raise OverflowError
    except ValueError:
        raise FormatError("not a number", got=" ".join(values)[:40]) from None
    except OverflowError:
        raise FormatError(f"a value does not fit {item.dtype}", got=" ".join(values)[:40]) from None
    return np.concatenate([given, np.repeat(given[-1:], count - len(given))]).tobytes()
