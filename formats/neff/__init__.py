"""NEFF, the container that the Neuron compiler writes and the Neuron runtime loads: tolerant reader, strict writer.

`open_neff` reads the header; the archive is inflated, and every member parsed, when it is first needed. Nothing here
imports NumPy or protobuf. Source: formats.md 1-3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.engines import ENGINES
from formats.limits import DEFAULT_LIMITS, Limits
from formats.neff.archive import Member
from formats.neff.debuginfo import SourceLocation
from formats.neff.definition import EXTENDED_FEATURE, Definition, Queue, Variable
from formats.neff.graph import TensorInfo
from formats.neff.header import FEATURE_BITS, HEADER_SIZE, FeatureBit, Header, feature_names
from formats.neff.problem import Problem
from formats.neff.reader import Neff, open_neff
from formats.neff.subgraph import Subgraph
from formats.neff.transfers import Descriptor, DmaBlock

if TYPE_CHECKING:
    from formats.neff.packing import PackResult, pack, unpack
    from formats.neff.writer import NeffWriter
    from formats.neff.writer_subgraph import SubgraphWriter

__all__ = [
    "DEFAULT_LIMITS",
    "ENGINES",
    "EXTENDED_FEATURE",
    "FEATURE_BITS",
    "HEADER_SIZE",
    "Definition",
    "Descriptor",
    "DmaBlock",
    "FeatureBit",
    "Header",
    "Limits",
    "Member",
    "Neff",
    "NeffWriter",
    "PackResult",
    "Problem",
    "Queue",
    "SourceLocation",
    "Subgraph",
    "SubgraphWriter",
    "TensorInfo",
    "Variable",
    "feature_names",
    "open_neff",
    "pack",
    "unpack",
]

# Reading is the common case: what writes is imported when it is asked for.
_LAZY = {
    "PackResult": "packing",
    "pack": "packing",
    "unpack": "packing",
    "NeffWriter": "writer",
    "SubgraphWriter": "writer_subgraph",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        from importlib import import_module  # deferred: start-up

        found = globals()[name] = getattr(import_module(f"formats.neff.{_LAZY[name]}"), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
