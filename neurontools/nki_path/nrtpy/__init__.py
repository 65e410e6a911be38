"""`import nrtpy` for unchanged programs: with the folder above on PYTHONPATH it is `neurontools.nrt`."""

import sys

from neurontools import nrt

sys.modules[__name__] = nrt
