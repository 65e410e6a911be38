"""`neuronxcc.nki`: kernels of the first generation, over the present front end."""

from neurontools.neuronxcc.nki import compiler, isa, language, typing
from neurontools.neuronxcc.nki.kernel import baremetal, benchmark, jit, profile, simulate_kernel

trace = jit
tensor = typing.tensor

__all__ = [
    "baremetal", "benchmark", "compiler", "isa", "jit", "language", "profile", "simulate_kernel", "tensor", "trace",
    "typing",
]  # fmt: skip
