"""From bytes to instructions and back: single words, whole streams, columns, text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from formats.errors import FormatError
from formats.isa.instruction import EXTENSION_OPCODE, WORD, Instruction, Unknown
from formats.isa.registry import BY_NAME, lookup
from formats.targets import Target, resolve_target

if TYPE_CHECKING:
    import numpy

__all__ = ["Stream", "assemble", "columns", "decode", "decode_stream", "parse_instruction"]


def _generation(target: str | Target) -> str:
    return target if isinstance(target, str) and target in _GENERATIONS else resolve_target(target).generation


_GENERATIONS = frozenset(("gen2", "gen3", "gen4"))


def decode(raw: bytes, target: str | Target = "gen3", dialect: str = "extended") -> Instruction:
    """Return the instruction that one word is: 64 bytes, or a multiple of it for extension words.

    An opcode that is not established, or not on `target`, gives an `Unknown` that keeps the bytes; a wrong length is a
    FormatError. `dialect` is "neuron" for words of real files, where nothing of ours has a meaning.
    """
    raw = bytes(raw)
    if len(raw) < WORD or len(raw) % WORD:
        raise FormatError("not a whole instruction word", expected="a multiple of 64 bytes", got=f"{len(raw)} bytes")
    cls = lookup(raw, extended=_extended(dialect))
    if _generation(target) not in cls.GENERATIONS:
        cls = Unknown
    if len(raw) != (cls.SIZE if cls is not Unknown else _unknown_size(raw, _extended(dialect))):
        raise FormatError("more than one instruction word", expected=f"{cls.SIZE} bytes", got=f"{len(raw)} bytes")
    return cls.from_raw(raw)


def _extended(dialect: str) -> bool:
    if dialect not in ("neuron", "extended"):
        raise FormatError("unknown dialect", expected="neuron or extended", got=repr(dialect))
    return dialect == "extended"


def _unknown_size(raw: bytes, extended: bool) -> int:
    if extended and raw[0] == EXTENSION_OPCODE:
        return max(1, int.from_bytes(raw[14:16], "little")) * WORD
    return WORD


class Stream(Sequence[Instruction]):
    """The instructions of one engine in program order; decoded when asked for.

    `offsets[i]` is the byte offset of instruction i. In the neuron dialect it is always 64 * i.
    """

    def __init__(self, data: bytes, target: str | Target = "gen3", dialect: str = "neuron", path: str | None = None) -> None:
        if len(data) % WORD:
            raise FormatError("stream is not made of whole words", path=path, offset=len(data) // WORD * WORD,
                              expected="a multiple of 64 bytes", got=f"{len(data)} bytes")
        self.data, self.generation, self.dialect, self.path = data, _generation(target), dialect, path
        self._extended = _extended(dialect)
        self._offsets: Sequence[int] | None = None

    @property
    def offsets(self) -> Sequence[int]:
        """Return the byte offset of every instruction."""
        if self._offsets is None:
            data = self.data
            if not self._extended or EXTENSION_OPCODE not in data[::WORD]:
                self._offsets = range(0, len(data), WORD)
            else:
                offsets, position = [], 0
                while position < len(data):
                    offsets.append(position)
                    position += _unknown_size(data[position:position + 16], True) if data[position] == EXTENSION_OPCODE else WORD
                if position != len(data):
                    raise FormatError("extension word ends after the stream", path=self.path, offset=offsets[-1],
                                      expected=f"at most {len(data) - offsets[-1]} bytes", got=f"{position - offsets[-1]} bytes")
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
        data = self.data
        cls = lookup(data[offset:offset + WORD], extended=self._extended)
        if self.generation not in cls.GENERATIONS:
            cls = Unknown
        size = cls.SIZE if cls is not Unknown else _unknown_size(data[offset:offset + 16], self._extended)
        return cls.from_raw(data[offset:offset + size])

    def __iter__(self) -> Iterator[Instruction]:
        at = self._at
        return (at(offset) for offset in self.offsets)


def decode_stream(data: bytes | memoryview, target: str | Target = "gen3", dialect: str = "neuron",
                  path: str | None = None) -> Stream:
    """Return the instructions of one engine's stream, lazily."""
    return Stream(bytes(data), target, dialect, path)


def parse_instruction(text: str, target: str | Target = "gen3") -> Instruction:
    """Return the instruction that one line of assembler text gives."""
    name, _, operands = text.strip().partition(" ")
    cls = BY_NAME.get(name.upper())
    if cls is None:
        if name.upper().startswith("OPCODE_"):
            return _parse_unknown(name, operands)
        raise FormatError("unknown instruction", got=repr(name))
    if _generation(target) not in cls.GENERATIONS:
        raise FormatError(f"{cls.NAME} does not exist on {target}", expected=" or ".join(cls.GENERATIONS))
    return cls.parse(operands)


def _parse_unknown(name: str, operands: str) -> Instruction:
    from formats.isa.instruction import _split_hidden, parse_sync
    body, hidden = _split_hidden(operands)
    try:
        if "raw" in hidden:
            return Unknown.from_raw(bytes.fromhex(hidden["raw"]))
        word = bytearray(WORD)
        word[0], word[1] = int(name[7:], 16), 0x10
        for token in body.split():
            sync = parse_sync(token)
            if sync is not None:
                kind, mode, index, value = sync
                word[4 if kind == "wait" else 6], word[5 if kind == "wait" else 7] = mode, index
                if kind == "wait":
                    word[8:12] = value.to_bytes(4, "little")
            elif token.startswith("bytes="):
                word[12:] = bytes.fromhex(token[6:])
            else:
                raise FormatError("an unknown word has no such operand", got=token)
    except (ValueError, OverflowError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError("not an unknown word", field=name, expected="bytes= and hexadecimal digits") from None
    if len(word) != WORD:
        raise FormatError("wrong length", field="bytes", expected="52 bytes", got=f"{len(word) - 12} bytes")
    return Unknown.from_raw(bytes(word))


def assemble(text: str, target: str | Target = "gen3") -> bytes:
    """Return the bytes of the instructions in `text`, one a line; blank lines and `#` comments are skipped."""
    words = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if line:
            try:
                words.append(parse_instruction(line, target).raw)
            except FormatError as error:
                raise error if "\n" not in text.strip() else error.at(path=f"line {number}") from None
    return b"".join(words)


def columns(data: bytes, cls: type[Instruction] | None = None) -> dict[str, numpy.ndarray[Any, Any]]:
    """Return one array per header field over all 64-byte words, or per field of `cls` over its words.

    With `cls` the key `index` gives the number of each word in the stream. Patterns become columns named
    `field.address`, `field.steps` (n, dims) and `field.counts` (n, dims). A stream with extension words is refused.
    """
    import numpy as np

    from formats.isa.operand import DmaAddressField, DmaPatternField, Pattern
    if len(data) % WORD:
        raise FormatError("stream is not made of whole words", expected="a multiple of 64 bytes", got=f"{len(data)} bytes")
    words = np.frombuffer(data, np.uint8).reshape(-1, WORD)
    if (words[:, 0] == EXTENSION_OPCODE).any():
        raise FormatError("columns need a stream without extension words")
    result: dict[str, Any] = {}
    if cls is None:
        cls, chosen = Instruction, words
    else:
        result["index"] = np.flatnonzero(words[:, 0] == cls.OPCODE)
        chosen = words[result["index"]]

    def column(offset: int, code: str, count: int = 1) -> Any:
        size = np.dtype(code).itemsize * count
        values = np.ascontiguousarray(chosen[:, offset:offset + size]).view("<" + code)
        return values if count > 1 else values[:, 0]

    for name, field in (cls.FIELDS or Instruction.HEADER).items():
        if isinstance(field, Pattern):
            result[f"{name}.address"] = column(field.offset, "u4")
            result[f"{name}.steps"] = column(field.offset + 4, "i2", field.dims)
            result[f"{name}.counts"] = column(field.offset + 4 + 2 * field.dims, "u2", field.dims)
        elif isinstance(field, DmaPatternField):
            result[f"{name}.steps"], result[f"{name}.counts"] = column(field.offset, "i4", 2), column(field.offset + 8, "u2", 2)
        elif isinstance(field, DmaAddressField):
            result[name] = column(field.offset, "u8")
        elif field.kind in ("nibble", "bit"):
            low = field.mask >> (8 * field.offset)
            result[name] = (chosen[:, field.offset] & low) >> ((low & -low).bit_length() - 1)
        elif field.kind in ("text", "bytes"):
            result[name] = chosen[:, field.offset:field.offset + field.size]
        elif field.kind in ("float32", "immediate"):
            result[name] = column(field.offset, "f4")
        else:
            signed = "i" if getattr(field, "signed", False) else "u"
            result[name] = column(field.offset, f"{signed}{field.size}")
    return result
