"""A reference interpreter of HLO in NumPy: what a module means, independent of any compiler.

One file per kind of operation; each enters its functions in the table of `registry`.
"""

from __future__ import annotations

from neurontools.hlo_interpreter import (
    binary,
    bits,
    collectives,
    control,
    convolution,
    custom_calls,
    dot,
    gather_scatter,
    linear_algebra,
    normalisation,
    random_bits,
    reducing,
    shaping,
    sorting,
    unary,
)
from neurontools.hlo_interpreter.ranks import evaluate_ranks
from neurontools.hlo_interpreter.registry import OPERATIONS
from neurontools.hlo_interpreter.run import Interpreter, Observer, evaluate

__all__ = ["OPERATIONS", "Interpreter", "Observer", "evaluate", "evaluate_ranks"]

# Importing them fills the table.
_ = (binary, bits, collectives, control, convolution, custom_calls, dot, gather_scatter, linear_algebra, normalisation,
     random_bits, reducing, shaping, sorting, unary)  # fmt: skip
