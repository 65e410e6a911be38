"""Operands as packed rows, one per partition, for words that look at whole partitions instead of single elements."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from emulator.dtypes import Array, Step, bind_load, bind_store, chain
from emulator.engines.operands import immediate_float, packed, per_partition, raw_view
from emulator.port import Port
from emulator.scratch import scratch, scratch_apart
from formats import isa

__all__ = ["float_rows", "float_rows_out", "number_or_column", "raw_rows", "raw_rows_out", "turned"]

_TOGETHER = 64  # partitions turned at a time: a line of each and what they become stay in the first-level cache


def float_rows(view: Array, code: int) -> tuple[Array, Step]:
    """Return the elements as fp32 (partitions, elements), and the step that copies them there."""
    values, load = bind_load(view, code)
    if load is not None:
        return values.reshape(view.shape[0], -1), load
    rows, step = packed(values, (view.shape[0], view.size // view.shape[0]))
    return rows, step


def float_rows_out(view: Array, code: int) -> tuple[Array, Step]:
    """Return where to put fp32 results (partitions, elements), and the step that stores them."""
    values = scratch(view.shape, np.float32)
    return values.reshape(view.shape[0], -1), bind_store(values, view, code)


def raw_rows(view: Array) -> tuple[Array, Step]:
    """Return the elements' bits as unsigned integers (partitions, elements), and the step that copies them there."""
    return packed(raw_view(view), (view.shape[0], view.size // view.shape[0]))


def raw_rows_out(view: Array) -> tuple[Array, Step]:
    """Return where to put bits (partitions, elements), and the step that stores them."""
    bits = raw_view(view)
    values = scratch(bits.shape, bits.dtype)
    return values.reshape(view.shape[0], -1), partial(np.copyto, bits, values)


def number_or_column(word: isa.Instruction, port: Port, name: str) -> tuple[Any, Step | None]:
    """Return an immediate as fp32, or the column behind its pointer as (partitions, 1) and the step that copies it."""
    pointer = port.pointer(f"{name}_pointer")
    if pointer is None:
        return immediate_float(word, name), None
    values, refresh = per_partition(word, f"{name}_pointer", pointer, 2)
    # A copy, since the output of the word may lie over it.
    column = scratch(values.shape, np.float32)
    return column, chain(refresh, partial(np.copyto, column, values))


def turned(view: Array) -> tuple[Array, Step]:
    """Return the elements as rows of one element per partition, in stream order, and the step that copies them there.

    By way of a packed copy: partitions of a memory lie a power of two of bytes apart, and so in one set of the cache.
    """
    partitions, size = view.shape[0], view.size // view.shape[0]
    held, rows = scratch_apart(partitions, size, view.dtype), scratch_apart(size, partitions, view.dtype)
    across = rows.T
    return rows, chain(
        partial(np.copyto, held.reshape(view.shape, copy=False), view),
        *[
            partial(np.copyto, across[first : first + _TOGETHER], held[first : first + _TOGETHER])
            for first in range(0, partitions, _TOGETHER)
        ],
    )
