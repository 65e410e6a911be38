"""The profile of a run as typed rows; times are nanoseconds of device time, shares percent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from formats.named_tuple import NamedTuple

__all__ = ["Advice", "Comparison", "CriticalPath", "DmaSummary", "EngineRow", "LineDelta", "LineRow", "LinkRow",
           "LongestWait", "MemoryRow", "Metadata", "OpcodeRow", "OwnerShare", "PathLine", "Profile", "QueueRow",
           "Roofline", "SchemaSummary", "Share", "WaitRow", "WhatIf"]  # fmt: skip


class LongestWait(NamedTuple):
    """The longest wait of a kind."""

    line: str
    semaphore: str
    ns: float
    source_line: Annotated[str | None, "the line that ended it"]


@dataclass(frozen=True)
class WaitRow:
    """What an engine waited for, and for whom."""

    reason: Annotated[str, "semaphore, barrier, in flight, …"]
    source: Annotated[str, "engine or queue that ended the waits"]
    count: int
    ns: float
    percent: float
    longest: LongestWait


class EngineRow(NamedTuple):
    """One engine: `engine` is the public profile schema's name, `name` the NEFF's."""

    core: int
    engine: str
    name: str
    instruction_count: int
    busy_ns: float
    wait_ns: float
    idle_ns: float
    active_ns: float
    busy_percent: float
    wait_percent: float
    idle_percent: float
    active_percent: float
    waits: tuple[WaitRow, ...]


class QueueRow(NamedTuple):
    """One DMA queue."""

    core: int
    queue: str
    transfer_count: int
    bytes: int
    active_ns: float
    gb_per_s: float


class DmaSummary(NamedTuple):
    """All transfers; `moving_ns` is when data moved, `active_ns` when a transfer was under way."""

    transfer_count: int
    bytes: int
    hbm_read_bytes: int
    hbm_write_bytes: int
    average_transfer_bytes: float
    average_descriptor_bytes: float
    active_ns: float
    active_percent: float
    moving_ns: float
    gb_per_s: float
    peak_gb_per_s: float
    efficiency_percent: float
    engine_busy_percent: float
    queues: tuple[QueueRow, ...]


class Roofline(NamedTuple):
    """Work over time, against what the chip could do."""

    model_flops: int
    transpose_flops: int
    hardware_flops: int
    matmul_count: int
    peak_tflops: float
    achieved_tflops: float
    mfu_percent: float
    hfu_percent: float
    hbm_bytes: int
    hbm_peak_gb_per_s: float
    mbu_percent: float
    arithmetic_intensity: float
    ridge: float
    bound_by: Literal["memory", "compute"]
    roof_tflops: float
    roof_percent: float
    busiest_engine: str | None


class MemoryRow(NamedTuple):
    """The most of a memory that was in use."""

    core: int
    space: str
    peak_bytes: int
    peak_percent: float


class Share(NamedTuple):
    """The part of the critical path that a kind of link has."""

    kind: str
    ns: float
    percent: float


class OwnerShare(NamedTuple):
    """The part of the critical path that an engine or queue has."""

    owner: str
    ns: float
    percent: float


class PathLine(NamedTuple):
    """The part of the critical path that a source line has."""

    line: str
    ns: float
    percent: float
    kinds: Annotated[dict[str, float], "nanoseconds by kind of link"]


class LinkRow(NamedTuple):
    """One link of the critical path."""

    start_ns: float
    end_ns: float
    kind: str
    owner: str
    opcode: str
    pc: int
    line: str
    detail: str


class CriticalPath(NamedTuple):
    """What took exactly as long as the run."""

    total_ns: float
    kinds: tuple[Share, ...]
    owners: tuple[OwnerShare, ...]
    lines: tuple[PathLine, ...]
    links: tuple[LinkRow, ...]


class LineRow(NamedTuple):
    """What a source line took."""

    line: str
    file: str | None
    critical_ns: float
    critical_percent: float
    busy_ns: float
    wait_ns: float
    dma_ns: float
    dma_bytes: int
    instruction_count: int
    transfer_count: int
    what: Annotated[str, "where most of its time went"]


class OpcodeRow(NamedTuple):
    """The instructions of one name on one engine."""

    engine: str
    opcode: str
    instruction_count: int
    instruction_time_ns: float
    active_time_ns: float
    active_time_percent: float


class Metadata(NamedTuple):
    """What was profiled, on what, in the words of the public profile schema."""

    profile_schema_version: str
    num_physical_cores: int
    vnc_enabled: bool
    first_hw_timestamp: int
    last_hw_timestamp: int
    dma_ddr_bandwidth: float
    num_dma_engines_per_neuroncore: int
    hbm_ddr_bandwidth: float
    tensor_engine_num_rows: int
    tensor_engine_num_cols: int
    tensor_engine_clock_freq: float
    vector_engine_clock_freq: float
    vector_engine_num_channels: int
    scalar_engine_clock_freq: float
    scalar_engine_num_channels: int
    gpsimd_engine_clock_freq: float
    gpsimd_engine_num_channels: int
    instance_type: str
    explorer_version: str
    is_simulation: bool


class SchemaSummary(NamedTuple):
    """The Summary of the public profile schema; times in seconds."""

    total_time: float
    model_flops: int
    hardware_flops: int
    transpose_flops: int
    adjusted_hardware_flops: int
    mm_arithmetic_intensity: float
    peak_flops_bandwidth_ratio: float
    dma_active_time: float
    dma_active_time_percent: float
    dma_transfer_average_bytes: float
    dma_transfer_count: int
    dma_transfer_total_bytes: int
    dma_queue_count: int
    mbu_estimated_percent: float
    hbm_read_bytes: int
    hbm_write_bytes: int
    matmul_instruction_count: int
    mfu_estimated_percent: float
    hfu_estimated_percent: float
    tensor_engine_instruction_time: float
    tensor_engine_active_time: float
    tensor_engine_active_time_percent: float
    tensor_engine_instruction_count: int
    vector_engine_instruction_time: float
    vector_engine_active_time: float
    vector_engine_active_time_percent: float
    vector_engine_instruction_count: int
    scalar_engine_instruction_time: float
    scalar_engine_active_time: float
    scalar_engine_active_time_percent: float
    scalar_engine_instruction_count: int
    sync_engine_instruction_time: float
    sync_engine_active_time: float
    sync_engine_active_time_percent: float
    sync_engine_instruction_count: int
    gpsimd_engine_instruction_time: float
    gpsimd_engine_active_time: float
    gpsimd_engine_active_time_percent: float
    gpsimd_engine_instruction_count: int


class Advice(NamedTuple):
    """A flaw, and the time that the schedule takes less without it."""

    rule: str
    line: str
    file: str | None
    message: str
    saves_ns: float
    saves_percent: float
    proof: str
    source: str


class LineDelta(NamedTuple):
    """What a source line takes more than before, or less."""

    line: str
    critical_delta_ns: float
    busy_delta_ns: float
    wait_delta_ns: float
    dma_delta_ns: float


class WhatIf(NamedTuple):
    """The same schedule under other costs."""

    change: str
    total_time_ns: float
    before_ns: float
    lines: tuple[LineDelta, ...]


class Comparison(NamedTuple):
    """Another run beside this one."""

    name: str
    total_time_ns: float
    before_ns: float
    lines: tuple[LineDelta, ...]


class Profile(NamedTuple):
    """A run: where its time went, and what would save some of it; None is what was not asked for."""

    name: str
    is_simulation: bool
    target: str
    cores: int
    outcome: str
    total_time_ns: float
    engines: tuple[EngineRow, ...]
    dma: DmaSummary
    roofline: Roofline
    memory: tuple[MemoryRow, ...]
    critical_path: CriticalPath
    lines: tuple[LineRow, ...]
    opcodes: tuple[OpcodeRow, ...]
    metadata: Metadata
    summary: SchemaSummary
    advice: tuple[Advice, ...] | None = None
    what_if: WhatIf | None = None
    against: Comparison | None = None
