"""Run single instructions of a traced body straight on an executor bench: front end, encoder, decoder, executor.

Much faster than a launch, so that properties can be tried over many types, access patterns, partitions and targets.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes  # noqa: F401  registers bfloat16 and the 8-bit floats with NumPy
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import neurontools.nki.language as nl
from formats import isa
from formats.neuron_core import PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE
from formats.targets import Target, resolve_target
from neurontools.builder.activation_sets import plan_activation
from neurontools.builder.chip import chip_of
from neurontools.builder.encode import Encoder, Place
from neurontools.builder.matmul import MatmulEncoder
from neurontools.builder.templates import Template
from neurontools.builder.trace import ComputeOp, DmaOp, MatmulOp, Space, View
from neurontools.nki.tracer import Tracer, tracing
from tests.emulator.engines.machine import Bench
from tests.nki.support import check_trace

Array = np.ndarray[Any, Any]
CASES = settings(max_examples=200, deadline=None)
"""Cases of a property test; tests of whole kernels try as many in fewer launches, several in each."""
TARGETS = ("trn1", "trn2", "trn3")
_DTYPES = {"float32": nl.float32, "bfloat16": nl.bfloat16, "float16": nl.float16, "int32": nl.int32,
           "uint32": nl.uint32, "int16": nl.int16, "uint16": nl.uint16, "int8": nl.int8, "uint8": nl.uint8}  # fmt: skip


class Layout(NamedTuple):
    """Where a tile lies: partition start, spare elements before it, step between its elements, memory."""

    start: int = 0
    lead: int = 0
    step: int = 1
    psum: bool = False


PLAIN = Layout()


def tile(partitions: int, elements: int, dtype: Any, layout: Layout = PLAIN) -> Any:
    """Return a (partitions, elements) view of a new tensor, laid out as asked."""
    width = layout.lead + elements * layout.step
    buffer = nl.psum if layout.psum else nl.sbuf
    whole = nl.ndarray((layout.start + partitions, width), dtype, buffer)
    return whole[layout.start : layout.start + partitions, layout.lead : width : layout.step]


def run(body: Callable[[], Any], target: str = "trn2") -> list[Array]:
    """Trace `body`, which returns (inputs, outputs): pairs of tile and values, and tiles; return the outputs' values.

    `body` runs under a tracer of `target`; only compute instructions, and the loads of their constants, are allowed.
    """
    t = Tracer(resolve_target(target))
    with tracing(t):
        inputs, outputs = body()
    check_trace(t.trace)
    bench = Bench(target)
    places: dict[int, Place] = {}
    used = {Space.SBUF: 0, Space.PSUM: 0}
    for allocation in t.trace.allocations:
        if allocation.space is Space.HBM:
            continue
        base, stride = (
            (0, SBUF_PARTITION_STRIDE) if allocation.space is Space.SBUF else (PSUM_BASE, PSUM_PARTITION_STRIDE)
        )
        places[allocation.id] = Place(base + used[allocation.space], stride)
        used[allocation.space] += -(-allocation.partition_bytes // 64) * 64
    for one, values in inputs:
        _window(bench, one.view_of_storage, places)[...] = values
    functions = [str(op.fields["function"]) for op in t.trace.ops if "function" in getattr(op, "fields", {})]
    encoder = Encoder(plan_activation(functions).codes)
    products = MatmulEncoder(chip_of(t.target))
    started: set[int] = set()
    for op in t.trace.ops:
        if isinstance(op, DmaOp):
            assert op.src.allocation.data is not None, op
            _window(bench, op.dst, places)[...] = op.src.allocation.data
        elif isinstance(op, MatmulOp):
            first = op.dst.allocation.id not in started if op.accumulate is None else not op.accumulate
            started.add(op.dst.allocation.id)
            views = op.stationary, op.moving, op.dst
            for template in itertools.chain(*products.encode(op, first).pairs):
                bench.run(_word(template, views, places, t.target), "PE")
        else:
            assert isinstance(op, ComputeOp), op
            for template in encoder.encode(op).templates:
                word = _word(template, tuple(op.operands.values()), places, t.target)
                assert isinstance(word, op.instruction)
                bench.run(word, op.engine)
    return [_window(bench, one.view_of_storage, places).copy() for one in outputs]


def _word(template: Template, views: tuple[View, ...], places: dict[int, Place], target: Target) -> isa.Instruction:
    """Return a word with the addresses of its operands filled in, as the decoder reads it."""
    _, _, make = template
    return isa.decode(make([places[view.allocation.id].of(view) for view in views]), target)


def _window(bench: Bench, view: View, places: dict[int, Place]) -> Array:
    """Return the elements of a view as (partitions, elements...)."""
    memory = bench.sbuf if view.allocation.space is Space.SBUF else bench.psum
    address = places[view.allocation.id].of(view)
    place = places[view.allocation.id]
    partition, byte = divmod(address - (0 if view.allocation.space is Space.SBUF else PSUM_BASE), place.stride)
    dtype = np.dtype(view.dtype.numpy_name)
    shape = (view.partitions, *(count for _, count in view.dims))
    strides = (memory.shape[1], *(step * dtype.itemsize for step, _ in view.dims))
    return np.ndarray(shape, dtype, memory.data, partition * memory.shape[1] + byte, strides)


def layouts(psum: bool = False) -> st.SearchStrategy[Layout]:
    """Return layouts of tiles of up to 32 partitions, which may start in any quadrant."""
    memory = st.booleans() if psum else st.just(False)
    return st.builds(Layout, st.sampled_from([0, 32, 64, 96]), st.integers(0, 3), st.integers(1, 3), memory)


def dtype_of(name: str) -> Any:
    """Return the `nl` type of a name."""
    return _DTYPES[name]


def values_of(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Return small values, with repetitions, that every type can hold; floats are not whole."""
    whole = rng.integers(0 if dtype.startswith("u") else -20, 21, shape)
    return (whole if "int" in dtype else whole * 0.375).astype(dtype)


def seeds() -> st.SearchStrategy[np.random.Generator]:
    """Return generators of test values."""
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)
