"""`neurontools overlap`: show how compute and collectives share the DMA engines."""
