"""Operands as the engines of the present generation take them."""

from __future__ import annotations

from math import prod
from typing import Any

from neurontools.builder.trace import Space
from neurontools.neuronxcc.nki.tile import Tile, aligned
from neurontools.nki import language as nl

__all__ = ["column", "in_sbuf", "on_chip", "pair", "token"]


def token(value: Any) -> Any:
    """Return an operator as the present generation names it; NumPy functions stand for operators too."""
    return getattr(value, "plain", value)


def on_chip(value: Tile) -> Tile:
    """Return an operand in SBUF or PSUM."""
    return Tile(nl.load(value.tensor)) if value.tensor.space is Space.HBM else value


def in_sbuf(value: Tile) -> Tile:
    """Return an operand in SBUF, for engines that do not reach PSUM."""
    return Tile(nl.copy(value.tensor)) if value.tensor.space is Space.PSUM else on_chip(value)


def pair(one: Tile, other: Tile) -> tuple[Tile, Tile]:
    """Return two operands in one shape: as many elements are taken in their order, fewer are repeated."""
    if one.shape == other.shape:
        return one, other
    if one.shape[0] == other.shape[0] and prod(one.shape) == prod(other.shape):
        if other.tensor.is_contiguous():
            return one, other.reshape(one.shape)
        if one.tensor.is_contiguous():
            return one.reshape(other.shape), other
    (first, second), shape = aligned((one, other))
    return first.broadcast_to(shape), second.broadcast_to(shape)


def column(operand: Any) -> Any:
    """Return one number for each partition in fp32, as engines read it; anything else as it is."""
    if isinstance(operand, Tile) and operand.dtype.is_float and operand.dtype != nl.float32:
        return on_chip(operand).astype(nl.float32)
    return operand
