"""HLO text, both ways: as XLA prints modules, and as it reads them."""

from __future__ import annotations

from formats.hlo.text.parser import parse_module
from formats.hlo.text.printer import print_computation, print_instruction, print_module

__all__ = ["parse_module", "print_computation", "print_instruction", "print_module"]
