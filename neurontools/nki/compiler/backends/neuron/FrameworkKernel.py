"""`nki.compiler.backends.neuron.FrameworkKernel`: what frameworks subclass."""

from neurontools.nki.compile import GenericKernel

__all__ = ["UnifiedKernel"]


class UnifiedKernel(GenericKernel):
    """A kernel that `trace` makes for a framework."""
