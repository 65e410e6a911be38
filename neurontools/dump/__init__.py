"""The dump collector: what the Neuron runtime calls as `neuron-dump` when an execution fails.

It imports the standard library and `formats` only, so that it starts fast, and ends well whatever it finds.
"""
