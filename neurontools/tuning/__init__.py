"""Kernels tried out in processes of their own: evaluation, search for the best variant, many kernels at once."""
