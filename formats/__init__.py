"""Bytes and values of the Neuron file formats: instruction words, NEFF containers, status codes.

Nothing here behaves and nothing here prints; `emulator` gives the values behaviour, `neurontools` shows them.
"""
