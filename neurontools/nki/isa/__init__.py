"""`nki.isa`: one function per NeuronCore instruction; each checks its documented limits and appends to the trace."""

# ruff: noqa: F403
# A star import takes what the `__all__` of a module lists: a new instruction is named there and nowhere else.

import typing as _typing
from types import ModuleType as _Module

from neurontools.nki.errors import NkiValidationError as NkiValidationError
from neurontools.nki.isa import constants as constants
from neurontools.nki.isa.activate2 import *
from neurontools.nki.isa.activations import *
from neurontools.nki.isa.constants import *
from neurontools.nki.isa.dma import dma_copy as dma_copy
from neurontools.nki.isa.dma import dma_transpose as dma_transpose
from neurontools.nki.isa.dma_indirect import dma_compute as dma_compute
from neurontools.nki.isa.gpsimd import *
from neurontools.nki.isa.instruction import *
from neurontools.nki.isa.matmul import *
from neurontools.nki.isa.moves import *
from neurontools.nki.isa.multicore import *
from neurontools.nki.isa.mx import *
from neurontools.nki.isa.random_numbers import *
from neurontools.nki.isa.reduce import tensor_reduce as tensor_reduce
from neurontools.nki.isa.registers import *
from neurontools.nki.isa.search import *
from neurontools.nki.isa.selection import *
from neurontools.nki.isa.vector import *
from neurontools.nki.unknown import of_module as _of_module

# What a kernel's star import takes: no module of ours but `constants`. A type checker must not see this list, or it
# would take nothing else for public.
globals()["__all__"] = [
    name
    for name, one in list(globals().items())
    if not name.startswith("_") and (name == "constants" or not isinstance(one, _Module))
]

if not _typing.TYPE_CHECKING:

    def __getattr__(name):
        """Say which name may be meant."""
        raise _of_module("nki.isa", name, globals())
