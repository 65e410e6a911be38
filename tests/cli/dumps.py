"""Core dumps for the tests of the `core` commands: examples run to their ends on the emulator."""

from __future__ import annotations

from pathlib import Path

from emulator.device import Device
from emulator.dump import EventTail, write_core
from formats.core.records import EnvironmentNote
from formats.neff import open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.conftest import PROGRAM

__all__ = ["dump", "neff_of", "refuses_bad_dumps"]


def neff_of(root: Path, name: str) -> bytes:
    """Return an example, or the small program that doubles its input, as a NEFF."""
    if name == "double":
        return to_neff(parse_program(PROGRAM, "double.s"))
    path = root / "examples" / f"{name}.s"
    return to_neff(parse_program(path.read_text(), f"examples/{name}.s"))


def dump(
    root: Path, name: str, path: Path, level: str = "full", x: float | None = None, steps: int | None = None
) -> Path:
    """Run an example, or its first completions, and dump the device."""
    neff = open_neff(neff_of(root, name))
    device = Device(neff.target, cores=len(neff.subgraphs))
    device.load(neff)
    if x is not None:
        import numpy as np

        device.set_inputs({tensor.name: np.full(tensor.shape, x, np.float32) for tensor in neff.inputs})
    tail = EventTail()
    device.observers.append(tail)
    if steps is None:
        device.run()
    else:
        for _ in range(steps):
            device.step()
    variables = {"NEURON_RT_LOG_LEVEL": "INFO"}
    write_core(device, path, level=level, journal=tail, log_tail=["one", "two"], created="2026-11-21T08:00:00+00:00",
               environment=EnvironmentNote("host", "Linux", "3.11", {"numpy": "2.4"}, variables),
               folders=[root])  # fmt: skip
    return path


def refuses_bad_dumps(cli: Cli, command: str, folder: Path, *more: object) -> None:
    """Check a reading command against files that are missing, empty, noise, cut, or of another kind."""
    words = command.split()
    missing = cli(*words, folder / "missing.core", *more)
    assert missing.status == 4 and "missing.core: no such file" in missing.error_line
    for name, content in (("empty", b""), ("noise", b"\x5a" * 5000), ("cut", b"\x7fELF\2\1\1"), ("neff", bytes(2048))):
        path = folder / f"{name}.core"
        path.write_bytes(content)
        ended = cli(*words, path, *more)
        assert ended.status == 3, ended
        assert f"{name}.core" in ended.error_line and ended.out == ""
        failed = cli(*words, path, *more, "--json")
        assert failed.status == 3 and failed.err == "" and failed.json["error"]["kind"] == "format"
        checked_json(failed, command)
