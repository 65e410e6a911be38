"""`neurontools hbm`: where tensors lie, and what it costs to move them between host and device."""
