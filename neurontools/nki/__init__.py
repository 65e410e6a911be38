"""The NKI front end: `nki.jit`, `nki.simulate`, and the modules that kernels import.

`install()` makes `import nki` find this package.  Kernels are traced (one run of the Python body for each program
id), built into a NEFF and executed by the emulator; nothing here computes.
"""

from typing import TYPE_CHECKING

from neurontools.nki import collectives, dtype, errors, isa, language, simulator, tensor, typing
from neurontools.nki.alias import install, uninstall
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.kernel import Kernel, cpu_simulate, jit, simulate
from neurontools.nki.unknown import of_module

__all__ = [
    "Kernel",
    "NkiValidationError",
    "collectives",
    "cpu_simulate",
    "dtype",
    "errors",
    "install",
    "isa",
    "jit",
    "language",
    "simulate",
    "simulator",
    "tensor",
    "typing",
    "uninstall",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        """Say which name may be meant."""
        raise of_module("nki", name, __all__)
