"""`neurontools cc groups`: check replica groups of collective operations."""
