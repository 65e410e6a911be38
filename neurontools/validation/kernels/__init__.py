"""Kernels of our own for the shapes of published measurements; what they leave open is as the publication says."""
