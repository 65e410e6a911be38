"""Bandwidths as nccom-test counts them: algorithm and bus bandwidth, in 10^9 and in 2^30 bytes (collectives.md 10)."""

from __future__ import annotations

from typing import Literal

__all__ = ["UNITS", "Unit", "bandwidths", "factor"]

Unit = Literal["gb", "gib"]
UNITS: dict[Unit, int] = {"gb": 10**9, "gib": 1 << 30}


def factor(operation: str, ranks: int) -> float:
    """Return by what bus bandwidth is more than algorithm bandwidth; `ranks` are those of one replica group."""
    if operation == "allreduce":
        return 2 * (ranks - 1) / ranks
    if operation in ("allgather", "reducescatter", "alltoall"):
        return (ranks - 1) / ranks
    return 1.0


def bandwidths(operation: str, ranks: int, size: int, time_us: float, unit: Unit) -> tuple[float, float]:
    """Return algorithm and bus bandwidth of a size in bytes that took a time; 0 of no time."""
    found = size / (time_us * 1e-6) / UNITS[unit] if time_us else 0.0
    return found, found * factor(operation, ranks)
