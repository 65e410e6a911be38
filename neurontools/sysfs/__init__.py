"""`neurontools sysfs`: the Neuron driver's counters: make a tree of them, read, watch and clear one, real or made."""
