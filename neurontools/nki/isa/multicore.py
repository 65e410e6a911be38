"""Instructions between the two cores of a logical core, and questions about the target."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from formats.engines import ENGINES
from neurontools.builder.limits import LIMITS
from neurontools.builder.trace import BarrierOp, SendRecvOp, Space
from neurontools.nki.isa.checks import pick_engine, same_free, same_partitions, tensor, tile
from neurontools.nki.isa.constants import dma_engine as dma_engines
from neurontools.nki.isa.constants import engine as engines
from neurontools.nki.isa.constants import nc_version
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.refusals import reject
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, current, default_target, kernel_line, tracer

__all__ = ["core_barrier", "get_nc_sub_version", "get_nc_version", "sendrecv"]

# Bytes per partition that GpSimd's own DMA moves. Source: hardware.md 5.5.
_GPSIMD_BYTES = {4: 1024, 2: 512, 1: 256}


def get_nc_version() -> nc_version:
    """Return the generation of the launch, or of the environment outside a kernel."""
    t = current()
    generation = t.limits.number if t is not None else LIMITS[default_target().generation].number
    return nc_version(generation)


def get_nc_sub_version() -> int:
    """Return the silicon revision, which is not modelled: always 0, the first."""
    return 0


def _pair(t: Tracer, instruction: str, alone: str = "") -> None:
    """Refuse an instruction between two cores where there is one; `alone` says what a kernel on one does instead."""
    if t.limits.logical_cores < 2:
        raise reject(t, instruction, "target", t.target.name, "needs gen3")
    if t.trace.num_programs != 2:
        raise reject(t, instruction, "LNC", t.trace.num_programs, f"needs a launch on two cores (kernel[2]){alone}")


def core_barrier(data: NkiTensor, cores: Any, engine: Any = engines.gpsimd, name: str | None = None) -> NkiInstruction:
    """Wait on an engine until both cores have come here; `data` is the shared tensor they meet about.

    Everything done to shared HBM before the barrier, by whatever engine, stays before it. AWS's kernels also meet about
    a tile in SBUF, which counts as used by the barrier.
    """
    t = tracer()
    _pair(t, "core_barrier", "; one core has none to wait for: leave it out where nl.num_programs(0) is 1")
    tensor(t, "core_barrier", "data", data)
    about = tile(t, "core_barrier", "data", data, psum=False) if data.allocation.space is Space.SBUF else None
    if about is None and (data.allocation.space is not Space.HBM or data.allocation.kind == "private"):
        raise reject(t, "core_barrier", "data", f"{data.name} in {data.buffer.value}", "must be in shared HBM")
    if not isinstance(cores, Iterable) or tuple(cores) != (0, 1):  # (0), as public kernels write, is a number
        raise reject(t, "core_barrier", "cores", cores, "must be (0, 1)")
    op = BarrierOp(kernel_line(), pick_engine(t, "core_barrier", engine, "Pool", ENGINES), about, name)
    t.ops.append(op)
    return NkiInstruction(op)


def sendrecv(
    src: NkiTensor,
    dst: NkiTensor,
    send_to_rank: int,
    recv_from_rank: int,
    pipe_id: int = 0,
    dma_engine: Any = dma_engines.dma,
    name: str | None = None,
    use_gpsimd_dma: bool = False,
) -> NkiInstruction:
    """Exchange SBUF tiles of one shape and type with the other core."""
    t = tracer()
    instruction = "sendrecv"
    _pair(t, instruction)
    out, landing = tile(t, instruction, "src", src, psum=False), tile(t, instruction, "dst", dst, psum=False)
    same_partitions(t, instruction, "src and dst", out, landing)
    same_free(t, instruction, "src and dst", src, dst)
    if src.dtype != dst.dtype:
        raise reject(t, instruction, "dst", f"of {dst.dtype}", f"must have the type of src, {src.dtype}")
    # a logical core has two physical ones, so that the peer is known
    other = 1 - t.trace.program_id
    for argument, rank in (("send_to_rank", send_to_rank), ("recv_from_rank", recv_from_rank)):
        if rank not in (0, 1):
            raise reject(t, instruction, argument, rank, "must be 0 or 1")
        if rank != other:
            raise reject(t, instruction, argument, rank, f"must be {other}, the other core")
    if dma_engine.__class__ is not dma_engines:
        raise reject(t, instruction, "dma_engine", repr(dma_engine), "must be nisa.dma_engine.dma or gpsimd_dma")
    if use_gpsimd_dma or dma_engine is dma_engines.gpsimd_dma:
        size, most = src.free_size * src.dtype.itemsize, _GPSIMD_BYTES[src.dtype.itemsize]
        if size > most:
            raise reject(t, instruction, "bytes per partition", size, f"at most {most} with gpsimd_dma")
    op = SendRecvOp(out, landing, other, kernel_line(), operator.index(pipe_id), name)
    t.ops.append(op)
    return NkiInstruction(op)
