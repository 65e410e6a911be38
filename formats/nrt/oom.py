"""The runtime's report of device memory when an allocation fails: a table, or a list; read, checked and printed.

Also the block of a single NEFF that the runtime logs when it loads one. Layout: runtime.md 3.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from formats.named_tuple import NamedTuple
from formats.nrt.memory import BY_KEY, CATEGORIES
from formats.nrt.memory_sizes import size_text

__all__ = [
    "BLOCK", "COLUMNS", "NOT_GIVEN", "TABLE_FILE", "OomRow", "OomTable", "failed_line", "heading_lines", "model_block",
    "row_line", "sharing_line", "table_file", "table_lines",
]  # fmt: skip

NOT_GIVEN = "n/a"
_LABEL_WIDTH = 14
# Key, heading, width of each column; every text is centred, the odd blank to the right.
COLUMNS: tuple[tuple[str, tuple[str, str], int], ...] = (
    ("total", ("", "TOTAL"), 10),
    *((one.key, one.heads, 11 if "Collectives" in one.heads else 10) for one in CATEGORIES),
)
BLOCK = tuple(one.key for one in CATEGORIES if one.by_model)


class OomRow(NamedTuple):
    """One row: what it is of, bytes by category, None where the table has "n/a"; `stack` if the row names one."""

    kind: Literal["device", "core", "model"]
    number: int
    values: Mapping[str, int | None]
    stack: int | None = None

    @property
    def label(self) -> str:
        """Return the text in front of the row, without its indent."""
        if self.kind == "device":
            where = "Overall" if self.stack is None else f"HBM {self.stack}"
            return f"ND {self.number} {where}"
        return f"\\_{'NC' if self.kind == 'core' else 'NEFF'} {self.number}"

    @property
    def total(self) -> int:
        """Return the sum of what the row has numbers for."""
        return sum(value or 0 for key, value in self.values.items() if key != "total")


class OomTable(NamedTuple):
    """A whole table, and the names of the NEFFs by the number that the rows have."""

    rows: tuple[OomRow, ...]
    names: Mapping[int, str]


def _line(label: str, cells: Sequence[str]) -> str:
    shown = [_centred(text, width) for text, (_, _, width) in zip(cells, COLUMNS, strict=True)]
    return f"{label.ljust(_LABEL_WIDTH)}|" + "|".join(shown) + "|"


def _centred(text: str, width: int) -> str:
    before = max(0, (width - len(text)) // 2)
    return (" " * before + text).ljust(width)


def row_line(row: OomRow) -> str:
    """Return one row as the runtime prints it."""
    cells = [size_text(row.values.get("total") or row.total)]
    for key, _, _ in COLUMNS[1:]:
        value = row.values.get(key)
        cells.append(NOT_GIVEN if value is None else size_text(value))
    return _line(("  " if row.kind == "model" else "") + row.label, cells)


def heading_lines() -> list[str]:
    """Return the two lines above the rows."""
    return [_line("", [heads[half] for _, heads, _ in COLUMNS]) for half in (0, 1)]


def table_lines(table: OomTable) -> list[str]:
    """Return a table as the runtime prints it, and the names of the NEFFs below it."""
    lines = [*heading_lines(), *map(row_line, table.rows)]
    if table.names:
        lines += ["", "NEFF id to name mapping:", *(f'{number}: "{name}"' for number, name in table.names.items())]
    return lines


def model_block(name: str, values: Mapping[str, int], indent: str = "        ", total: int | None = None) -> list[str]:
    """Return the lines on one NEFF that the runtime logs at a load, its total first, as it was read or the sum."""
    whole = sum(values.get(key, 0) for key in BLOCK) if total is None else total
    lines = [f"Per NEFF memory usage breakdown for [{name}]:", f"{indent}Total: {size_text(whole)}"]
    return lines + [f"{indent}* {BY_KEY[key].label}: {size_text(values.get(key, 0))}" for key in BLOCK]


def failed_line(nbytes: int, alignment: int, usage: str, device: int, core: int) -> str:
    """Return the line that says which allocation found no room."""
    aligned = size_text(alignment) if alignment > 1 else "none"
    return f"Failed to allocate {size_text(nbytes)} (alignment: {aligned}, usage: {usage}) on ND {device}:NC {core}"


def sharing_line(lnc: int, cores: Iterable[int]) -> str:
    """Return the line that says which cores use the stack."""
    return f"LNC size is {lnc}. Neuron Cores using this HBM: " + " and ".join(f"NC {core}" for core in cores)


TABLE_FILE = re.compile(r"neuron_mem_table_device_(\d{1,4})_hbm_(\d{1,3})\.log", re.ASCII)


def table_file(device: int, stack: int) -> str:
    """Return the name of the file, in /tmp, that holds the same table."""
    return f"neuron_mem_table_device_{device}_hbm_{stack}.log"
