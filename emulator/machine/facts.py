"""Make facts of the machine: numbers with unit, provenance and the section of docs/reference that says so."""

from __future__ import annotations

from emulator.arch import Fact

__all__ = ["GB", "GIB", "MIB", "documented", "inferred", "ours"]

MIB, GIB = 1 << 20, 1 << 30
GB = 1_000_000_000


def documented(value: float, unit: str, cite: str) -> Fact:
    """Return a number that AWS's documentation gives."""
    return Fact(value, unit, "documented", cite)


def inferred(value: float, unit: str, cite: str) -> Fact:
    """Return a number that follows from documented ones."""
    return Fact(value, unit, "inferred", cite)


def ours(value: float, unit: str, cite: str) -> Fact:
    """Return a number that nobody has published and that this project chose."""
    return Fact(value, unit, "ours", cite)
