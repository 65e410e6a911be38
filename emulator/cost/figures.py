"""Figures of the instruction cost model: one row per number and set of chips, each with how it is known and where."""

from __future__ import annotations

from functools import cache

from emulator.cost.dma import Figure
from formats.errors import UnsupportedError

__all__ = ["FIGURES", "figure"]

_V2, _V3, _V4 = ("trn1", "inf2"), ("trn2",), ("trn3",)
_ALL = _V2 + _V3 + _V4
_D, _O, _I = "documented", "observed", "inferred"

FIGURES: tuple[Figure, ...] = (
    # Latency over the cycles of the work, from the start of an instruction to its completion.
    Figure("matmul_latency",        _V2,       145.0, "ns", _O, "hardware.md 3.9, 8.1: A-5, A-7, A-8"),
    Figure("matmul_latency",        _V3,       165.0, "ns", _O, "hardware.md 3.9, 8.1: A-9, A-10"),
    Figure("matmul_latency",        _V4,       165.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("load_weights_latency",  _V2,        67.0, "ns", _O, "hardware.md 8.1: A-6"),
    Figure("load_weights_latency",  _V3 + _V4,  67.0, "ns", _I, "hardware.md 8.1: A-6 for trn1"),
    Figure("activation_latency",    _V2,       158.0, "ns", _O, "hardware.md 3.9, 8.1: A-3"),
    Figure("activation_latency",    _V3,       293.0, "ns", _O, "hardware.md 3.9, 8.1: A-12 to A-14"),
    Figure("activation_latency",    _V4,       293.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("vector_latency",        _V2,       350.0, "ns", _O, "hardware.md 3.9, 8.1: A-1, A-2"),
    Figure("vector_latency",        _V3,       207.0, "ns", _I, "hardware.md 8.1: mean of A-15 to A-17"),
    Figure("vector_latency",        _V4,       207.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("tensor_scalar_latency", _V2,       350.0, "ns", _I, "hardware.md 3.9: all of trn1's Vector engine"),
    Figure("tensor_scalar_latency", _V3,       270.0, "ns", _O, "hardware.md 8.1: A-15"),
    Figure("tensor_scalar_latency", _V4,       270.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("tensor_reduce_latency", _V2,       350.0, "ns", _I, "hardware.md 3.9: all of trn1's Vector engine"),
    Figure("tensor_reduce_latency", _V3,       160.0, "ns", _O, "hardware.md 8.1: A-16"),
    Figure("tensor_reduce_latency", _V4,       160.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("scalar_tensor_latency", _V2,       350.0, "ns", _I, "hardware.md 3.9: all of trn1's Vector engine"),
    Figure("scalar_tensor_latency", _V3,       190.0, "ns", _O, "hardware.md 8.1: A-17"),
    Figure("scalar_tensor_latency", _V4,       190.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("pool_start",            _ALL,      150.0, "cycles", _D, "hardware.md 3.6, 3.9: GPSIMD_START"),
    # Issue intervals.
    Figure("minimum_interval",      _ALL,       64.0, "cycles", _D, "hardware.md 3.9, 3.3: MIN_II"),
    Figure("load_weights_share",    _ALL,       0.25, "of a matmul's", _D, "hardware.md 3.3: up to four times faster"),
    # Loads run behind the matmul before them; the excess of 32,768 fp32 products over 2048 cycles each is what shows.
    Figure("load_weights_exposed",  _V3,         3.0, "ns", _O, "hardware.md 8.3: C-8, two in 859.4 - 853.3 ns"),
    Figure("load_weights_exposed",  _V2 + _V4,   3.0, "ns", _I, "hardware.md 8.3: C-8 for trn2"),
    Figure("fp32_whole",            _ALL,        4.0, "passes", _D, "hardware.md 3.3: fp32 takes four times"),
    Figure("fp32_pass",             _V3,         2.0, "passes", _O, "hardware.md 3.3, 8.1: A-9, A-10"),
    Figure("fp32_pass",             _V2 + _V4,   2.0, "passes", _I, "hardware.md 3.3: two words share four passes"),
    Figure("fp32_half_pass",        _ALL,        1.0, "passes", _D, "hardware.md 3.3: onezero halves it"),
    Figure("read_accumulator",      _V2,        64.0, "cycles", _D, "hardware.md 3.9"),
    Figure("read_accumulator",      _V3 + _V4,  64.0, "cycles", _I, "hardware.md 3.9 for v2"),
    # Passes and speeds of the Vector engine.
    Figure("two_inputs",            _ALL,        2.0, "passes", _D, "hardware.md 3.4: two inputs in SBUF take 2N"),
    Figure("reciprocal_passes",     _ALL,        8.0, "passes", _D, "hardware.md 5.2"),
    Figure("halved",                _ALL,        0.5, "passes", _D, "hardware.md 5.1, 5.2: bf16 fills and folds"),
    Figure("wide_quadruple",        _V3 + _V4,   4.0, "times", _D, "hardware.md 3.4: 4x mode"),
    Figure("wide_double",           _V3 + _V4,   2.0, "times", _D, "hardware.md 3.4: 2x mode; bf16 to fp8 by A-15"),
    Figure("activation_double",     _V4,         2.0, "times", _D, "hardware.md 3.5, 8.10: J-9, 16-bit types"),
    Figure("slow_stride",           _ALL,       16.0, "bytes", _D, "hardware.md 2.3; 16 itself taken as slow"),
    Figure("slow_stride_factor",    _ALL,        2.0, "times", _D, "hardware.md 2.3: half rate"),
    # Words of searches, gathers, statistics and random numbers.
    Figure("bn_aggregate",          _ALL,       13.0, "cycles per triple", _D, "hardware.md 5.2: 13N/3"),
    Figure("exponential",           _V4,        0.25, "passes", _D, "hardware.md 5.2: four times the Scalar engine"),
    Figure("rand2",                 _V4,        0.25, "passes", _D, "hardware.md 5.2: 4 values per lane and cycle"),
    Figure("quantize_mx",           _V4,        0.25, "passes", _D, "hardware.md 5.2: 4 elements a cycle"),
    Figure("gather_group",          _ALL,      512.0, "indices", _D, "hardware.md 5.4: one instruction per 512"),
    Figure("gather_setup",          _ALL,       28.0, "cycles", _D, "hardware.md 5.4: local_gather"),
    Figure("gather_element",        _ALL,        4.0, "cycles", _D, "hardware.md 5.4: local_gather"),
    Figure("top_k",                 _ALL,        4.0, "cycles per element", _D, "hardware.md 5.4: 4n+K"),
    # Words without data, and what connects engines.
    Figure("table_load",            _V3,      1288.0, "ns", _O, "hardware.md 3.9, 8.1: A-11"),
    Figure("table_load",            _V2 + _V4, 1288.0, "ns", _I, "hardware.md 3.9 for trn2"),
    Figure("event_semaphore",       _V2,         9.0, "ns", _O, "hardware.md 3.9, 8.1: A-8b"),
    Figure("event_semaphore",       _V3 + _V4,   9.0, "ns", _I, "hardware.md 8.1: A-8b for trn1"),
    Figure("control",               _ALL,        9.0, "ns", _I, "hardware.md 3.2: set-up words, as A-8b"),
    Figure("trigger_pool",          _V3,         8.0, "ns", _O, "hardware.md 4.3: DMA_DIRECT2D on GpSimd"),
    Figure("trigger_pool",          _V2 + _V4,   8.0, "ns", _I, "hardware.md 4.3 for trn2"),
    Figure("trigger_other",         _V3,        86.0, "ns", _O, "hardware.md 4.3: on Sync; other engines alike"),
    Figure("trigger_other",         _V2 + _V4,  86.0, "ns", _I, "hardware.md 4.3 for trn2"),
    Figure("device_read",           _ALL,     1300.0, "ns", _I, "hardware.md 4.6: fixed cost of device memory"),
    Figure("propagation",           _V2,        30.0, "ns", _O, "hardware.md 8.1: A-4 less A-3"),
    Figure("propagation",           _V3,        30.0, "ns", _O, "hardware.md 4.3: 15-40 to an engine, 30 to a trigger"),
    Figure("propagation",           _V4,        30.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
)


@cache
def figure(name: str, target: str) -> float:
    """Return one number of a chip; UnsupportedError where there is none."""
    for row in FIGURES:
        if row.name == name and target in row.targets:
            return row.value
    raise UnsupportedError(f"no figure {name!r} for {target}")
