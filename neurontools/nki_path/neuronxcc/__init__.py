"""`import neuronxcc` for programs with the folder above on PYTHONPATH: the modules of `neurontools.neuronxcc`."""

import sys

from neurontools import neuronxcc
from neurontools.nki.alias import install

install(override=True)
sys.modules[__name__] = neuronxcc
