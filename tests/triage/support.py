"""Dump directories for the tests: ours, and AWS's as far as their form is published."""

from __future__ import annotations

import json
from pathlib import Path

from formats.core import CoreWriter
from formats.core.records import DumpNote, FaultNote, Source, StatusNote, WaitsNote, WaitState
from formats.nrt.names import FileName

LOGGED = "2025-Sep-19 18:57:{second:09.6f}  {pid}:{pid}  ERROR  {function}                {text}\n"
FAULT = FaultNote("oob", "index 99999 of 128", 0, "Pool", 11, "GATHER", "GATHER", Source("/a/k.py", 7), got="99999",
                  expected="0 to 127")  # fmt: skip
DEADLOCK = WaitsNote(
    "deadlock", 5,
    (WaitState(0, "PE", 3, "NOP", "NOP", Source("/b/k.py", 4), "semaphore", 5, "S[5]>=1", 1, 0, 10, pending=1),
     WaitState(0, "DVE", 8, "COPY", "COPY", Source("/b/k.py", 9), "semaphore", 6, "S[6]>=1", 1, 0, 20, pending=1)),
    (((0, "PE"), (0, "DVE")),),
)  # fmt: skip
LOST = WaitsNote("deadlock", 5, (WaitState(0, "PE", 3, "NOP", "NOP", None, "semaphore", 9, "S[9]>=2", 2, 1, 10),))


def ours(
    directory: Path,
    pid: int,
    *,
    instance: str = "i-01",
    second: float = 1.0,
    fault: FaultNote | None = FAULT,
    waits: WaitsNote | None = None,
    status: tuple[int, str] = (1006, "NRT_EXEC_OOB"),
    world: int | None = None,
    rank: int | None = None,
    created: str = "2025-09-19T18:57:59+00:00",
) -> None:
    """Write the files of one rank as the collector does."""
    directory.mkdir(parents=True, exist_ok=True)
    outcome = "fault" if fault is not None else "hang"
    with CoreWriter(directory / str(FileName("core", instance, pid, pid, 0, 0, 0))) as writer:
        writer.note(DumpNote(created=created, device="emulated", outcome=outcome))
        writer.note(StatusNote(*status, "nrt_execute"))
        if fault is not None:
            writer.note(fault)
        if waits is not None:
            writer.note(waits)
    log(directory, pid, f"Failed to execute model m with status {status[0]}", instance=instance, second=second)
    variables = {} if world is None else {"WORLD_SIZE": str(world), "RANK": str(rank)}
    document = {"arguments": {"error-code": str(status[0]), "neff-name": "m"},
                "environment": {"hostname": "h", "variables": variables}}  # fmt: skip
    (directory / str(FileName("manifest", instance, pid, pid, 0))).write_text(json.dumps(document))


def log(directory: Path, pid: int, *texts: str, instance: str = "i-01", second: float = 1.0,
        function: str = "NRT:nrt_execute") -> None:  # fmt: skip
    """Write the log of one rank."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = [LOGGED.format(second=second, pid=pid, function=function, text=text) for text in texts]
    (directory / str(FileName("log", instance, pid))).write_text("".join(lines))


def awss(directory: Path, pid: int, *texts: str, instance: str = "i-0b51", second: float = 1.0) -> None:
    """Write what a real directory has: a state file in a format that is not published, and a log."""
    log(directory, pid, *texts, instance=instance, second=second)
    (directory / str(FileName("core", instance, pid, pid, 0, 0, 0))).write_bytes(b"\x8aunpublished" * 10)
