"""Kernels with one flaw each, and twins without it: what advice has to find, and has to leave alone."""

from __future__ import annotations

from typing import Any

import numpy as np

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from formats.neff import open_neff
from neurontools import builder
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.nki.launch import trace_kernel
from neurontools.program.opening import Program

__all__ = ["PLANTED", "program", "waits"]

Arrays = tuple[np.ndarray[Any, Any], ...]


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def tile(rows: int, columns: int, dtype: Any = nl.float32, buffer: Any = nl.sbuf) -> Any:
    return nl.ndarray((rows, columns), dtype=dtype, buffer=buffer)


def store(x: Any, value: Any) -> Any:
    out = nl.ndarray(value.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=value)
    return out


def many_loads(x: Any, step: int) -> Any:
    part = tile(128, 256)
    for start in range(0, 256, step):
        nisa.dma_copy(dst=part[0:128, start : start + step], src=x[0:128, start : start + step])
    nisa.activation(dst=part, op=nl.tanh, data=part)
    return store(x, part)


def short_rows(x: Any, flaw: bool) -> Any:
    # The same bytes: from 4,096 rows of 32 bytes that lie apart, or from 128 rows of 1 KiB.
    part = nl.ndarray((128, 32, 8), dtype=nl.float32, buffer=nl.sbuf)
    rows = x.reshape((128, 32, 64))
    if flaw:
        nisa.dma_copy(dst=part, src=rows[0:128, 0:32, 0:8])
    else:
        nisa.dma_copy(dst=part, src=x[0:128, 0:256].reshape((128, 32, 8)))
    nisa.activation(dst=part, op=nl.tanh, data=part)
    return store(x, part)


def one_buffer(x: Any, flaw: bool) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    same = tile(128, 512)
    for start in range(0, 512, 128):
        part = same if flaw else tile(128, 512)
        nisa.dma_copy(dst=part, src=x[start : start + 128, 0:512])
        result = tile(128, 512)
        nisa.activation(dst=result, op=nl.tanh, data=part)
        nisa.activation(dst=result, op=nl.tanh, data=result)
        nisa.dma_copy(dst=out[start : start + 128, 0:512], src=result)
    return out


def one_bank(x: Any, flaw: bool) -> Any:
    left, right = tile(128, 128, nl.bfloat16), tile(128, 512, nl.bfloat16)
    nisa.memset(dst=left, value=1.0)
    nisa.memset(dst=right, value=2.0)
    same = tile(128, 512, buffer=nl.psum)
    for _ in range(6):
        total = same if flaw else tile(128, 512, buffer=nl.psum)
        nisa.nc_matmul(dst=total, stationary=left, moving=right, accumulate=False)
        result = tile(128, 512)
        nisa.tensor_copy(dst=result, src=total)
    return store(x, result)


def product(x: Any, dtype: Any) -> Any:
    left, right = tile(128, 128, dtype), tile(128, 512, dtype)
    nisa.memset(dst=left, value=1.0)
    nisa.memset(dst=right, value=2.0)
    total = tile(128, 512, buffer=nl.psum)
    for _ in range(8):
        nisa.nc_matmul(dst=total, stationary=left, moving=right)
    result = tile(128, 512)
    nisa.tensor_copy(dst=result, src=total)
    return store(x, result)


def one_engine(x: Any, flaw: bool) -> Any:
    part, total = tile(128, 2048), tile(128, 1)
    nisa.dma_copy(dst=part, src=x)
    copies = [tile(128, 2048) for _ in range(8)]
    turns = (nisa.vector_engine, nisa.scalar_engine, nisa.gpsimd_engine)
    for number, copy in enumerate(copies):
        nisa.tensor_copy(dst=copy, src=part, engine=nisa.vector_engine if flaw else turns[number % 3])
    nisa.tensor_reduce(dst=total, op=nl.add, data=copies[-1], axis=1, keepdims=True)
    return store(x, total)


def few_partitions(x: Any, rows: int) -> Any:
    part = tile(rows, 128 * 512 // rows)
    nisa.memset(dst=part, value=1.0, engine=nisa.vector_engine)
    for _ in range(4):
        nisa.activation(dst=part, op=nl.tanh, data=part)
    return store(x, part)


def tables(x: Any, flaw: bool) -> Any:
    part, other = tile(128, 64), tile(128, 64)
    nisa.dma_copy(dst=part, src=x[0:128, 0:64])
    steps = (nl.exp, nl.gelu, nl.exp, nl.gelu) if flaw else (nl.exp, nl.exp, nl.gelu, nl.gelu)
    for function in steps:
        nisa.activation(dst=other, op=function, data=part)
    return store(x, other)


def fills_behind_copies(x: Any, flaw: bool) -> Any:
    """Return products whose sums Vector fills and copies: each fill behind the copy before it, or one ahead of it."""
    left, right = tile(128, 128, nl.bfloat16), tile(128, 512, nl.bfloat16)
    nisa.memset(dst=left, value=1.0)
    nisa.memset(dst=right, value=2.0)
    sums = [tile(128, 512, buffer=nl.psum) for _ in range(4)]
    results = [tile(128, 512) for _ in sums]
    for number, total in enumerate(sums):
        for one in [total] if flaw else sums[:1] * (number == 0) + sums[number + 1 : number + 2]:
            nisa.memset(dst=one, value=0.0)
        for _ in range(4):
            nisa.nc_matmul(dst=total, stationary=left, moving=right)
        nisa.tensor_copy(dst=results[number], src=total, engine=nisa.vector_engine)
    return store(x, results[-1])


# The Scalar engine waits for the tile that the Vector engine fills; it reads another one, or that one.
WAITS = """
.target trn2
.name waits
.dialect extended
.output y float32 [128, 512]
.queue  qOut act  40
.dma    qOut 0 40 SB+0xa000[1,262144][2048,128]   -> y+0[1,2048][2048,128]

.engine dve
    MEMSET S[4]++@complete value=1 dst=fp32@0x8000[1,1,1,1][512,1,1,1] count=512 channels=128
    MEMSET S[5]++@complete value=1 dst=fp32@0x0[1,1,1,1][4096,1,1,1] count=4096 channels=128

.engine act
    NOP S[4]>=1 cycle=0
    COPY S[5]>=1 src=fp32@{source}[1,1,1,1][512,1,1,1] dst=fp32@0xa000[1,1,1,1][512,1,1,1] channels=128
    PSEUDO_DMA_TRIGGER qOut block_id=0
    NOP S[40]>=16 cycle=0
"""

# rule: (kernel, input shape, argument of the flawed one, argument of its twin)
PLANTED: dict[str, tuple[Any, tuple[int, ...], Any, Any]] = {
    "small-transfers": (many_loads, (128, 256), 16, 256),
    "small-descriptors": (short_rows, (128, 2048), True, False),
    "missing-overlap": (one_buffer, (512, 512), True, False),
    "psum-banks": (one_bank, (128, 512), True, False),
    "fp32-matmul": (product, (128, 512), nl.float32, nl.bfloat16),
    "engine-imbalance": (one_engine, (128, 2048), True, False),
    "partitions": (few_partitions, (128, 512), 16, 128),
    "table-loads": (tables, (128, 64), True, False),
    "order": (fills_behind_copies, (128, 512), True, False),
}


def program(rule: str, flawed: bool) -> Program:
    """Return a rule's kernel, with its flaw or without."""
    kernel, shape, bad, good = PLANTED[rule]
    x = numbers(*shape)
    argument = bad if flawed else good

    def planted(x: Any) -> Any:
        return kernel(x, argument)

    traces = [one.trace for one in trace_kernel(planted, (x,), target="trn2")]
    neff = builder.build(traces, "planted").open()
    return Program(rule, neff, {each.name: x for each in neff.inputs},
                   scheduled=lambda: builder.build(traces, "planted", schedule=True).open())  # fmt: skip


def waits(flawed: bool) -> Program:
    """Return a program whose copy waits for a tile that it does not read, or for the one that it reads."""
    text = WAITS.replace("{source}", "0x8000" if flawed else "0x0")
    neff = open_neff(to_neff(parse_program(text, "waits.s", None)))
    return Program("waits", neff, {})
