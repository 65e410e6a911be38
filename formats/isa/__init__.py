"""The instruction set, declared once: classes, decoder, encoder, text both ways.

Everything about a word comes from its class: fields with offset, kind, doc, unit, cite and provenance; operand roles;
the generations that have it; its text; its rules; what it does and what it costs.
"""

# ruff: noqa: F403
# A star import takes what the `__all__` of a module lists: a new word is named there and nowhere else.

from formats.engines import ENGINES as ENGINES
from formats.isa.behaviour import *
from formats.isa.codec import *
from formats.isa.columns import *
from formats.isa.enums import *
from formats.isa.field import Bits as Bits
from formats.isa.field import Field as Field
from formats.isa.instruction import *
from formats.isa.operand import Access as Access
from formats.isa.operand import AccessPattern as AccessPattern
from formats.isa.operand import DmaAccess as DmaAccess
from formats.isa.operand import DmaAddress as DmaAddress
from formats.isa.operand import DmaPattern as DmaPattern
from formats.isa.operand import Pattern as Pattern
from formats.isa.operand import Pointer as Pointer
from formats.isa.registry import *
from formats.isa.rules import *
from formats.isa.signals import Awaited as Awaited
from formats.isa.signals import Signal as Signal
from formats.isa.sync import Update as Update
from formats.isa.sync import Wait as Wait
from formats.isa.unknown import *
from formats.isa.words import *
from formats.neuron_core import PSUM_BASE as PSUM_BASE
from formats.neuron_core import PSUM_PARTITION_STRIDE as PSUM_PARTITION_STRIDE
from formats.neuron_core import SBUF_PARTITION_STRIDE as SBUF_PARTITION_STRIDE
