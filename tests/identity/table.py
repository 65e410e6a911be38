"""What every program of the corpus comes to, as hashes: `python -m tests.identity.table [--write]` compares or renews.

A change that is to make programs faster must leave all of it as it is.  Where the time model changes on purpose, the
times and what hangs on them are written again, and "values" must stay.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from emulator.checks import make_checks
from emulator.device import Device
from emulator.dump import write_core
from emulator.events import Event
from emulator.timeline.recorder import Recorder
from emulator.timeline.track import Column
from formats.core.records import EnvironmentNote
from formats.neff import Neff, open_neff

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("table.json")
FETCHED = Path(__file__).with_name("fetched.json")
LARGEST = 60_000  # bytes of a public NEFF: larger ones take minutes and have the same kinds of words
SHAKEN = 7
Opener = Callable[[], tuple[Neff, dict[str, Any]]]


class Witness:
    """Hashes every event of a run: what completed when, what it changed and touched."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def on_event(self, event: Event) -> None:
        place = event.number, event.time_ps, event.issued_ps, event.core, event.engine, event.pc, event.kind
        changed = [tuple(change) for change in event.semaphores]
        self.digest.update(repr((place, changed, event.text, event.reads, event.writes)).encode())
        if event.kind == "dma":
            transfer = event.instruction
            spans = transfer.spans, transfer.generated_ps, transfer.memory_ps, transfer.shares
            self.digest.update(repr((spans, transfer.started_ps, transfer.planned_ps)).encode())


def started(neff: Neff, inputs: dict[str, Any], **options: Any) -> Device:
    """Return a device with a program and its inputs."""
    device = Device(neff.target, len(neff.subgraphs), **options)
    device.load(neff)
    device.set_inputs(inputs)
    return device


def short(text: str | bytes) -> str:
    """Return the beginning of a hash."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:16]


def values_of(device: Device) -> str:
    """Return a hash of everything that a run computed, and of how it ended."""
    digest = hashlib.sha256()
    for core in device.cores:
        for part in core.memory.snapshot():
            digest.update(np.ascontiguousarray(part.numbers))
            digest.update(np.ascontiguousarray(part.data))
        engines = [(name, one.completed, one.pc, one.registers) for name, one in core.engines.items()]
        digest.update(repr((core.semaphores.values, core.events.values, engines)).encode())
        for engine in core.engines.values():
            digest.update(engine.accumulators)
        core.generators.digest(digest)
    device.hbm.digest(digest)
    end = device.outcome, device.fault and device.fault.kind, device.hang and device.hang.reason
    return short(repr((digest.hexdigest(), end, len(device.warnings))))


def recording(recorder: Recorder) -> str:
    """Return a hash of all that a recorder keeps."""
    rows = [
        (owner, {name: list(column) for name in names_of(track) if hasattr(column := getattr(track, name), "tolist")})
        for owner, track in recorder.tracks.items()
    ]
    changes = [(key, list(one.number), list(one.time), list(one.value)) for key, one in recorder.changes.items()]
    holds = [(key, list(one)) for key, one in recorder.holds.items()]
    return short(repr((rows, changes, holds, recorder.ports, recorder.late)))


def names_of(track: object) -> list[str]:
    """Return the columns of a track."""
    return sorted({name for cls in type(track).__mro__ for name, found in vars(cls).items() if type(found) is Column})


def dump(device: Device) -> str:
    """Return a hash of a light core dump of a device as it stands."""
    with tempfile.TemporaryDirectory() as folder, patch("emulator.dump.write.version", return_value="0.1.0"):
        path = Path(folder, "core")
        write_core(device, path, environment=EnvironmentNote("host-0", "Linux", "3.11", {}, {}, ()),
                   created="2026-11-21T08:00:00+00:00", pid=4711, neff_path="a.neff")  # fmt: skip
        return short(path.read_bytes())


def sources(device: Device) -> list[Any]:
    """Return where the words of the first core that have a source come from."""
    core = device.cores[0]
    found = [core.source_of(name, pc) for name, engine in core.engines.items() for pc in range(engine.count)]
    return [one for one in found if one is not None]


def checked(neff: Neff, inputs: dict[str, Any], options: dict[str, Any]) -> str:
    """Return a hash of what all checks find."""
    device = started(neff, inputs, **options)
    checks = make_checks("all")
    device.observers += [check for check in checks if hasattr(check, "on_event")]
    for check in checks:
        if hasattr(check, "attach"):
            check.attach(device)
    device.run()
    for check in checks:
        if hasattr(check, "finish"):
            check.finish()
    found = [repr(finding) for check in checks for finding in getattr(check, "findings", ())]
    device.release()
    return short("\n".join(found).replace(str(ROOT), ""))


def fingerprint(opener: Opener, brief: bool = False) -> dict[str, Any]:
    """Return what a program comes to: hashes, and its time; a brief one leaves out what other programs tell."""
    neff, inputs = opener()
    options: dict[str, Any] = {"max_steps": 40_000}
    device = started(neff, inputs, **options)
    witness, recorder = Witness(), Recorder(device)
    device.observers += [witness, recorder]
    device.run()
    row: dict[str, Any] = {"values": values_of(device), "time_ps": device.now_ps}
    row["events"] = witness.digest.hexdigest()[:16]
    row["recording"] = recording(recorder)
    device.release()
    row["findings"] = checked(neff, inputs, options)
    if brief:
        return row
    device = started(neff, inputs, **options)
    device.run(until=row["time_ps"] // 2)
    if not any((location.file or "").startswith("/") for location in sources(device)):
        row["dump"] = dump(device)  # dumps hold the paths of sources, which are other ones elsewhere
    device.run()
    row["unwatched"] = f"{device.now_ps} {values_of(device)}"
    device.release()
    for name, changed in (("untimed", {"timing": False}), ("shaken", {"seed": SHAKEN})):
        device = started(neff, inputs, **options, **changed)
        device.run()
        row[name] = f"{device.now_ps} {values_of(device)}"
        device.release()
    return row


def programs() -> Iterator[tuple[str, Opener]]:
    """Yield name and opener of the members that the repository holds."""
    from neurontools.assembly.assemble_neff import to_neff
    from neurontools.assembly.assembler import parse_program
    from neurontools.debugger.opening import open_session

    def assembled(path: Path) -> Opener:
        return lambda: (open_neff(to_neff(parse_program(path.read_text(), path.name))), {})

    def script(path: Path) -> Opener:
        def give() -> tuple[Neff, dict[str, Any]]:
            opened = open_session(path)
            return opened.neff, dict(opened.inputs or {})

        return give

    for path in sorted((ROOT / "fixtures" / "neff").glob("*.neff")):
        yield f"fixture {path.stem}", file(path)
    for folder in (ROOT / "fixtures" / "core", ROOT / "examples", ROOT / "tests" / "golden" / "insns"):
        for path in sorted(folder.glob("*.s")):
            yield f"{folder.name} {path.stem}", assembled(path)
    for path in sorted((ROOT / "examples").glob("*.py")):
        if path.name != "compare.py":
            yield f"examples {path.stem}", script(path)
    random = np.random.default_rng(0)
    small_tiles, loading_matmul = own_kernels()
    yield "small_tiles", kernel(small_tiles, random.standard_normal((128 * 24, 64), np.float32))
    yield "loading_matmul", kernel(loading_matmul, *(random.standard_normal((512, 512), np.float32) for _ in range(2)))


def own_kernels() -> tuple[Any, Any]:
    """Return the kernels of the benchmark, whose folder is no package."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("corpus_kernels", ROOT / "benchmarks" / "corpus_kernels.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.small_tiles, module.loading_matmul


def file(path: Path) -> Opener:
    """Return the opener of a NEFF; its inputs count up."""

    def give() -> tuple[Neff, dict[str, Any]]:
        neff = open_neff(path)
        # Bytes that are positive numbers and no NaN, whatever type they are read as.
        return neff, {
            one.name: (np.arange(one.nbytes, dtype=np.uint32) % 59 + 5).astype(np.uint8) for one in neff.inputs
        }

    return give


def kernel(function: Any, *arguments: Any) -> Opener:
    """Return the opener of a kernel."""

    def give() -> tuple[Neff, dict[str, Any]]:
        import neurontools

        neff = neurontools.build(function, *arguments, target="trn2")
        given = [one for one in arguments if isinstance(one, np.ndarray)]
        return neff, dict(zip((tensor.name for tensor in neff.inputs), given, strict=False))

    return give


def fetched(corpus: Path) -> Iterator[tuple[str, Opener]]:
    """Yield name and opener of the members that are fetched: kernels of tutorials and public NEFFs."""
    from tests.nki.test_tutorials import KERNELS, load

    folder = corpus / "aws-neuron-sdk" / "nki" / "examples"
    for name, (source, function, given, _) in KERNELS.items():
        if (folder / source).exists():
            random = np.random.default_rng(1)
            arrays = [random.random(one, np.float32) if isinstance(one, tuple) else one for one in given]
            yield f"tutorial {name}", kernel(load(folder / source, function), *arrays)
    for path in sorted(corpus.rglob("*.neff")):
        if path.stat().st_size <= LARGEST:
            yield str(path.relative_to(corpus)), file(path)


def is_brief(name: str) -> bool:
    """Return whether a member is one of the many programs of a few words."""
    return name.startswith("insns ")


def arithmetic() -> str:
    """Return a hash of what this machine's NumPy computes: its last bits depend on processor and version."""
    random = np.random.default_rng(0)
    given = random.standard_normal((96, 96), np.float32)
    made = [f(given) for f in (np.exp, np.tanh, np.sin, lambda x: np.log(np.abs(x)), lambda x: x @ x, np.sum)]
    return short(b"".join(np.asarray(one).tobytes() for one in made))


def main() -> int:
    """Compare or renew the tables; return 1 where something differs."""
    import neurontools

    neurontools.nki.install()
    sides = [(TABLE, programs())]
    if "NEURONTOOLS_CORPUS" in os.environ:
        sides.append((FETCHED, fetched(Path(os.environ["NEURONTOOLS_CORPUS"]))))
    differ = 0
    for table, members in sides:
        known = json.loads(table.read_text()) if table.exists() else {}
        rows = {"": {"arithmetic": arithmetic()}}
        for name, opener in members:
            rows[name] = row = fingerprint(opener, is_brief(name))
            for column, value in row.items():
                before = known.get(name, {}).get(column)
                if before != value:
                    differ += 1
                    print(f"{name}: {column} {before} -> {value}")
        if "--write" in sys.argv[1:]:
            lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
            table.write_text("{\n" + lines + "\n}\n")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
