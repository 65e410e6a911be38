"""`neurontools doctor`: check the environment of a workload against everything that Neuron documents."""
