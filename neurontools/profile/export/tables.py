"""Tables in the words of the public profile schema: names, units and enumerations are those of its tables.

Columns that only hardware knows are left out; `Metadata.is_simulation` is true.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurontools.profile.rows import SHOWN, flops_of
from neurontools.profile.summary import line_text

if TYPE_CHECKING:
    from neurontools.profile.rows import Timeline

__all__ = ["csv_lines", "instructions", "metadata", "summary", "tables", "write_folder"]

Row = dict[str, Any]
_ENGINE_KEYS = ("tensor", "vector", "scalar", "sync", "gpsimd")


def tables(timeline: Timeline, result: Row) -> dict[str, list[Row]]:
    """Return every table by its name in the schema."""
    return {
        "Metadata": [metadata(timeline)],
        "Summary": [summary(timeline, result)],
        "Instruction": instructions(timeline),
        "DmaPacketAggregated": transfers(timeline),
        "SemaphoreUpdate": semaphores(timeline),
        "Flow": flows(timeline),
        "OpcodeSummary": [dict(row) for row in result["opcodes"]],
        "SbufUsage": usage(timeline, "SBUF", [f"partition_{first}" for first in (0, 32, 64, 96)]),
        "PsumUsage": usage(timeline, "PSUM", [f"bank_{bank}" for bank in range(8)]),
    }


def metadata(timeline: Timeline) -> Row:
    """Return what was profiled, on what."""
    from neurontools import __version__
    from neurontools.profile.peaks import dma_peak, hbm_peak

    device = timeline.device
    arch, name = device.arch, device.target.name
    lanes = arch.partitions.whole
    return {
        "profile_schema_version": "1.0.0", "num_physical_cores": len(device.cores),
        "vnc_enabled": len(device.cores) > 1,
        "first_hw_timestamp": 0, "last_hw_timestamp": _ns(timeline.end_ps),
        "dma_ddr_bandwidth": dma_peak(name, 1) * 1e9, "num_dma_engines_per_neuroncore": arch.dma_engines.whole,
        "hbm_ddr_bandwidth": hbm_peak(name) * 1e9, "tensor_engine_num_rows": lanes, "tensor_engine_num_cols": lanes,
        "tensor_engine_clock_freq": arch.clock_pe.value, "vector_engine_clock_freq": arch.clock_vector.value,
        "vector_engine_num_channels": lanes, "scalar_engine_clock_freq": arch.clock_scalar.value,
        "scalar_engine_num_channels": lanes, "gpsimd_engine_clock_freq": arch.clock_gpsimd.value,
        "gpsimd_engine_num_channels": lanes, "instance_type": name, "explorer_version": f"neurontools {__version__}",
        "is_simulation": True,
    }


def summary(timeline: Timeline, result: Row) -> Row:
    """Return the schema's Summary; times in seconds."""
    total, dma, roof = result["total_time_ns"] / 1e9, result["dma"], result["roofline"]
    found: Row = {
        "total_time": total, "model_flops": roof["model_flops"],
        "hardware_flops": roof["model_flops"] + roof["transpose_flops"], "transpose_flops": roof["transpose_flops"],
        "adjusted_hardware_flops": roof["hardware_flops"], "mm_arithmetic_intensity": roof["arithmetic_intensity"],
        "peak_flops_bandwidth_ratio": roof["ridge"], "dma_active_time": dma["active_ns"] / 1e9,
        "dma_active_time_percent": dma["active_percent"], "dma_transfer_average_bytes": dma["average_transfer_bytes"],
        "dma_transfer_count": dma["transfer_count"], "dma_transfer_total_bytes": dma["bytes"],
        "dma_queue_count": len(dma["queues"]), "mbu_estimated_percent": roof["mbu_percent"],
        "hbm_read_bytes": dma["hbm_read_bytes"], "hbm_write_bytes": dma["hbm_write_bytes"],
        "matmul_instruction_count": roof["matmul_count"], "mfu_estimated_percent": roof["mfu_percent"],
        "hfu_estimated_percent": roof["hfu_percent"],
    }
    for key in _ENGINE_KEYS:
        mine = [one for one in result["engines"] if one["engine"] == key]
        times = [one["instruction_time_ns"] for one in result["opcodes"] if one["engine"] == key]
        found[f"{key}_engine_instruction_time"] = sum(times) / 1e9
        found[f"{key}_engine_active_time"] = sum(one["active_ns"] for one in mine) / 1e9
        found[f"{key}_engine_active_time_percent"] = (
            round(sum(one["active_percent"] for one in mine) / len(mine), 2) if mine else 0.0)
        found[f"{key}_engine_instruction_count"] = sum(one["instruction_count"] for one in mine)
    return found


def instructions(timeline: Timeline) -> list[Row]:
    """Return one row per instruction, by start."""
    found: list[Row] = []
    for track in timeline.engines:
        owner = track.owner
        for row in range(len(track)):
            word = timeline.causes.word(owner, row)
            start, end = track.start[row], track.completed[row]
            flops = flops_of(word)
            line = timeline.line(owner, row)
            found.append({
                "start_ts": _ns(start), "end_ts": _ns(end), "duration_ns": _ns(end) - _ns(start),
                "engine": SHOWN.get(owner.name, owner.name), "pcore_idx": owner.core, "opcode": word.name,
                "operands": word.operands, "id": track.number[row], "pc": track.pc[row], "compiler_pc": track.pc[row],
                "evt_wait_time_ns": _ns(track.waited[row]),
                "nki_source_location": "" if line is None else line_text(line),
                "raw_flops": 0 if flops is None else flops.model,
                "flops_transpose": 0 if flops is None else flops.transpose,
                "adjusted_flops": 0 if flops is None else flops.weighted,
            })
    return sorted(found, key=lambda one: (one["start_ts"], one["id"]))


def transfers(timeline: Timeline) -> list[Row]:
    """Return one row per transfer, by start."""
    kinds = {(queue.core, queue.name): queue for queue in timeline.device.queues}
    found: list[Row] = []
    for track in timeline.queues:
        owner = track.owner
        queue = kinds[owner.core, owner.name]
        kind = "data" if queue.kind != "dynamic" else (
            "software_dynamic" if queue.engine == "Pool" else "hardware_dynamic")
        for row in range(len(track)):
            start, end, nbytes = track.start[row], track.completed[row], track.nbytes[row]
            writes = bool(track.flags[row] & 1)
            found.append({
                "start_ts": _ns(start), "end_ts": _ns(end), "duration_ns": _ns(end) - _ns(start),
                "id": track.number[row], "pcore_idx": owner.core, "block_id": track.transfer[row],
                "queue_idx": queue.ring, "queue_name": owner.name, "queue_type": kind,
                "op": "write" if writes else "read",
                "read_bytes": nbytes, "write_bytes": nbytes, "transfer_bytes": nbytes,
                "throughput": nbytes * 1e12 / (end - start) if end > start else 0.0,
                "dest": "HBM" if writes else "SB",
            })
    return sorted(found, key=lambda one: (one["start_ts"], one["id"]))


def semaphores(timeline: Timeline) -> list[Row]:
    """Return every change of a semaphore or event, by time."""
    found = []
    for (core, kind, index), changes in timeline.recorder.changes.items():
        for number, time, value in zip(changes.number, changes.time, changes.value, strict=True):
            source = timeline.causes.completion(number)
            found.append({"timestamp": _ns(time), "id": f"{'E' if kind == 'event' else 'S'}[{index}]", "value": value,
                          "update_source": "" if source is None else SHOWN.get(source[0].name, source[0].name),
                          "update_trigger_timing": "complete", "pcore_idx": core})
    return sorted(found, key=lambda one: (one["timestamp"], one["id"]))


def flows(timeline: Timeline) -> list[Row]:
    """Return which instruction or transfer each wait waited for."""
    tracks = timeline.recorder.tracks

    def table(owner: Any) -> str:
        return "instruction" if owner.kind == "engine" else "dma_block"

    return [{"in_id": tracks[wait.source[0]].number[wait.source[1]], "out_id": tracks[wait.owner].number[wait.row],
             "in_table": table(wait.source[0]), "out_table": "instruction", "dependency_type": "FLOW_DEPENDENCE",
             "gap_time": _ns(tracks[wait.owner].start[wait.row] - tracks[wait.source[0]].completed[wait.source[1]])}
            for wait in timeline.waits
            if wait.source is not None and wait.source[1] < len(tracks[wait.source[0]])]


def usage(timeline: Timeline, space: str, parts: list[str]) -> list[Row]:
    """Return the use of SBUF or PSUM over time in percent."""
    found = []
    for use in timeline.measured.usage:
        if use.space != space:
            continue
        average = use.percent
        for index, time in enumerate(use.times_ps.tolist()):
            row = {"timestamp": _ns(time), "avg_util_percent": round(float(average[index]), 3), "pcore_idx": use.core}
            for part, blocks in zip(parts, use.blocks[:, index].tolist(), strict=True):
                row[f"{part}_util_percent"] = round(100 * blocks / use.capacity, 3)
            found.append(row)
    return found


def _ns(ps: int) -> int:
    return round(ps / 1000)


def csv_lines(rows: list[Row]) -> Iterator[str]:
    """Yield a table as comma-separated values with its heading."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="")
    heads = list(rows[0]) if rows else []
    for values in (heads, *([row[head] for head in heads] for row in rows)):
        writer.writerow(values)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def write_folder(form: str, timeline: Timeline, result: Row, folder: Path) -> list[str]:
    """Write each table that has rows as a file of a folder, csv or parquet; return the names of the files.

    Raises UnsupportedError for parquet where pyarrow is not installed.
    """
    made = []
    for name, rows in tables(timeline, result).items():
        if not rows:
            continue
        path = folder / f"{name}.{form}"
        if form == "csv":
            path.write_text("\n".join(csv_lines(rows)) + "\n", encoding="utf-8")
        else:
            _parquet(rows, path)
        made.append(path.name)
    return made


def _parquet(rows: list[Row], path: Path) -> None:
    from importlib import import_module

    from formats.errors import UnsupportedError

    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise UnsupportedError("parquet needs pyarrow: pip install 'neurontools[parquet]'") from None
    parquet.write_table(arrow.Table.from_pylist(rows), path)
