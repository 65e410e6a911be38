"""Values of the Neuron runtime: status codes and file names."""
