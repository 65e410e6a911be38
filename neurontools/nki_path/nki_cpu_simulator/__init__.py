"""`nki_cpu_simulator`: the package name under which nki-library's simulation mode looks for a CPU `nki`.

`nki_cpu_simulator.nki` and everything below it are the modules of `nki`. Source: nki.md 4.1.
"""

import sys
from importlib import import_module

import nki

__all__ = ["nki"]

_SUBMODULES = (
    "builtin",
    "collectives",
    "compiler",
    "dtype",
    "isa",
    "isa.constants",
    "language",
    "language.dtypes",
    "simulator",
    "tensor",
    "typing",
)

sys.modules[f"{__name__}.nki"] = nki
sys.modules.update({f"{__name__}.nki.{name}": import_module(f"nki.{name}") for name in _SUBMODULES})
