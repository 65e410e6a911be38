"""From bytes to instructions and back: single words, whole streams, text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from formats.errors import FormatError
from formats.isa.instruction import EXTENSION_OPCODE, Instruction
from formats.isa.registry import BY_NAME, lookup
from formats.isa.unknown import Unknown
from formats.neuron_core import GENERATIONS, WORD
from formats.targets import Target, resolve_target

__all__ = ["Stream", "assemble", "decode", "decode_stream", "generation_of", "is_extended", "parse_instruction"]


def generation_of(target: str | Target) -> str:
    """Return the generation that a target, its name or a generation's name stands for."""
    return target if isinstance(target, str) and target in GENERATIONS else resolve_target(target).generation


def is_extended(dialect: str) -> bool:
    """Return whether a dialect's name is "extended"; a name other than that or "neuron" is a FormatError."""
    if dialect not in ("neuron", "extended"):
        raise FormatError("unknown dialect", expected="neuron or extended", got=repr(dialect))
    return dialect == "extended"


def _length(data: bytes, offset: int, extended: bool) -> int:
    """Return the bytes that the word at `offset` claims: 64, or what an extension word's header says."""
    if extended and data[offset] == EXTENSION_OPCODE:
        # a length of 0 would never end the walk over a stream
        return max(1, int.from_bytes(data[offset + 14 : offset + 16], "little")) * WORD
    return WORD


def decode(raw: bytes, target: str | Target = "gen3", dialect: str = "extended") -> Instruction:
    """Return the instruction that one word is: 64 bytes, or a multiple of it for extension words.

    An opcode that is not established, or not on `target`, and an extension word that is cut off, give an `Unknown` that
    keeps the bytes; a wrong length is a FormatError. `dialect` is "neuron" for words of real files, where nothing of
    ours has a meaning.
    """
    raw, extended = bytes(raw), is_extended(dialect)
    if len(raw) < WORD or len(raw) % WORD:
        raise FormatError("not a whole instruction word", expected="a multiple of 64 bytes", got=f"{len(raw)} bytes")
    wanted = _length(raw, 0, extended)
    if len(raw) > wanted:
        raise FormatError("more than one instruction word", expected=f"{wanted} bytes", got=f"{len(raw)} bytes")
    cls = lookup(raw, extended=extended)
    if generation_of(target) not in cls.GENERATIONS or len(raw) != wanted:
        cls = Unknown
    return cls.from_raw(raw)


class Stream(Sequence[Instruction]):
    """The instructions of one engine in program order; decoded when asked for.

    `offsets[i]` is the byte offset of instruction i. In the neuron dialect it is always 64 * i. An extension word that
    the end of the stream cuts off is an `Unknown`.
    """

    def __init__(
        self, data: bytes, target: str | Target = "gen3", dialect: str = "neuron", path: str | None = None
    ) -> None:
        if len(data) % WORD:
            raise FormatError(
                "stream is not made of whole words",
                path=path,
                offset=len(data) // WORD * WORD,
                expected="a multiple of 64 bytes",
                got=f"{len(data)} bytes",
            )
        self.data, self.generation, self.dialect, self.path = data, generation_of(target), dialect, path
        self._extended = is_extended(dialect)
        self._offsets: Sequence[int] | None = None

    @property
    def offsets(self) -> Sequence[int]:
        """Return the byte offset of every instruction."""
        if self._offsets is None:
            data = self.data
            # The first byte of every 64 is looked at, also inside longer words: a false alarm there costs the walk
            # below, no more.
            if not self._extended or EXTENSION_OPCODE not in data[::WORD]:
                self._offsets = range(0, len(data), WORD)
            else:
                offsets, position = [], 0
                while position < len(data):
                    offsets.append(position)
                    position += _length(data, position, True)
                self._offsets = offsets
        return self._offsets

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, index: int) -> Instruction: ...
    @overload
    def __getitem__(self, index: slice) -> list[Instruction]: ...
    def __getitem__(self, index: int | slice) -> Instruction | list[Instruction]:
        offsets = self.offsets
        if isinstance(index, slice):
            return [self._at(offsets[i]) for i in range(*index.indices(len(offsets)))]
        return self._at(offsets[index])

    def _at(self, offset: int) -> Instruction:
        data, extended = self.data, self._extended
        wanted = _length(data, offset, extended)
        raw = data[offset : offset + wanted]
        cls = lookup(raw, extended=extended)
        if self.generation not in cls.GENERATIONS or len(raw) != wanted:
            cls = Unknown
        return cls.from_raw(raw)

    def __iter__(self) -> Iterator[Instruction]:
        at = self._at
        return (at(offset) for offset in self.offsets)


def decode_stream(
    data: bytes | memoryview, target: str | Target = "gen3", dialect: str = "neuron", path: str | None = None
) -> Stream:
    """Return the instructions of one engine's stream, lazily."""
    return Stream(bytes(data), target, dialect, path)


def parse_instruction(text: str, target: str | Target = "gen3", dialect: str = "extended") -> Instruction:
    """Return the instruction that one line of assembler text gives.

    In the "neuron" dialect a line that needs an extension word, or a bit or code of ours, is a FormatError.
    """
    extended = is_extended(dialect)
    name, _, operands = text.strip().partition(" ")
    cls, generation = BY_NAME.get(name.upper()), generation_of(target)
    if cls is None or generation not in cls.GENERATIONS:
        if name.upper().startswith("OPCODE_"):
            return Unknown.parse_named(name, operands)
        if cls is None:
            raise FormatError("unknown instruction", got=repr(name))
        raise FormatError(f"{cls.NAME} does not exist on {target}", expected=" or ".join(cls.GENERATIONS))
    word = cls.parse(operands)
    if not extended and lookup(word.raw, extended=False) is Unknown:
        raise FormatError(f"{cls.NAME} as written is an extension of neurontools", expected="the extended dialect")
    return word


def assemble(text: str, target: str | Target = "gen3", dialect: str = "extended") -> bytes:
    """Return the bytes of the instructions in `text`, one a line; blank lines and `#` comments are skipped."""
    words, several = [], "\n" in text.strip()
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if line:
            try:
                words.append(parse_instruction(line, target, dialect).raw)
            except FormatError as error:
                raise (error.at(path=f"line {number}") if several else error) from None
    return b"".join(words)
