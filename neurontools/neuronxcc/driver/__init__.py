"""`neuronxcc.driver`: the compiler, as a package that frameworks import."""
