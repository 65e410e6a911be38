"""`neuronxcc.nki.compile`: kernels of the first generation by the name that frameworks know (compiler.md 5.7)."""

from neurontools.neuronxcc.nki.kernel import Kernel as GenericKernel

__all__ = ["GenericKernel"]
