"""`neurontools core`: look into a core dump, say what went wrong, compare, take apart."""
