"""Figures of the instruction cost model: one row per number and set of chips, each with how it is known and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache

from emulator.cost.dma import Figure
from formats.errors import UnsupportedError

__all__ = ["FIGURES", "figure", "figures_as", "picoseconds"]

_V2, _V3, _V4 = ("trn1", "inf2"), ("trn2",), ("trn3",)
_V34, _ALL = _V3 + _V4, _V2 + _V3 + _V4
_D, _O, _I = "documented", "observed", "inferred"

# Public profiles of trn2 (formats.md 1.1): words of ten runs, medians over runs; "interval" is start to next start.
_P = "profiles of formats.md 1.1: "
# Public captures (formats.md 1.2), those that are not held out: `neurontools.validation.captures`.
_C = "captures of formats.md 1.2: "

FIGURES: tuple[Figure, ...] = (
    # Latency over the cycles of the work, from the start of an instruction to its completion.
    Figure("matmul_latency", _V2, 142.0, "ns", _O, "hardware.md 8.1: A-5"),
    Figure("matmul_latency", _V3, 165.0, "ns", _O, _P + "163 to 166 of 1,900 MATMUL at full clock"),
    Figure("matmul_latency", _V4, 165.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("load_weights_latency", _V2, 67.0, "ns", _O, "hardware.md 8.1: A-6"),
    Figure("load_weights_latency", _V3, 83.0, "ns", _O, _P + "95 to 191 ns for 128 columns, less the columns"),
    Figure("load_weights_latency", _V4, 83.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("load_weights_throttled", _V3, 77.0, "ns", _O, _C + "105, 182 and 287 ns at half clock, less the columns"),
    Figure("load_weights_throttled", _V4, 77.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    # Weights whose elements lie far apart come at the pace of the memory, at either clock of the engine.
    Figure("load_strided_latency", _V3, 79.0, "ns", _O, _C + "137 to 141, 312 to 317 ns, less what they read"),
    Figure("load_strided_latency", _V2 + _V4, 79.0, "ns", _I, "trn2's"),
    Figure("load_strided_rate", _V3, 4.13, "B/ns", _O, _C + "fp16, one every 62 ns"),
    Figure("load_strided_rate", _V2 + _V4, 4.13, "B/ns", _I, "trn2's"),
    Figure("load_strided_rate_fp32", _V3, 4.53, "B/ns", _O, _C + "fp32, one every 226 ns"),
    Figure("load_strided_rate_fp32", _V2 + _V4, 4.53, "B/ns", _I, "trn2's"),
    Figure("load_strided_share", _V3, 0.4, "of a matmul's", _O, _C + "163 ns behind a matmul at half clock"),
    Figure("load_strided_share", _V2 + _V4, 0.4, "of a matmul's", _I, "trn2's"),
    Figure("load_read_ahead", _V3, 24.0, "ns", _O, _C + "163 or 179 ns where loads follow each other, 141 alone"),
    Figure("load_read_ahead", _V2 + _V4, 24.0, "ns", _I, "trn2's"),
    Figure("load_behind", _V3, 49.0, "ns", _O, _C + "a load to its MATMUL of 14 columns, 43 to 49"),
    Figure("load_behind", _V2 + _V4, 49.0, "ns", _I, "trn2's"),
    Figure("activation_latency", _V2, 158.0, "ns", _O, "hardware.md 3.9, 8.1: A-3"),
    Figure("activation_latency", _V3, 290.0, "ns", _O, "hardware.md 8.1: A-12, A-13; " + _P + "280 for fp32"),
    Figure("activation_latency", _V4, 290.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("activation_psum_latency", _V2, 158.0, "ns", _I, "hardware.md 8.1: A-3 from SBUF"),
    Figure("activation_psum_latency", _V3, 259.0, "ns", _O, _P + "686 ns for 512 from PSUM"),
    Figure("activation_psum_latency", _V4, 259.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("scalar_copy_latency", _V2, 158.0, "ns", _I, "hardware.md 8.1: A-3, an identity"),
    Figure("scalar_copy_latency", _V3, 158.0, "ns", _O, _P + "COPY and CAST of 128 and 512 on Scalar"),
    Figure("scalar_copy_latency", _V4, 158.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("vector_latency", _V2, 262.0, "ns", _O, "between " + _C + "TENSOR_TENSOR 2,016 and hardware.md 8.1: A-1"),
    Figure("vector_latency", _V3, 157.0, "ns", _O, _P + "COPY 290 for 128, 690 for 512; RECIPROCAL"),
    Figure("vector_latency", _V4, 157.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("tensor_scalar_latency", _V2, 350.0, "ns", _I, "hardware.md 3.9: all of trn1's Vector engine"),
    Figure("tensor_scalar_latency", _V3, 215.0, "ns", _O, _P + "TENSOR_SCALAR 349 for 128, 481 for 512"),
    Figure("tensor_scalar_latency", _V4, 215.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("tensor_reduce_latency", _V2, 350.0, "ns", _I, "hardware.md 3.9: all of trn1's Vector engine"),
    Figure("tensor_reduce_latency", _V3, 150.0, "ns", _O, _P + "TENSOR_REDUCE 676 to 685 for 512; A-16"),
    Figure("tensor_reduce_latency", _V4, 150.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("scalar_tensor_latency", _V2, 350.0, "ns", _I, "hardware.md 3.9: all of trn1's Vector engine"),
    Figure(
        "scalar_tensor_latency",
        _V3,
        206.0,
        "ns",
        _I,
        "hardware.md 8.1: A-17ii and 84 ns as for " + _P + "TENSOR_SCALAR",
    ),
    Figure("scalar_tensor_latency", _V4, 206.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("pool_start", _ALL, 150.0, "cycles", _D, "hardware.md 3.6, 3.9: GPSIMD_START"),
    # A word without data begins as soon as the one before it has begun, which works on. GpSimd has no such pair.
    Figure("dispatch", _V3, 8.0, "ns", _O, _C + "3 to 14 ns behind a COPY, CAST, MATMUL on three engines"),
    Figure("dispatch", _V2 + _V4, 8.0, "ns", _I, "trn2's"),
    # Issue intervals: cycles of the work, and what each access adds before the next word can start.
    Figure("minimum_interval", _ALL, 64.0, "cycles", _D, "hardware.md 3.9, 3.3: MIN_II"),
    Figure("vector_gap", _V2, 60.0, "cycles", _D, "hardware.md 2.3: tensor access start"),
    Figure("vector_gap", _V3, 62.0, "cycles", _O, _P + "interval over 512 on Vector: 597 to 608"),
    Figure("vector_gap", _V4, 62.0, "cycles", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("vector_pointer_gap", _V2, 0.0, "cycles", _I, "nothing published for v2"),
    Figure("vector_pointer_gap", _V3, 62.0, "cycles", _O, _P + "TENSOR_SCALAR by pointer, 268 for 128"),
    Figure("vector_pointer_gap", _V4, 62.0, "cycles", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("scalar_gap", _V2, 60.0, "cycles", _D, "hardware.md 2.3: tensor access start"),
    Figure("scalar_gap", _V3, 62.0, "cycles", _O, _P + "COPY and CAST on Scalar, 157 for 128"),
    Figure("scalar_gap", _V4, 62.0, "cycles", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("activation_gap", _V2, 60.0, "cycles", _D, "hardware.md 2.3: tensor access start"),
    Figure("activation_gap", _V3, 222.0, "cycles", _O, _P + "ACTIVATE of 512 from SBUF every 612 ns"),
    Figure("activation_gap", _V4, 222.0, "cycles", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("activation_psum_gap", _V2, 60.0, "cycles", _D, "hardware.md 2.3: tensor access start"),
    Figure("activation_psum_gap", _V3, 172.0, "cycles", _O, _P + "ACTIVATE of 512 from PSUM every 570 ns"),
    Figure("activation_psum_gap", _V4, 172.0, "cycles", _I, "hardware.md 9: trn3 reuses trn2"),
    # 16-bit weights are read four columns at a time, as the pattern and the time show; fp32 ones one by one, and
    # twice where they are not transposed.
    Figure("load_weights_share", _V2, 0.25, "of a matmul's", _D, "hardware.md 3.3: up to four times faster"),
    Figure("load_weights_share", _V3, 0.25, "of a matmul's", _O, _P + "LDWEIGHTS of bf16, 95 to 98"),
    Figure("load_weights_share", _V4, 0.25, "of a matmul's", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("load_weights_fp32", _V3, 2.0, "passes", _O, _P + "LDWEIGHTS of fp32, 185 to 191"),
    Figure("load_weights_fp32", _V2 + _V4, 2.0, "passes", _I, "trn2's"),
    Figure("load_transpose_fp32", _V3, 1.0, "passes", _O, _P + "the same for transposes, 137 to 142"),
    Figure("load_transpose_fp32", _V2 + _V4, 1.0, "passes", _I, "trn2's"),
    # A matmul whose weights are not there yet waits; that part of it which comes before its data meet the array does
    # not: 58 ns more of 142 (fp32 transposes), 101 of 185 (fp32), 10 of 95 (bf16), also at half clock.
    Figure("matmul_head", _V3, 82.0, "ns", _O, _C + "end of a load to the end of its MATMUL, 82 to 85 over the work"),
    Figure("matmul_head", _V4, 82.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("matmul_head", _V2, 64.0, "ns", _I, "3 ns less than load_weights_latency, as on trn2"),
    # Loads run behind the matmul before them; the excess of 32,768 fp32 products over 2048 cycles each is what shows.
    Figure("load_weights_exposed", _V3, 3.0, "ns", _O, "hardware.md 8.3: C-8; " + _P + "2 to 3 ns a pair"),
    Figure("load_weights_exposed", _V2 + _V4, 3.0, "ns", _I, "hardware.md 8.3: C-8 for trn2"),
    # At full clock the array stands still for a moment between matmuls of different weights.
    Figure("weights_switch", _V3, 2.3, "ns", _O, _C + "matmuls of 420 columns every 177.5 and 352 ns, not 175 and 350"),
    Figure("weights_switch", _V2 + _V4, 2.3, "ns", _I, "trn2's"),
    Figure("fp32_whole", _ALL, 4.0, "passes", _D, "hardware.md 3.3: fp32 takes four times"),
    Figure("fp32_pass", _V3, 2.0, "passes", _O, "hardware.md 3.3, 8.1: A-9ii, A-10"),
    Figure("fp32_pass", _V2 + _V4, 2.0, "passes", _I, "hardware.md 3.3: two words share four passes"),
    Figure("fp32_half_pass", _ALL, 1.0, "passes", _D, "hardware.md 3.3: onezero halves it"),
    Figure("read_accumulator", _V2, 64.0, "cycles", _D, "hardware.md 3.9"),
    Figure("read_accumulator", _V3 + _V4, 64.0, "cycles", _I, "hardware.md 3.9 for v2"),
    # Passes and speeds of the Vector engine.
    Figure("two_inputs", _ALL, 2.0, "passes", _D, "hardware.md 3.4: two inputs in SBUF take 2N"),
    Figure("two_tensors", _V2, 2.0, "passes", _D, "hardware.md 3.4: two inputs in SBUF take 2N"),
    Figure("two_tensors", _V3, 1.0, "passes", _O, _C + "TENSOR_TENSOR of fp32: 174 for 14, 1,199, 2,243 for 2,000"),
    Figure("two_tensors", _V4, 1.0, "passes", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("scalar_two_tensors", _V2, 2.0, "passes", _D, "hardware.md 3.4: two inputs in SBUF take 2N"),
    # From the Vector engine's share of the times of fifteen kernels, four such words a turn, of 512 to 2,304 columns.
    # The record gives half of the times: by it fp32 products take half the passes of A-9, and DMA moves 800 GB/s.
    Figure(
        "scalar_two_tensors",
        _V3,
        1.0,
        "passes",
        _O,
        "Jerry2423/kda-for-trainium, workspaces/adamw/benchmark.csv: 1.06 ns a column and 112",
    ),
    Figure("scalar_two_tensors", _V4, 1.0, "passes", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("reciprocal_passes", _V2, 8.0, "passes", _D, "hardware.md 5.2"),
    Figure("reciprocal_passes", _V3, 6.0, "passes", _O, _P + "RECIPROCAL 178 for 4, 202 for 8"),
    Figure("reciprocal_passes", _V4, 6.0, "passes", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("halved", _ALL, 0.5, "passes", _D, "hardware.md 5.1, 5.2: bf16 fills and folds"),
    Figure("wide_quadruple", _V3 + _V4, 4.0, "times", _D, "hardware.md 3.4: 4x mode"),
    Figure("wide_double", _V3 + _V4, 2.0, "times", _D, "hardware.md 3.4: 2x mode"),
    Figure("single_double", _V3, 2.0, "times", _O, _P + "TENSOR_SCALAR of fp32 in SBUF, 396 for 512"),
    Figure("single_double", _V4, 2.0, "times", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("activation_double", _V4, 2.0, "times", _D, "hardware.md 3.5, 8.10: J-9, 16-bit types"),
    Figure("slow_stride", _ALL, 16.0, "bytes", _D, "hardware.md 2.3; 16 itself taken as slow"),
    Figure("slow_stride_factor", _ALL, 2.0, "times", _D, "hardware.md 2.3: half rate"),
    # What the half rate really is on trn2: elements are read no faster than this, which words that take one a cycle or
    # less do not feel; writes of less than four bytes drain while the next word runs already.
    Figure("vector_strided_read", _V34, 0.875, "cycles", _O, _C + "COPY from steps of 9, 264 to 269 for 128"),
    Figure("vector_strided_write", _V34, 1.8, "times", _O, _C + "COPY to steps of 9 and 18, fp32, 281 and 389 to 400"),
    Figure("vector_strided_write16", _V34, 4.2, "times", _O, _C + "COPY to the same, fp16, 448 and 716"),
    Figure("vector_strided_front", _V34, 0.635, "of the writes", _O, _C + "such words begin every 181 and 350 ns"),
    Figure("scalar_strided_read", _V34, 2.43, "cycles", _O, _C + "COPY from steps of 9 on Scalar, 418 to 420 for 128"),
    Figure("scalar_strided_write", _V34, 2.42, "times", _O, _C + "COPY to steps of 9, fp32, 417"),
    Figure("scalar_strided_write16", _V34, 5.54, "times", _O, _C + "COPY to the same, fp16, 748"),
    Figure("scalar_strided_front", _V34, 0.95, "of the writes", _O, _C + "such words begin every 554 to 597 ns"),
    Figure("scalar_strided_write_psum", _V34, 2.2, "times", _O, _C + "COPY from PSUM to steps of 9, fp32, 386 to 402"),
    Figure("scalar_strided_write16_psum", _V34, 5.3, "times", _O, _C + "COPY from PSUM to the same, fp16, 722"),
    Figure("scalar_strided_front_psum", _V34, 0.4, "of the writes", _O, _C + "such words begin 227 ns apart"),
    Figure("whole_front", _V34, 1.0, "of the writes", _I, "no fp32 word from SBUF was captured right behind another"),
    Figure("whole_front_psum", _V34, 0.76, "of the writes", _O, _C + "COPY from PSUM, fp32, 178 ns apart, then 230"),
    # An engine's results leave in order. Words of Scalar from PSUM issue every 157 and 482 ns, and complete every 170
    # and 488: each of twelve in a row takes 13 ns longer than the one before it.
    Figure("scalar_psum_behind", _V34, 10.0, "ns", _O, _C + "COPY of 128 and 512, ACTIVATE of 512: 12, 9 and 8"),
    # Words of searches, gathers, statistics and random numbers.
    Figure("bn_aggregate", _ALL, 13.0, "cycles per triple", _D, "hardware.md 5.2: 13N/3"),
    Figure("exponential", _V4, 0.25, "passes", _D, "hardware.md 5.2: four times the Scalar engine"),
    Figure("rand2", _V4, 0.25, "passes", _D, "hardware.md 5.2: 4 values per lane and cycle"),
    Figure("quantize_mx", _V4, 0.25, "passes", _D, "hardware.md 5.2: 4 elements a cycle"),
    Figure("gather_group", _ALL, 512.0, "indices", _D, "hardware.md 5.4: one instruction per 512"),
    Figure("gather_setup", _ALL, 28.0, "cycles", _D, "hardware.md 5.4: local_gather"),
    Figure("gather_element", _ALL, 4.0, "cycles", _D, "hardware.md 5.4: local_gather"),
    Figure("top_k", _ALL, 4.0, "cycles per element", _D, "hardware.md 5.4: 4n+K"),
    # Words without data, and what connects engines.
    Figure("table_load", _V3, 1283.0, "ns", _O, _P + "ACT_TABLE_LOAD in ten runs"),
    Figure("table_load", _V2 + _V4, 1283.0, "ns", _I, "trn2's"),
    Figure("event_semaphore", _V2, 9.0, "ns", _O, "hardware.md 3.9, 8.1: A-8b"),
    Figure("event_semaphore", _V3, 52.0, "ns", _O, _P + "EVENT_SEMAPHORE 52 on Tensor and Scalar"),
    Figure("event_semaphore", _V4, 52.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("control", _V2, 7.0, "ns", _O, _C + "SET_ORDERING_MODE of trn1, 6 to 9"),
    Figure("control", _V3, 43.0, "ns", _O, _C + "SET_ORDERING_MODE, 42 to 44, on GpSimd of version 5 48"),
    Figure("control", _V4, 43.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("control_vector", _V2, 9.0, "ns", _O, _C + "SET_ORDERING_MODE of trn1"),
    Figure("control_vector", _V3, 53.0, "ns", _O, _C + "SET_ORDERING_MODE on Vector, 51; 56 in version 6"),
    Figure("control_vector", _V4, 53.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("control_sync", _V2, 7.0, "ns", _O, _C + "SET_ORDERING_MODE of trn1"),
    Figure("control_sync", _V3, 23.0, "ns", _O, _C + "SET_ORDERING_MODE on Sync, 23 and 24 in 20 of 20"),
    Figure("control_sync", _V4, 23.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("control_interval", _V2, 44.0, "ns", _O, _C + "SET_ORDERING_MODE to WRITE on Sync of trn1"),
    Figure("control_interval", _V3, 66.0, "ns", _O, _C + "SET_ORDERING_MODE to the next, 64 on Scalar, 69 on Sync"),
    Figure("control_interval", _V4, 66.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("nop", _V2, 14.0, "ns", _O, _C + "NOP of trn1"),
    Figure("nop", _V3, 19.0, "ns", _O, _C + "NOP on GpSimd"),
    Figure("nop", _V4, 19.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("nop_interval", _V2, 14.0, "ns", _I, "its duration"),
    Figure("nop_interval", _V3, 70.0, "ns", _O, _C + "NOP to NOP on GpSimd"),
    Figure("nop_interval", _V4, 70.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    # A branch empties the instruction buffer: 338 ns from a COMPARE_BRANCH to the word behind it on four engines.
    Figure("branch", _V3, 338.0, "ns", _O, _P + "COMPARE_BRANCH to the next word"),
    Figure("branch", _V2 + _V4, 338.0, "ns", _I, "trn2's"),
    # Queues with descriptors from load time: the word only rings the bell, one or two registers of it. Engines but Sync
    # and GpSimd do so in the loader's own words only.
    Figure("trigger_pool", _V2, 60.0, "ns", _O, _C + "WRITE of trn1, 60 to 74"),
    Figure("trigger_pool", _V3, 46.0, "ns", _O, _C + "WRITE on GpSimd"),
    Figure("trigger_pool", _V4, 46.0, "ns", _I, "trn2's"),
    Figure("trigger_pool_single", _V2, 43.0, "ns", _O, _C + "WRITE of one value of trn1"),
    Figure("trigger_pool_single", _V3, 26.0, "ns", _O, _C + "WRITE of one value on GpSimd"),
    Figure("trigger_pool_single", _V4, 26.0, "ns", _I, "trn2's"),
    Figure("trigger_pool_interval", _V3, 97.0, "ns", _O, _C + "WRITE to the next word on GpSimd"),
    Figure("trigger_pool_interval", _V2 + _V4, 97.0, "ns", _I, "trn2's"),
    Figure("trigger_sync", _V2, 51.0, "ns", _O, _C + "WRITE of trn1"),
    Figure("trigger_sync", _V3, 58.0, "ns", _O, _C + "WRITE on Sync"),
    Figure("trigger_sync", _V4, 58.0, "ns", _I, "trn2's"),
    Figure("trigger_sync_single", _V2, 36.0, "ns", _I, "as much less as on trn2"),
    Figure("trigger_sync_single", _V3, 45.0, "ns", _O, _C + "WRITE of one value on Sync, 42 to 48"),
    Figure("trigger_sync_single", _V4, 45.0, "ns", _I, "trn2's"),
    Figure("trigger_sync_interval", _V2, 82.0, "ns", _O, _C + "WRITE to WRITE of trn1"),
    Figure("trigger_sync_interval", _V3, 88.0, "ns", _O, _C + "WRITE to WRITE on Sync, 87 to 93"),
    Figure("trigger_sync_interval", _V4, 88.0, "ns", _I, "trn2's"),
    Figure("trigger_scalar", _V2, 51.0, "ns", _I, "Sync's"),
    Figure("trigger_scalar", _V3, 50.0, "ns", _O, _C + "WRITE of two values of the loader on Scalar"),
    Figure("trigger_scalar", _V4, 50.0, "ns", _I, "trn2's"),
    Figure("trigger_scalar_single", _V2, 36.0, "ns", _I, "Sync's"),
    Figure("trigger_scalar_single", _V3, 25.0, "ns", _O, _C + "WRITE of one value of the loader on Scalar"),
    Figure("trigger_scalar_single", _V4, 25.0, "ns", _I, "trn2's"),
    Figure("trigger_scalar_interval", _ALL, 97.0, "ns", _I, "GpSimd's"),
    Figure("trigger_vector", _V2, 51.0, "ns", _I, "Sync's"),
    Figure("trigger_vector", _V3, 57.0, "ns", _O, _C + "WRITE of two values of the loader on Vector"),
    Figure("trigger_vector", _V4, 57.0, "ns", _I, "trn2's"),
    Figure("trigger_vector_single", _V2, 36.0, "ns", _I, "Sync's"),
    Figure("trigger_vector_single", _V3, 32.0, "ns", _O, _C + "WRITE of one value of the loader on Vector"),
    Figure("trigger_vector_single", _V4, 32.0, "ns", _I, "trn2's"),
    Figure("trigger_vector_interval", _ALL, 97.0, "ns", _I, "GpSimd's"),
    Figure("trigger_tensor", _V2, 68.0, "ns", _O, _C + "WRITE of two values of the loader of trn1"),
    Figure("trigger_tensor", _V3, 75.0, "ns", _O, _C + "WRITE of two values of the loader on Tensor"),
    Figure("trigger_tensor", _V4, 75.0, "ns", _I, "trn2's"),
    Figure("trigger_tensor_single", _V2, 36.0, "ns", _I, "Sync's"),
    Figure("trigger_tensor_single", _V3, 25.0, "ns", _O, _C + "WRITE of one value of the loader on Tensor"),
    Figure("trigger_tensor_single", _V4, 25.0, "ns", _I, "trn2's"),
    Figure("trigger_tensor_interval", _ALL, 97.0, "ns", _I, "GpSimd's"),
    # An engine takes longer over what it does for the first times (`emulator.cost.cold`).
    Figure("first_doorbell_sync", _V3, 24.0, "ns", _O, _C + "67 and 90 ns, 24 and 32 more than later ones"),
    Figure("first_doorbell_sync", _V2, 0.0, "ns", _O, _C + "WRITE of trn1, 50 to 52 from the first on"),
    Figure("first_doorbell_sync", _V4, 24.0, "ns", _I, "trn2's"),
    Figure("first_register_sync", _V3, 8.0, "ns", _O, _C + "66 ns behind a doorbell of one register"),
    Figure("first_register_sync", _V2, 0.0, "ns", _O, _C + "WRITE of trn1, 50 to 52 from the first on"),
    Figure("first_register_sync", _V4, 8.0, "ns", _I, "trn2's"),
    Figure("first_doorbell_pool", _V3, 32.0, "ns", _O, _C + "58 ns for one register, 83 for two"),
    Figure("first_doorbell_pool", _V2, 14.0, "ns", _O, _C + "74 ns on trn1, then 60"),
    Figure("first_doorbell_pool", _V4, 32.0, "ns", _I, "trn2's"),
    Figure("next_doorbell_pool", _V3, 6.0, "ns", _O, _C + "58, 52 and 46 ns behind the first; 32 for one register"),
    Figure("next_doorbell_pool", _V2, 0.0, "ns", _O, _C + "74 ns on trn1, then 60"),
    Figure("next_doorbell_pool", _V4, 6.0, "ns", _I, "trn2's"),
    Figure("first_register_pool", _V3, 6.0, "ns", _O, _C + "58 and 52 ns behind two doorbells of one register"),
    Figure("first_register_pool", _V2, 0.0, "ns", _O, _C + "74 ns on trn1, then 60"),
    Figure("first_register_pool", _V4, 6.0, "ns", _I, "trn2's"),
    Figure("first_pause_pool", _V3, 7.0, "ns", _O, _C + "NOP on GpSimd, 26, 26 and 19"),
    Figure("first_pause_pool", _V2, 0.0, "ns", _O, _C + "NOP of trn1, 14"),
    Figure("first_pause_pool", _V4, 7.0, "ns", _I, "trn2's"),
    Figure("first_generate", _V3, 30.0, "ns", _O, _C + "first DMA_DIRECT2D of Sync and Scalar, 541 to 560"),
    Figure("first_generate", _V2, 0.0, "ns", _I, "hardware.md 4.4: v2 has no such generator"),
    Figure("first_generate", _V4, 30.0, "ns", _I, "trn2's"),
    Figure("first_rows", _V3, 30.0, "ns", _O, _C + "first DMA_DIRECT2D of more than 128 rows, 594; 612"),
    Figure("first_rows", _V2, 0.0, "ns", _I, "hardware.md 4.4: v2 has no such generator"),
    Figure("first_rows", _V4, 30.0, "ns", _I, "trn2's"),
    # What the second register takes, the next word waits for too.
    Figure("trigger_second", _V3, 9.0, "ns", _O, _C + "WRITE to WRITE on Sync, 78 to 79 where it is of one value"),
    Figure("trigger_second", _V2 + _V4, 9.0, "ns", _I, "trn2's"),
    # Queues whose descriptors are made at the trigger: hardware holds Sync and Scalar, software on GpSimd works in two
    # steps of which the next word can follow the first.
    Figure("generate_hardware", _V3, 474.0, "ns", _O, _C + "517 and 524 for 128 rows, 565 and 572 for 256"),
    Figure("generate_hardware", _V2, 86.0, "ns", _I, "hardware.md 4.4: v2 has no such generator"),
    Figure("generate_hardware", _V4, 474.0, "ns", _I, "hardware.md 4.4: as trn2"),
    Figure("generate_row", _V3, 0.37, "ns", _O, _C + "the same"),
    Figure("generate_row", _V2, 0.0, "ns", _I, "hardware.md 4.4: v2 has no such generator"),
    Figure("generate_row", _V4, 0.37, "ns", _I, "hardware.md 4.4: as trn2"),
    Figure("generate_gap", _V3, 46.0, "ns", _O, _C + "DMA_DIRECT2D on Sync and Scalar to the next, 44 to 53"),
    Figure("generate_gap", _V2, 0.0, "ns", _I, "hardware.md 4.4: v2 has no such generator"),
    Figure("generate_gap", _V4, 46.0, "ns", _I, "hardware.md 4.4: as trn2"),
    Figure("generate_behind", _V3, 87.0, "ns", _O, _C + "604 to 609 instead of 517 and 524 right behind another"),
    Figure("generate_behind", _V2, 0.0, "ns", _I, "hardware.md 4.4: v2 has no such generator"),
    Figure("generate_behind", _V4, 87.0, "ns", _I, "hardware.md 4.4: as trn2"),
    Figure("generate_software", _V3, 582.0, "ns", _O, _P + "DMA_DIRECT2D on GpSimd every 576 to 596 ns"),
    Figure("generate_software", _V2, 582.0, "ns", _I, "trn2's"),
    Figure("generate_software", _V4, 582.0, "ns", _I, "trn2's"),
    Figure("generate_first", _V3, 1232.0, "ns", _O, _P + "wait met to the end of DMA_DIRECT2D on GpSimd"),
    Figure("generate_first", _V2 + _V4, 1232.0, "ns", _I, "trn2's"),
    # Profiles show only the last part of a trigger on GpSimd, after its descriptors are made.
    Figure("software_word", _V3, 34.7, "ns", _O, _C + "DMA_DIRECT2D on GpSimd, 32 and 38"),
    Figure("software_word", _V2 + _V4, 34.7, "ns", _I, "trn2's"),
    Figure("software_second", _V3, 53.0, "ns", _O, _C + "the same right behind another, 50; 65 with rows of 4 KiB"),
    Figure("software_second", _V2 + _V4, 53.0, "ns", _I, "trn2's"),
    Figure("software_third", _V3, 76.0, "ns", _O, _C + "right behind two, 71 and 75; 92 with rows of 4 KiB"),
    Figure("software_third", _V2 + _V4, 76.0, "ns", _I, "trn2's"),
    Figure("device_read", _V3, 680.0, "ns", _O, _P + "TENSOR_LOAD 472 to 1,237, median"),
    Figure("device_read", _V2 + _V4, 680.0, "ns", _I, "trn2's"),
    Figure("propagation", _V2, 30.0, "ns", _O, "hardware.md 8.1: A-4 less A-3"),
    Figure("propagation", _V3, 36.0, "ns", _O, _P + "33 to 38 to Vector and Scalar, 51 to Tensor"),
    Figure("propagation", _V4, 36.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
    Figure("packet_shown", _V3, 3.0, "ns", _O, _P + "durations of packets less start to start"),
    Figure("packet_shown", _V2 + _V4, 3.0, "ns", _I, "trn2's"),
    # What a measured device time includes besides the program: the runtime's words around it, not emulated.
    Figure("runtime_overhead", _V3, 15.1, "us", _O, _P + "a run less its program, 14.9 to 15.7"),
    Figure("runtime_overhead", _V2 + _V4, 15.1, "us", _I, "trn2's"),
    # The Tensor engine's clock: windows in which its use decides whether the next one runs at full rate.
    Figure("throttle_window", _V3, 4096.0, "cycles of 1.2 GHz", _O, _P + "changes of clock, 3,413 ns"),
    Figure("throttle_window", _V4, 4096.0, "cycles of 1.2 GHz", _I, "hardware.md 3.3: Trn2 and Trn3"),
    Figure("throttle_share", _V3, 0.375, "of full rate", _O, _P + "0.355 slows down, 0.378 speeds up"),
    Figure("throttle_share", _V4, 0.375, "of full rate", _I, "hardware.md 3.3: Trn2 and Trn3"),
    Figure("throttle_factor", _V3, 2.0, "times", _O, _P + "MATMUL of 512 every 853 instead of 428 ns"),
    Figure("throttle_factor", _V4, 2.0, "times", _D, "hardware.md 3.3: half rate"),
    Figure("throttle_latency", _V3, 40.0, "ns", _O, _P + "205 instead of 165 over the work"),
    Figure("throttle_latency", _V4, 40.0, "ns", _I, "hardware.md 9: trn3 reuses trn2"),
)


_INSTEAD: dict[tuple[str, str], float] = {}


@contextmanager
def figures_as(values: Mapping[str, float], target: str) -> Iterator[None]:
    """Let figures of one chip have other values while the block runs.

    Words that were bound, and devices that were made, keep the costs they have.
    """
    before = dict(_INSTEAD)
    _INSTEAD.update({(name, target): value for name, value in values.items()})
    _forget()
    try:
        yield
    finally:
        _INSTEAD.clear()
        _INSTEAD.update(before)
        _forget()


@cache
def figure(name: str, target: str) -> float:
    """Return one number of a chip; UnsupportedError where there is none."""
    if (name, target) in _INSTEAD:
        return _INSTEAD[name, target]
    value = _values().get((name, target))
    if value is None:
        raise UnsupportedError(f"no figure {name!r} for {target}")
    return value


@cache
def _values() -> dict[tuple[str, str], float]:
    """Return the numbers of all chips; of two rows the first counts."""
    return {(row.name, target): row.value for row in reversed(FIGURES) for target in row.targets}


@cache
def picoseconds(names: tuple[str, ...], target: str) -> tuple[int, ...]:
    """Return numbers of a chip that are nanoseconds as whole picoseconds; errors as in `figure`."""
    return tuple([round(figure(name, target) * 1000) for name in names])


def _forget() -> None:
    figure.cache_clear()
    picoseconds.cache_clear()
