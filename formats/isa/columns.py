"""Whole streams as columns: one array per field, for questions over many words at once. NumPy is imported on use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.errors import FormatError
from formats.isa.codec import decode_stream, generation_of, is_extended
from formats.isa.extension_dma import WidePattern
from formats.isa.field import Field
from formats.isa.instruction import EXTENSION_OPCODE, Instruction
from formats.isa.operand import DmaAddressField, DmaPatternField, Pattern
from formats.isa.registry import BY_OPCODE
from formats.isa.unknown import Unknown
from formats.neuron_core import WORD
from formats.targets import Target

if TYPE_CHECKING:
    import numpy

    Columns = dict[str, numpy.ndarray[Any, Any]]

__all__ = ["columns", "columns_by_class"]


def _words(data: bytes) -> Any:
    import numpy as np

    if len(data) % WORD:
        raise FormatError(
            "stream is not made of whole words", expected="a multiple of 64 bytes", got=f"{len(data)} bytes"
        )
    return np.frombuffer(data, np.uint8).reshape(-1, WORD)


def columns(data: bytes, cls: type[Instruction] | None = None) -> Columns:
    """Return one array per header field over all 64-byte words, or per field of `cls` over its words.

    With `cls` the key `index` gives the number of each word in the stream. Patterns become columns named
    `field.address`, `field.steps` (n, dims) and `field.counts` (n, dims). A stream with extension words is refused;
    `columns_by_class` takes those too.
    """
    import numpy as np

    words = _words(data)
    if (words[:, 0] == EXTENSION_OPCODE).any():
        raise FormatError("columns need a stream without extension words")
    if cls is None:
        return _fields(words, Instruction.HEADER)
    index = np.flatnonzero(words[:, 0] == cls.OPCODE)
    return {"index": index, **_fields(words[index], cls.FIELDS)}


def columns_by_class(
    data: bytes, target: str | Target = "gen3", dialect: str = "neuron"
) -> dict[type[Instruction], Columns]:
    """Return the columns of every class that occurs in a stream, classes as `decode_stream` would give them.

    Keys of each class's columns: `index` (number of the instruction in the stream) and what `columns` gives. Words are
    sorted by opcode once and columns are views of that copy. Words without a class are under `Unknown`, header only.
    """
    import numpy as np

    words, generation = _words(data), generation_of(target)
    if is_extended(dialect) and (words[:, 0] == EXTENSION_OPCODE).any():
        return _by_decoding(data, target)
    if not len(words):
        return {}
    extended = is_extended(dialect)
    order = np.argsort(words[:, 0], kind="stable")
    ordered = words[order]
    opcodes, starts = np.unique(ordered[:, 0], return_index=True)
    result: dict[type[Instruction], Columns] = {}
    strange: list[Any] = []
    for opcode, start, stop in zip(opcodes.tolist(), starts.tolist(), [*starts[1:].tolist(), len(words)], strict=True):
        cls, index, chosen = BY_OPCODE[opcode], order[start:stop], ordered[start:stop]
        if cls is None or generation not in cls.GENERATIONS:
            strange.append(index)
            continue
        if not extended:
            ours = _uses_ours(chosen, cls)
            if ours.any():
                strange.append(index[ours])
                index, chosen = index[~ours], chosen[~ours]
        if len(index):
            result[cls] = {"index": index, **_fields(chosen, cls.FIELDS)}
    if strange:
        index = np.sort(np.concatenate(strange))
        result[Unknown] = {"index": index, **_fields(words[index], Instruction.HEADER)}
    return result


def _uses_ours(words: Any, cls: type[Instruction]) -> Any:
    import numpy as np

    found = np.zeros(len(words), bool)
    mask = cls.OURS_MASK.to_bytes(WORD, "little")
    for offset in (i for i in range(WORD) if mask[i]):
        found |= (words[:, offset] & mask[offset]) != 0
    for offset, limit in cls.OURS_CODES:
        found |= words[:, offset] >= limit
    return found


def _by_decoding(data: bytes, target: str | Target) -> dict[type[Instruction], Columns]:
    """Return the columns of a stream whose words differ in length: grouped one by one, then read in bulk."""
    import numpy as np

    groups: dict[type[Instruction], list[tuple[int, bytes]]] = {}
    for number, word in enumerate(decode_stream(data, target, "extended")):
        groups.setdefault(type(word), []).append((number, word.raw))
    result: dict[type[Instruction], Columns] = {}
    for cls, rows in groups.items():
        fields = Instruction.HEADER if cls is Unknown else cls.FIELDS
        raw = b"".join(r[:WORD] if cls is Unknown else r for _, r in rows)
        result[cls] = {
            "index": np.array([n for n, _ in rows]),
            **_fields(np.frombuffer(raw, np.uint8).reshape(len(rows), -1), fields),
        }
    return result


def _fields(words: Any, fields: dict[str, Field[Any]]) -> Columns:
    result: Columns = {}

    def column(offset: int, code: str, count: int = 1) -> Any:
        stop = offset + int(code[1]) * count
        # A view, not a copy: the last axis is contiguous, so its bytes can be read as wider numbers in place.
        values = words[:, offset:stop].view("<" + code)
        return values if count > 1 else values[:, 0]

    for name, field in fields.items():
        at = field.offset
        if isinstance(field, Pattern):
            step, count, size = ("i4", "u4", 4) if field.wide else ("i2", "u2", 2)
            result[f"{name}.address"] = column(at, "u4")
            result[f"{name}.steps"] = column(at + 4, step, field.dims)
            result[f"{name}.counts"] = column(at + 4 + size * field.dims, count, field.dims)
        elif isinstance(field, DmaPatternField):
            result[f"{name}.steps"], result[f"{name}.counts"] = column(at, "i4", 2), column(at + 8, "u2", 2)
        elif isinstance(field, WidePattern):
            half = field.size // 2
            result[f"{name}.steps"] = column(at, "i4", half // 4)
            result[f"{name}.counts"] = column(at + half, "u4", half // 4)
        elif isinstance(field, DmaAddressField):
            result[name] = column(at, "u8")
        elif field.kind in ("nibble", "bit"):
            low = field.mask >> (8 * at)
            result[name] = (words[:, at] & low) >> ((low & -low).bit_length() - 1)
        elif field.kind in ("text", "bytes"):
            result[name] = words[:, at : at + field.size]
        elif field.kind in ("float32", "immediate"):
            result[name] = column(at, "f4")
        else:
            result[name] = column(at, f"{'i' if getattr(field, 'signed', False) else 'u'}{field.size}")
    return result
