"""`neurontools mem`: say what takes device memory, whether models fit together, and why not."""
