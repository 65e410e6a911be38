"""A dashboard as neuron-top: cores, CPUs, memory, of emulated sessions or of recorded reports."""
