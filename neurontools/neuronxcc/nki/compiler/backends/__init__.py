"""`neuronxcc.nki.compiler.backends`: the folder that frameworks look into for `neuron.FrameworkKernel`."""
