"""Panes of memory: SBUF and PSUM as maps, HBM by variables, and one tensor at a time."""

from __future__ import annotations

from neurontools.tui.maps.psum import PsumMap
from neurontools.tui.maps.sbuf import SbufMap
from neurontools.tui.maps.tile import TileInspector
from neurontools.tui.maps.variables import HbmVariables

__all__ = ["HbmVariables", "PsumMap", "SbufMap", "TileInspector"]
