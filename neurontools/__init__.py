"""Inspect, run and step AWS Neuron executables and NKI kernels without Neuron hardware.

The public names below are imported when first used, so that `import neurontools` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from neurontools.version import __version__

if TYPE_CHECKING:
    from neurontools import nki
    from neurontools.api import (
        Core,
        Evaluation,
        Instruction,
        Neff,
        Ntff,
        RankedResult,
        Result,
        Session,
        assemble,
        build,
        compile,
        decode,
        evaluate,
        open_core,
        open_core_session,
        open_neff,
        open_ntff,
        run,
        run_ranks,
        tunable,
    )


__all__ = [
    "Core",
    "Evaluation",
    "Instruction",
    "Neff",
    "Ntff",
    "RankedResult",
    "Result",
    "Session",
    "__version__",
    "assemble",
    "build",
    "compile",
    "decode",
    "evaluate",
    "nki",
    "open_core",
    "open_core_session",
    "open_neff",
    "open_ntff",
    "run",
    "run_ranks",
    "tunable",
]

_LAZY = {name: "neurontools.api" for name in __all__ if name not in ("__version__", "nki")}


def __getattr__(name: str) -> Any:
    if name == "nki":
        return import_module("neurontools.nki")
    if name not in _LAZY:
        raise AttributeError(f"module 'neurontools' has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
