"""`nki.framework.kernel`: what `nki.jit` returns; a framework puts its own `__call__` in while it traces."""

from neurontools.nki.kernel import Kernel

__all__ = ["Kernel"]
