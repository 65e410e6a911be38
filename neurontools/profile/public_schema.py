"""What was profiled, and the summary of it, in the words of the public profile schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from neurontools.profile.peaks import dma_peak, hbm_peak
from neurontools.profile.results import DmaSummary, EngineRow, Metadata, OpcodeRow, Roofline, SchemaSummary
from neurontools.version import __version__

if TYPE_CHECKING:
    from neurontools.profile.rows import Timeline

__all__ = ["metadata", "summary"]

_ENGINE_KEYS = ("tensor", "vector", "scalar", "sync", "gpsimd")


def metadata(timeline: Timeline) -> Metadata:
    """Return what was profiled, on what."""
    device = timeline.device
    arch, name = device.arch, device.target.name
    lanes = arch.partitions.whole
    return Metadata(
        profile_schema_version="1.0.0",
        num_physical_cores=len(device.cores),
        vnc_enabled=len(device.cores) > 1,
        first_hw_timestamp=0,
        last_hw_timestamp=round(timeline.end_ps / 1000),
        dma_ddr_bandwidth=dma_peak(name, 1) * 1e9,
        num_dma_engines_per_neuroncore=arch.dma_engines.whole,
        hbm_ddr_bandwidth=hbm_peak(name) * 1e9,
        tensor_engine_num_rows=lanes,
        tensor_engine_num_cols=lanes,
        tensor_engine_clock_freq=arch.clock_pe.value,
        vector_engine_clock_freq=arch.clock_vector.value,
        vector_engine_num_channels=lanes,
        scalar_engine_clock_freq=arch.clock_scalar.value,
        scalar_engine_num_channels=lanes,
        gpsimd_engine_clock_freq=arch.clock_gpsimd.value,
        gpsimd_engine_num_channels=lanes,
        instance_type=name,
        explorer_version=f"neurontools {__version__}",
        is_simulation=True,
    )


def summary(
    total_ns: float, engines: Sequence[EngineRow], dma: DmaSummary, roof: Roofline, opcodes: Sequence[OpcodeRow]
) -> SchemaSummary:
    """Return the schema's Summary; times in seconds."""
    by_engine: dict[str, Any] = {}  # by the fields of the summary: seconds, percent, counts
    for key in _ENGINE_KEYS:
        mine = [one for one in engines if one.engine == key]
        times = [one.instruction_time_ns for one in opcodes if one.engine == key]
        by_engine[f"{key}_engine_instruction_time"] = sum(times) / 1e9
        by_engine[f"{key}_engine_active_time"] = sum(one.active_ns for one in mine) / 1e9
        by_engine[f"{key}_engine_active_time_percent"] = (
            round(sum(one.active_percent for one in mine) / len(mine), 2) if mine else 0.0
        )
        by_engine[f"{key}_engine_instruction_count"] = sum(one.instruction_count for one in mine)
    return SchemaSummary(
        total_ns / 1e9,
        roof.model_flops,
        roof.model_flops + roof.transpose_flops,
        roof.transpose_flops,
        roof.hardware_flops,
        roof.arithmetic_intensity,
        roof.ridge,
        dma.active_ns / 1e9,
        dma.active_percent,
        dma.average_transfer_bytes,
        dma.transfer_count,
        dma.bytes,
        len(dma.queues),
        roof.mbu_percent,
        dma.hbm_read_bytes,
        dma.hbm_write_bytes,
        roof.matmul_count,
        roof.mfu_percent,
        roof.hfu_percent,
        **by_engine,
    )
