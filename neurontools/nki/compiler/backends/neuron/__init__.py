"""`nki.compiler.backends.neuron`: where frameworks find `FrameworkKernel`."""
