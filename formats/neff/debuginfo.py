"""Debug info of a NEFF: from the i-th word of an engine to the kernel line it came from.

Each level is one file: asm (one entry per 64-byte slot) → backend → penguin → hlo → framework. An entry names its
parents by id; the file names the file they are in. Source: formats.md 3.9, isa.md 13 (inferred from public files).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from formats.named_tuple import NamedTuple
from formats.neff.fields import printable
from formats.neff.wire import Value, read_fields, unpack_varints
from formats.numerals import parse_decimal

__all__ = ["ENGINE_IDS", "LEVELS", "DebugFile", "DebugInstruction", "DebugStep", "SourceLocation", "chain", "locate"]

ENGINE_IDS: dict[str, int] = {"PE": 1, "Activation": 2, "Pool": 3, "DMA": 4, "DVE": 5, "SP": 6}
# Levels by the middle of their files' names (`debug_info_LEVEL….dbg`), and what people call them.
LEVELS: dict[str, str] = {"asm": "asm", "backend": "BIR", "penguin": "Penguin", "hlo": "HLO", "pttf": "framework"}
_KNOWN = 1 << 12  # entries kept as they were read
# asm, backend, penguin, hlo, framework: a chain that is longer runs in a circle.
_MAX_LEVELS = 8
# Of a fused instruction's many parents the first ones tell where it comes from.
_MAX_PARENTS = 32


class SourceLocation(NamedTuple):
    """Where a word comes from: `name` is the compiler's instruction name, `tensor` the tensor text of the level above.

    `file` and `line` are None where the file names the instruction but no line (some kernels carry none). `operation`
    is that of the graph, where the file has one (see `formats.neff.operations`).
    """

    file: str | None
    line: int | None
    name: str
    tensor: str | None = None
    kernel: str | None = None
    operation: str | None = None


class DebugInstruction(NamedTuple):
    """One entry: `parents` are ids one level up; `data` and `sync` are ids of predecessors on the same level."""

    id: int
    name: str
    parents: tuple[int, ...]
    data: tuple[int, ...]
    sync: tuple[int, ...]
    kind: int
    attributes: dict[str, str]
    data_kinds: tuple[int, ...]
    sync_kinds: tuple[int, ...]


class DebugStep(NamedTuple):
    """One entry on the way from a word up to the framework: its level's name, its id, its text, its line if it has one.

    `attributes` are the file's own, with indices into string tables as they stand.
    """

    level: str
    id: int
    name: str
    file: str | None
    line: int | None
    kernel: str | None
    attributes: dict[str, str]


class DebugFile:
    """One `.dbg` member; entries are decoded when they are asked for.

    Raises FormatError, on the first use of what is damaged.
    """

    def __init__(self, data: bytes, where: str) -> None:
        self.where = where
        self._data = data

    @cached_property
    def _parts(self) -> dict[int, list[Value]]:
        parts: dict[int, list[Value]] = {}
        for number, value in read_fields(self._data, self.where):
            parts.setdefault(number, []).append(value)
        return parts

    def _text(self, number: int) -> str:
        value = self._parts.get(number, [b""])[-1]
        return _string(value)

    @property
    def level(self) -> str:
        """Return what people call the file's level: asm, BIR, Penguin, HLO or framework."""
        name = self.where.rpartition("/")[2].removeprefix("debug_info_").partition(".")[0].partition("_")[0]
        return LEVELS.get(name, name)

    @property
    def description(self) -> str:
        """Return what the writer says the file is."""
        return self._text(1)

    @property
    def parent(self) -> str | None:
        """Return the name of the file one level up, without its folder and its subgraph suffix."""
        return self._text(2) or None

    @property
    def engine_id(self) -> int | None:
        """Return the engine's number, as ENGINE_IDS has it."""
        value = self._parts.get(4, [None])[-1]
        return value if isinstance(value, int) else None

    @cached_property
    def strings(self) -> tuple[str, ...]:
        """Return the string table."""
        return tuple(_string(value) for value in self._parts.get(5, ()))

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """Return the table of kernel names (field 7, seen where entries carry the attribute `kernel_name`)."""
        return tuple(_string(value) for value in self._parts.get(7, ()))

    def __len__(self) -> int:
        return len(self._parts.get(3, ()))

    def __getitem__(self, index: int) -> DebugInstruction:
        known = self._known
        found = known.get(index)
        if found is None:
            if len(known) >= _KNOWN:
                known.clear()
            found = known[index] = _instruction(self._parts.get(3, [])[index], f"{self.where}: entry {index}")
        return found

    @cached_property
    def _known(self) -> dict[int, DebugInstruction]:
        return {}  # entries that were read; many words come from one line

    @cached_property
    def _by_id(self) -> dict[int, int]:
        # HLO files give the module, its computations and the first instruction one id; the instruction stands last.
        return {_identity(raw, f"{self.where}: entry {index}"): index
                for index, raw in enumerate(self._parts.get(3, ()))}  # fmt: skip

    def find(self, number: int) -> DebugInstruction | None:
        """Return the entry with an id."""
        index = self._by_id.get(number)
        return None if index is None else self[index]


def _pick(table: tuple[str, ...], index: str | None) -> str | None:
    """Return the string that an attribute points to; attributes hold the index as text."""
    at = parse_decimal(index or "")
    return table[at] if at is not None and at < len(table) else None


def locate(asm: DebugFile, pc: int, open_parent: Callable[[DebugFile], DebugFile | None]) -> SourceLocation | None:
    """Return where the word in slot `pc` comes from, or None when its entry names no parent.

    `open_parent` gives the file one level up. File and line are taken from the first level that has them.
    """
    if not 0 <= pc < len(asm):
        return None
    level, entries = asm, [asm[pc]]
    name = entries[0].name
    kernel = tensor = None
    for depth in range(_MAX_LEVELS):
        for entry in entries:
            kernel = kernel or _pick(level.kernels, entry.attributes.get("kernel_name"))
            name = name or entry.name
            # asm is depth 0, backend 1, Penguin 2: the level whose names are tensor texts (isa.md 13)
            if depth == 2 and tensor is None:
                tensor = entry.name or None
            place = _line(level, entry)
            if place is not None:
                if tensor is None:
                    tensor = _tensor_above(level, entry, depth, open_parent)
                return SourceLocation(*place, name, tensor, kernel)
        # Each parent once: a file whose entries are each other's parents would double them with every level.
        numbers = dict.fromkeys(number for entry in entries for number in entry.parents)
        upper = open_parent(level) if numbers else None
        if upper is None:
            break
        entries = [found for found in map(upper.find, numbers) if found is not None]
        level = upper
    return SourceLocation(None, None, name, tensor, kernel) if name else None


def chain(asm: DebugFile, pc: int, open_parent: Callable[[DebugFile], DebugFile | None]) -> tuple[DebugStep, ...]:
    """Return every entry that the word in slot `pc` comes from, level by level: asm, BIR, Penguin, HLO, framework.

    Empty where the file has no such slot; a level may have several entries.
    """
    if not 0 <= pc < len(asm):
        return ()
    level, entries = asm, [asm[pc]]
    steps: list[DebugStep] = []
    for _ in range(_MAX_LEVELS):
        for entry in entries:
            file, line = _line(level, entry) or (None, None)
            kernel = _pick(level.kernels, entry.attributes.get("kernel_name"))
            steps.append(DebugStep(level.level, entry.id, entry.name, file, line, kernel, entry.attributes))
        numbers = dict.fromkeys(number for entry in entries for number in entry.parents)
        upper = open_parent(level) if numbers else None
        if upper is None:
            break
        entries = [found for found in map(upper.find, list(numbers)[:_MAX_PARENTS]) if found is not None]
        level = upper
    return tuple(steps)


def _tensor_above(
    level: DebugFile, entry: DebugInstruction, depth: int, open_parent: Callable[[DebugFile], DebugFile | None]
) -> str | None:
    """Return the tensor's text where it stands one level above the backend level, which carries the line."""
    if depth != 1 or not entry.parents:
        return None
    upper = open_parent(level)
    above = upper.find(entry.parents[0]) if upper is not None else None
    return above.name or None if above is not None else None


def _line(level: DebugFile, entry: DebugInstruction) -> tuple[str, int] | None:
    attributes = entry.attributes
    file = _pick(level.strings, attributes.get("kernel_file")) or attributes.get("source_file")
    line = parse_decimal(attributes.get("kernel_line") or attributes.get("source_line") or "")
    return (file, line) if file and line is not None else None


def _identity(raw: Value, where: str) -> int:
    """Return the id of an entry; it stands first, and is left out where it is zero."""
    if isinstance(raw, bytes):
        for number, value in read_fields(raw, where):
            if number == 1 and isinstance(value, int):
                return value
    return 0


def _instruction(raw: Value, where: str) -> DebugInstruction:
    number = kind = 0
    name = ""
    lists: dict[int, tuple[int, ...]] = {}
    attributes: dict[str, str] = {}
    for field, value in read_fields(raw if isinstance(raw, bytes) else b"", where):
        if field == 1 and isinstance(value, int):
            number = value
        elif field == 2:
            name = _string(value)
        elif field == 6 and isinstance(value, int):
            kind = value
        elif field == 7 and isinstance(value, bytes):
            pair = dict(read_fields(value, where))
            attributes[_string(pair.get(1, b""))] = _string(pair.get(2, b""))
        elif field in (3, 4, 5, 9, 10):
            lists[field] = lists.get(field, ()) + unpack_varints(value, where)
    return DebugInstruction(
        number,
        name,
        lists.get(3, ()),
        lists.get(4, ()),
        lists.get(5, ()),
        kind,
        attributes,
        lists.get(9, ()),
        lists.get(10, ()),
    )


def _string(value: Value) -> str:
    return printable(value.decode("utf-8", "backslashreplace")) if isinstance(value, bytes) else ""
