"""What an ISA call returns: a handle to the operation it appended."""

from __future__ import annotations

from typing import Any

from neurontools.nki.objects import NKIObject
from neurontools.nki.views import unsupported

__all__ = ["NkiInstruction"]


class NkiInstruction(NKIObject):
    """Handle of a traced operation (`op`, a value of `neurontools.trace`)."""

    __slots__ = ("op",)

    def __init__(self, handle: Any) -> None:
        self.op = handle

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction:
        """Accept producers that stand earlier in the program; program order already runs them first where bytes
        overlap.

        An edge between instructions that share no bytes has no form in a trace yet, so any such call is refused.
        """
        if producers:
            raise unsupported("NkiInstruction.depends_on")
        return self
