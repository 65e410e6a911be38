"""The classes of all words, by name: each module declares some, and `__all__` there is the only list of them."""

# ruff: noqa: F403
# A star import is what keeps a new class out of further lists.

from formats.isa.activation import *
from formats.isa.control import *
from formats.isa.dma import *
from formats.isa.extension import *
from formats.isa.extension_collective import *
from formats.isa.extension_dma import *
from formats.isa.extension_gen4 import *
from formats.isa.extension_gpsimd import *
from formats.isa.extension_indirection import *
from formats.isa.extension_random import *
from formats.isa.extension_register import *
from formats.isa.extension_search import *
from formats.isa.extension_select import *
from formats.isa.loader import *
from formats.isa.pe import *
from formats.isa.vector import *
