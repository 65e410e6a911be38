"""Versions of the NEFF format, and the first runtime that loads each."""

from __future__ import annotations

__all__ = ["NEFF_VERSIONS"]

# Versions that are not here have no documented runtime. Source: AWS Neuron documentation, runtime release notes, NEFF
# support table.
NEFF_VERSIONS: dict[tuple[int, int], tuple[int, ...]] = {(0, 6): (0,), (1, 0): (1, 0, 6905, 0), (2, 0): (1, 6, 5, 0)}
