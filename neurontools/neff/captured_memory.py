"""Device memory as a capture's runtime recorded it, by the names that its ledger has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.nrt.memory import BY_KEY, USES
from formats.numerals import version_numbers

if TYPE_CHECKING:
    from formats.ntff import Ntff

__all__ = ["LEDGER", "captured_memory", "runtime_version"]

# The ledger's name of every category that captures have. Version 4 has one for all rings: the programs it was captured
# of touch inputs and outputs only.
LEDGER: dict[str, str] = {name: BY_KEY[use.category].name for name, use in USES.items()}
LEDGER["dma rings"] = BY_KEY["rings_io"].name


def captured_memory(ntff: Ntff) -> dict[str, int]:
    """Return the bytes of each category over all cores; a category that nobody has named keeps the capture's name."""
    found: dict[str, int] = {}
    for core in ntff.cores:
        for one in core.memory:
            if one.nbytes:
                name = LEDGER.get(one.category, one.category)
                found[name] = found.get(name, 0) + one.nbytes
    return found


def runtime_version(ntff: Ntff) -> tuple[int, ...] | None:
    """Return the version of the runtime that wrote a capture, None where it does not say."""
    return version_numbers(ntff.metadata.runtime.partition(" ")[0])
