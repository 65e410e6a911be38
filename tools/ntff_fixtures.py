"""The capture fixture: `python -m tools ntff-fixtures`.

It holds an emulated run of the program beside it, a quarter slower than the emulator has it, so that comparing the two
has something to say. Device times in it are those of the emulator that wrote.
"""

from __future__ import annotations

import numpy as np

from formats.neff import open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from tests.formats.ntff.made import of_a_run
from tools.generate import ROOT

__all__ = ["files"]


def files() -> dict[str, bytes]:
    """Return the capture by its path."""
    source = ROOT / "fixtures" / "ntff" / "double.s"
    neff = open_neff(to_neff(parse_program(source.read_text(), "fixtures/ntff/double.s")))
    return {"fixtures/ntff/double.ntff": of_a_run(neff, {"x": np.ones((128, 64), np.float32)})}
