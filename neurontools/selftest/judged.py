"""Evaluate one module and judge what comes out: an error is an outcome too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from formats.errors import NeuronError, UnsupportedError
from neurontools.selftest.agreement import compared, flattened
from neurontools.selftest.rows import Outcome

__all__ = ["judged"]


def judged(
    evaluate: Callable[[], Any], expected: Sequence[Any], relative: dict[str, float],
    absolute: dict[str, float] | None = None,
) -> tuple[Outcome, str]:  # fmt: skip
    """Return the outcome of an evaluation and its detail."""
    try:
        got = flattened(evaluate())
    except UnsupportedError as error:
        return "unsupported", str(error)
    except NeuronError as error:
        return "refused", str(error)
    except (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        return "error", f"{type(error).__name__}: {error}"  # a bug of ours, and one row of the report
    return compared(got[: len(expected)], expected, relative, absolute)
