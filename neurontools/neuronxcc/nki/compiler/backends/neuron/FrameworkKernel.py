"""`neuronxcc.nki.compiler.backends.neuron.FrameworkKernel`: what frameworks subclass."""

from neurontools.neuronxcc.nki.kernel import Kernel

__all__ = ["UnifiedKernel"]


class UnifiedKernel(Kernel):
    """A kernel that `trace` makes for a framework."""
