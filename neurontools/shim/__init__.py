"""What stands in for the parts of the Neuron SDK that other programs look for: a folder of them, one writer each."""
