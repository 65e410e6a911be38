"""The dump collector: what the Neuron runtime calls as `neuron-dump` when an execution fails.

It imports the standard library and `formats` only, so that it starts fast; whatever it finds, it ends with
a status and a line.
"""
