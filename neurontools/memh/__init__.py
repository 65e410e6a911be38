"""`neurontools memh`: show the memory hierarchy, and what a program does with it."""
