"""Errors that name instruction, argument, value and limit."""

from __future__ import annotations

import numpy as np

from neurontools.nki.errors import NkiValidationError, UnsupportedError
from neurontools.nki.tracer import Tracer, kernel_place

__all__ = ["reject", "since", "told", "unsupported"]

_MOST_TOLD = 200  # characters of a value


def told(value: object) -> str:
    """Return a value as a message has it; of an array, how it becomes a tensor."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    kind = f"a NumPy array of shape {value.shape}"
    return f"{kind} (pass it as an argument of the kernel, or make a tensor of it with nl.shared_constant(array))"


def reject(tracer: Tracer, instruction: str, argument: str, value: object, limit: str) -> NkiValidationError:
    """Return the error for an argument that breaks a limit; of a long value both ends are told."""
    prefix = "" if "." in instruction else "nisa."
    told = str(value)
    if len(told) > _MOST_TOLD:
        told = f"{told[: _MOST_TOLD // 2]} ... {told[-_MOST_TOLD // 2 :]}"
    return tracer.error(f"{prefix}{instruction}: {argument} is {told}, {limit}")


def unsupported(instruction: str, feature: str) -> UnsupportedError:
    """Return the error for something that is understood but not modelled yet."""
    return UnsupportedError(f"nisa.{instruction}: {feature} is not supported yet, at {kernel_place()}")


def since(tracer: Tracer, instruction: str, generation: int) -> None:
    """Refuse an instruction that the target's generation does not have."""
    if tracer.generation < generation:
        raise tracer.error(f"nisa.{instruction}: needs gen{generation}")
