"""`neuronxcc.nki`: kernels of the first generation, over the present front end."""

from typing import Any

import neurontools.nki as present
from neurontools.neuronxcc.nki import compiler, isa, language, typing
from neurontools.neuronxcc.nki.kernel import baremetal, benchmark, jit, profile, simulate_kernel
from neurontools.neuronxcc.nki.refusals import unknown

trace = jit
tensor = typing.tensor

__all__ = [
    "baremetal", "benchmark", "compiler", "isa", "jit", "language", "profile", "simulate_kernel", "tensor", "trace",
    "typing",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise unknown("neuronxcc.nki", name, __all__, present)
