"""Tables in the words of the public profile schema: names, units and enumerations are those of its tables.

Columns that only hardware knows are left out; `Metadata.is_simulation` is true.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.cost.flops import flops_of
from formats.errors import UnsupportedError
from neurontools.profile.results import Profile
from neurontools.profile.rows import SHOWN
from neurontools.profile.summary import line_text
from neurontools.version import install_with

if TYPE_CHECKING:
    from neurontools.profile.rows import Timeline

__all__ = ["csv_lines", "instructions", "tables", "write_folder", "write_parquet"]

Row = dict[str, Any]


def tables(timeline: Timeline, result: Profile) -> dict[str, list[Row]]:
    """Return every table by its name in the schema."""
    return {
        "Metadata": [result.metadata._asdict()],
        "Summary": [result.summary._asdict()],
        "Instruction": instructions(timeline),
        "DmaPacketAggregated": transfers(timeline),
        "SemaphoreUpdate": semaphores(timeline),
        "Flow": flows(timeline),
        "OpcodeSummary": [row._asdict() for row in result.opcodes],
        "SbufUsage": usage(timeline, "SBUF", [f"partition_{first}" for first in (0, 32, 64, 96)]),
        "PsumUsage": usage(timeline, "PSUM", [f"bank_{bank}" for bank in range(8)]),
    }


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
            found.append(
                {
                    "start_ts": _ns(start),
                    "end_ts": _ns(end),
                    "duration_ns": _ns(end) - _ns(start),
                    "engine": SHOWN.get(owner.name, owner.name),
                    "pcore_idx": owner.core,
                    "opcode": word.name,
                    "operands": word.operands,
                    "id": track.number[row],
                    "pc": track.pc[row],
                    "compiler_pc": track.pc[row],
                    "evt_wait_time_ns": _ns(track.waited[row]),
                    "nki_source_location": "" if line is None else line_text(line),
                    "raw_flops": 0 if flops is None else flops.model,
                    "flops_transpose": 0 if flops is None else flops.transpose,
                    "adjusted_flops": 0 if flops is None else flops.weighted,
                }
            )
    return sorted(found, key=lambda one: (one["start_ts"], one["id"]))


def transfers(timeline: Timeline) -> list[Row]:
    """Return one row per transfer, by start."""
    kinds = {(queue.core, queue.name): queue for queue in timeline.device.queues}
    found: list[Row] = []
    for track in timeline.queues:
        owner = track.owner
        queue = kinds[owner.core, owner.name]
        kind = (
            "data"
            if queue.kind != "dynamic"
            else ("software_dynamic" if queue.engine == "Pool" else "hardware_dynamic")
        )
        for row in range(len(track)):
            start, end, nbytes = track.start[row], track.completed[row], track.nbytes[row]
            writes = bool(track.flags[row] & 1)
            found.append(
                {
                    "start_ts": _ns(start),
                    "end_ts": _ns(end),
                    "duration_ns": _ns(end) - _ns(start),
                    "id": track.number[row],
                    "pcore_idx": owner.core,
                    "block_id": track.transfer[row],
                    "queue_idx": queue.ring,
                    "queue_name": owner.name,
                    "queue_type": kind,
                    "op": "write" if writes else "read",
                    "read_bytes": nbytes,
                    "write_bytes": nbytes,
                    "transfer_bytes": nbytes,
                    "throughput": nbytes * 1e12 / (end - start) if end > start else 0.0,
                    "dest": "HBM" if writes else "SB",
                }
            )
    return sorted(found, key=lambda one: (one["start_ts"], one["id"]))


def semaphores(timeline: Timeline) -> list[Row]:
    """Return every change of a semaphore or event, by time."""
    found = []
    for (core, kind, index), changes in timeline.recorder.changes.items():
        for number, time, value in zip(changes.number, changes.time, changes.value, strict=True):
            source = timeline.causes.completion(number)
            found.append(
                {
                    "timestamp": _ns(time),
                    "id": f"{'E' if kind == 'event' else 'S'}[{index}]",
                    "value": value,
                    "update_source": "" if source is None else SHOWN.get(source[0].name, source[0].name),
                    "update_trigger_timing": "complete",
                    "pcore_idx": core,
                }
            )
    return sorted(found, key=lambda one: (one["timestamp"], one["id"]))


def flows(timeline: Timeline) -> list[Row]:
    """Return which instruction or transfer each wait waited for."""
    tracks = timeline.recorder.tracks

    def table(owner: Any) -> str:
        return "instruction" if owner.kind == "engine" else "dma_block"

    return [
        {
            "in_id": tracks[wait.source[0]].number[wait.source[1]],
            "out_id": tracks[wait.owner].number[wait.row],
            "in_table": table(wait.source[0]),
            "out_table": "instruction",
            "dependency_type": "FLOW_DEPENDENCE",
            "gap_time": _ns(tracks[wait.owner].start[wait.row] - tracks[wait.source[0]].completed[wait.source[1]]),
        }
        for wait in timeline.waits
        if wait.source is not None and wait.source[1] < len(tracks[wait.source[0]])
    ]


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


def write_folder(form: str, timeline: Timeline, result: Profile, folder: Path) -> list[str]:
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
            write_parquet(rows, path)
        made.append(path.name)
    return made


def write_parquet(rows: list[Row], path: Path) -> None:
    """Write rows as a table; UnsupportedError where pyarrow is not installed."""
    from importlib import import_module  # deferred: start-up

    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise UnsupportedError(f"parquet needs pyarrow: {install_with('parquet')}") from None
    parquet.write_table(arrow.Table.from_pylist(rows), path)
