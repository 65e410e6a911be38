"""`neurontools monitor`: metrics as neuron-monitor streams them: make, check, sum up and compare them."""
