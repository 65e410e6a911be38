"""`import nki_cpu_simulator` for programs with the folder above on PYTHONPATH: `neurontools.nki.cpu_simulator`."""

import sys

from neurontools.nki import cpu_simulator
from neurontools.nki.alias import install

install(override=True)
sys.modules[__name__] = cpu_simulator
