"""`neurontools err`: explain the errors of the Neuron runtime, driver and compiler."""
