"""NTFF: profile captures of the Neuron runtime, read-only."""

from __future__ import annotations

from formats.ntff.clocks import Clock, Clocks
from formats.ntff.metadata import CoreCapture, DmaRing, MemoryUse, Metadata, Section
from formats.ntff.pcmap import Edit, PcMap
from formats.ntff.reader import Buffer, Ntff, open_ntff
from formats.ntff.records import (
    LAYOUT,
    ClockChange,
    DmaPacket,
    Executed,
    Layout,
    RawRecord,
    SignalChange,
)

__all__ = [
    "LAYOUT",
    "Buffer",
    "Clock",
    "ClockChange",
    "Clocks",
    "CoreCapture",
    "DmaPacket",
    "DmaRing",
    "Edit",
    "Executed",
    "Layout",
    "MemoryUse",
    "Metadata",
    "Ntff",
    "PcMap",
    "RawRecord",
    "Section",
    "SignalChange",
    "open_ntff",
]
