"""Device memory as counted of each public file beside what a capture of it recorded: docs/memory-captures.md.

`python -m tools.memory_captures FOLDER` makes the page again of every capture below a folder that lies beside its NEFF.
The files themselves are no part of the project.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from formats.errors import NeuronError
from formats.neff import open_neff
from formats.neff.memory import device_memory
from formats.ntff import open_ntff
from neurontools.neff.captured_memory import captured_memory, runtime_version

__all__ = ["PATH", "Compared", "compare", "main", "page"]

PATH = Path(__file__).resolve().parents[1] / "docs" / "memory-captures.md"
_HEAD = """# Device memory: counted and captured

What `neurontools neff load-check` and `neurontools mem` count of a file, beside the memory records in public captures
of the same file (`neurontools neff load-check FILE --capture NTFF` shows one). Made by
`python -m tools.memory_captures FOLDER`; the files are not part of the project. Bytes are over all physical cores, the
counted in front of a slash where the captured differ; "-" is zero in both.

| category | captures that have it | equal to the byte | least and most, counted / captured | known by |
|---|---|---|---|---|
"""


class Compared(NamedTuple):
    """One capture: its name, the runtime that wrote it, (counted, captured, known by) by category."""

    name: str
    runtime: str
    rows: dict[str, tuple[int, int, str]]


def compare(folder: Path) -> list[Compared]:
    """Return every capture below a folder that has its NEFF beside it."""
    found = []
    for path in sorted(folder.rglob("*.ntff")):
        beside = [path.with_suffix(".neff"), *sorted(path.parent.glob("*.neff"))]
        capture = open_ntff(path)
        for candidate in beside:
            try:
                neff = open_neff(candidate)
            except (OSError, NeuronError):
                continue
            if neff.header.uuid.hex().startswith(capture.uuid):
                break
        else:
            continue
        taken = captured_memory(capture)
        rows = {one.name: (one.bytes, taken.pop(one.name, 0), one.provenance)
                for one in device_memory(neff, runtime_version(capture))}  # fmt: skip
        rows |= {name: (0, nbytes, "captured only") for name, nbytes in taken.items()}
        runtime = capture.metadata.runtime.partition(" ")[0]
        found.append(Compared(str(path.relative_to(folder)), runtime, rows))
    return found


def page(found: list[Compared]) -> str:
    """Return the page: a row a category, then a row a capture."""
    names = list(dict.fromkeys(name for one in found for name in one.rows))
    lines = []
    for name in names:
        cells = [one.rows[name] for one in found if name in one.rows]
        there = [(counted, captured) for counted, captured, _ in cells if counted or captured]
        equal = sum(counted == captured for counted, captured in there)
        ratios = [counted / captured for counted, captured, known in cells if captured and known != "captured only"]
        span = f"{min(ratios):.4f} to {max(ratios):.4f}" if ratios else "-"
        known = ", ".join(dict.fromkeys(known for _, _, known in cells))
        lines.append(f"| {name} | {len(there)} | {equal} | {span} | {known} |")
    lines += ["", "| capture | runtime | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for one in found:
        cells_of = [_cell(one.rows.get(name)) for name in names]
        lines.append(f"| {one.name} | {one.runtime} | " + " | ".join(cells_of) + " |")
    return _HEAD + "\n".join([*lines, ""])


def _cell(row: tuple[int, int, str] | None) -> str:
    if row is None or not (row[0] or row[1]):
        return "-"
    counted, captured, known = row
    if known == "captured only":
        return f"{captured:,}"
    return f"{captured:,}" if counted == captured else f"{counted:,} / {captured:,}"


def main(arguments: list[str]) -> int:
    """Write the page of a folder."""
    if len(arguments) != 1:
        print("usage: python -m tools.memory_captures FOLDER", file=sys.stderr)
        return 2
    PATH.write_text(page(compare(Path(arguments[0]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
