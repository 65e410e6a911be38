"""Conditions of breakpoints: expressions that are true or false. `neurontools.debugger.expressions` says of what."""

from __future__ import annotations

import numpy as np

from neurontools.debugger.errors import UsageError
from neurontools.debugger.expressions import Expression, Situation

__all__ = ["Condition"]


class Condition(Expression):
    """One condition; `text` is what was asked for. Raises UsageError where it is not an expression."""

    def __init__(self, text: str) -> None:
        super().__init__(text, "S[5] >= 3 and time > 2us", "a condition")

    def holds(self, at: Situation) -> bool:
        """Return whether the condition holds; UsageError, NotFoundError or ArithmeticError where it has no answer."""
        value = self.value(at)
        if np.ndim(value):
            raise UsageError(f"{self.text!r} has {np.size(value)} values; any(…) or all(…) makes one of them")
        return bool(value)
