"""The DMA system of a device: engines with rings of descriptors, queues in order, the transfers on them."""
