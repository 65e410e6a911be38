"""Calls of the collector as the runtime makes them, a small sysfs, and a core dump to hand over."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from formats.core import CoreWriter
from formats.core.records import DumpNote, FaultNote, LogNote, Source, StatusNote
from neurontools.dump.publish import COMMITTED

ROOT = Path(__file__).resolve().parents[2]
INSTANCE = "i-0b514eadc4fec7de6"


def flags(directory: Path | str, pid: int = 897, **more: object) -> list[str]:
    """Return the flags that the runtime passes, `more` with dashes for underscores."""
    values: dict[str, object] = {
        "neff-name": "model",
        "neff-uuid": "00112233445566778899aabbccddeeff",
        "date-time": "2025-09-17-19-44",
        "pid": pid,
        "tid": pid,
        "log-id": 0,
        "instance-id": INSTANCE,
        "cluster-id": "0" * 16,
        "error-location": "nrt_execute",
        "error-code": 1006,
        "local-output-dir": directory,
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    return [text for name, value in values.items() for text in (f"--{name}", str(value))]


def environment(**more: str) -> dict[str, str]:
    """Return an environment that names no device, no log and no server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NEURON", "AWS"))}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


def start(arguments: list[str], **more: Any) -> subprocess.Popen[str]:
    """Start the collector."""
    more.setdefault("env", environment())
    return subprocess.Popen([sys.executable, "-m", "neurontools.dump", *arguments], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **more)  # fmt: skip


def run(arguments: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
    """Run the collector and return how it ended."""
    process = start(arguments, **more)
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def sysfs(root: Path, devices: int = 1, cores: int = 2) -> Path:
    """Make a sysfs with devices as the driver shows them, and return its root."""
    for device in range(devices):
        folder = root / f"devices/virtual/neuron_device/neuron{device}"
        _attribute(folder / "core_count", cores)
        _attribute(folder / "reset", "do not read")
        _attribute(folder / "info/serial_number", f"19fc{device}")
        _attribute(folder / "stats/hardware/mem_ecc_uncorrected", device)
        for core in range(cores):
            _attribute(folder / f"neuron_core{core}/stats/status/oob/total", core + 1)
    return root


def _attribute(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{value}\n")


def core_file(path: Path, cores: int = 1, extra: int = 0) -> Path:
    """Write a core dump of an emulated device that went out of bounds; `extra` bytes make it longer."""
    with CoreWriter(path) as writer:
        writer.note(DumpNote(created="2026-01-01T00:00:00+00:00", device="emulated", cores=cores, outcome="fault"))
        writer.note(StatusNote(1006, "NRT_EXEC_OOB", "nrt_execute"))
        writer.note(FaultNote("oob", "index 99999 of 128", 0, "Pool", 11, "GATHER", "GATHER", Source("k.py", 7)))
        if extra:
            writer.note(LogNote(("x" * extra,)))
    return path


def visible_files(directory: Path) -> Iterator[tuple[str, Path]]:
    """Yield names and paths of the files of a dump directory, those that have not got their names yet included."""
    committed = []
    for entry in os.scandir(directory):
        if entry.name.startswith(COMMITTED):
            committed.append(entry.path)
        elif not entry.name.startswith(".") and entry.is_file():
            yield entry.name, Path(entry.path)
    for folder in committed:
        with suppress(OSError):  # named by its rank in the meantime
            for entry in os.scandir(folder):
                yield entry.name, Path(entry.path)


def whole_dumps(directory: Path) -> set[int]:
    """Return the processes whose dumps are in a directory, after checking that each of them is whole."""
    found: set[int] = set()
    if not directory.exists():
        return found
    files = dict(visible_files(directory))
    listed: set[str] = set()
    for name, path in files.items():
        if name.endswith(".json"):
            document = json.loads(path.read_text())
            for each in document["files"]:
                data = files[each["name"]].read_bytes()
                assert len(data) == each["bytes"]
                assert hashlib.sha256(data).hexdigest() == each["sha256"]
                listed.add(each["name"])
            listed.add(name)
            found.add(int(document["arguments"]["pid"]))
    assert set(files) == listed, "a file that no manifest knows"
    return found
