"""The built file of a launch, kept as `kernel.neff` where NKI_ARTIFACTS_DIR asks for it (runtime.md 11.4)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.whole_files import write_beside
from neurontools.nki.switches import switch

if TYPE_CHECKING:
    from formats.neff import Neff

__all__ = ["NAME", "VARIABLE", "keep"]

VARIABLE = "NKI_ARTIFACTS_DIR"
NAME = "kernel.neff"


def keep(neff: Neff | bytes) -> None:
    """Write a built file where the variable asks for it; FormatError where that cannot be done."""
    folder = switch(VARIABLE)
    if not folder:
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        write_beside(Path(folder, NAME), neff if isinstance(neff, bytes) else neff.to_bytes())
    except OSError as error:
        raise FormatError(f"{VARIABLE}: {error.strerror or error}", path=folder) from None
