"""`import nki` for programs that neither call `neurontools run` nor `neurontools.nki.install()`.

With the folder above on PYTHONPATH, importing `nki` puts `neurontools.nki` in this file's place: the very same module
objects under both names, nothing of this file stays.
"""

import sys

from neurontools import nki
from neurontools.nki.alias import install

install(override=True)
sys.modules[__name__] = nki
