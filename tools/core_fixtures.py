"""The core dump fixtures: `python -m tools core-fixtures`.

Each is what an emulated trn2 was at the end of a program beside it. The two that stopped are light dumps, as a fault
leaves them; the two that ended and are wrong are full ones. Device times in them are those of the emulator that wrote.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest.mock import patch

from emulator.checks import make_checks
from emulator.device import Device
from emulator.dump import EventTail, write_core
from formats.core.records import EnvironmentNote
from formats.neff import open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from tools.generate import ROOT

__all__ = ["build", "files"]

HERE = ROOT / "fixtures" / "core"
PROGRAMS = {"hang": "light", "oob": "light", "nan": "full", "race": "full"}
ENVIRONMENT = EnvironmentNote(
    "host-0", "Linux", "3.11", {"neurontools": "0.1.0"}, {"NEURON_RT_LOG_LEVEL": "WARN"}, ("neurontools", "run")
)


def build(name: str, path: Path) -> None:
    """Run a program, watched for races, and write its dump."""
    source = HERE / f"{name}.s"
    neff = open_neff(to_neff(parse_program(source.read_text(), f"fixtures/core/{name}.s")))
    device = Device(neff.target)
    device.load(neff)
    tail, checks = EventTail(), make_checks(("racecheck",))
    device.observers += [*checks, tail]
    for check in checks:
        if hasattr(check, "attach"):
            check.attach(device)
    device.run()
    for check in checks:
        if hasattr(check, "finish"):
            check.finish()
    found = [finding for check in checks for finding in getattr(check, "findings", ())]
    log = [f"2026-Nov-21 08:00:00.000001  4711:4711  ERROR  NRT:nrt_execute  {device.outcome} in {name}"]
    with patch("emulator.dump.write.version", return_value="0.1.0"):  # a source tree need not be installed
        write_core(device, path, level=PROGRAMS[name], journal=tail, log_tail=log, environment=ENVIRONMENT,
                   created="2026-11-21T08:00:00+00:00", findings=found, folders=[ROOT],
                   neff_path=f"{name}.neff", pid=4711)  # fmt: skip


def files() -> dict[str, bytes]:
    """Return every dump by its path."""
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in PROGRAMS:
            path = Path(folder, f"{name}.core")
            build(name, path)
            made[f"fixtures/core/{name}.core"] = path.read_bytes()
    return made
