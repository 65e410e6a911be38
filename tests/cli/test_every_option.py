"""Every command that runs programs × every option × every kind of file: honoured or refused, never lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import typer

from emulator.checks.again import Again
from emulator.checks.racecheck import Racecheck
from emulator.device import Device
from neurontools.command.table import TABLE
from neurontools.program import launches, opening
from neurontools.program.configuration import OPTIONS, RunConfiguration
from neurontools.program.kinds import REFUSED, Kind
from tests.cli.conftest import Cli, Ended

SCRIPT = """
import sys
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out

double(np.ones((128, 64), np.float32))
double(np.full((128, 64), 7.0 + len(sys.argv), np.float32))
"""

KINDS = ("script", "assembly", "neff", "recording")
# Every command that runs programs, and the options with which it is asked about each of its others.
COMMANDS: dict[str, tuple[str, ...]] = {
    "run": (),
    "run --against": ("--against", "golden.npz", "--atol", "1e9"),
    "check": (),
    "debug": ("-c", "continue"),
    "diff-run": (),
    "profile run": ("--no-advice",),
}

# Another way to run, tested in test_run_ranks, test_debug_ranks and test_profile_ranks.
RANKS = ("ranks", "instance", "nodes")
OF_RUN = ("outputs", "save_neff", "against", "quiet", "error_exitcode", "json", "rtol", "atol")
# Options that say what is made of a run or how it is shown, tested with their commands.
OF_THE_REPORT = {
    "run": {
        "outputs",
        "save_neff",
        "against",
        "quiet",
        "error_exitcode",
        "json",
        "rtol",
        "atol",
        *RANKS,
        "time_only",
        "cluster",
    },
    "run --against": {
        "outputs",
        "save_neff",
        "against",
        "quiet",
        "error_exitcode",
        "json",
        "rtol",
        "atol",
        *RANKS,
        "time_only",
        "cluster",
    },
    "check": {"fail_on", "form", "suppressions", "notes", "quiet", "error_exitcode", "json", *RANKS},
    "debug": {
        *RANKS,
        "commands",
        "execute",
        "cli",
        "serve",
        "host",
        "port",
        "read_only",
        "allow_writes",
        "source_path",
        "journal",
        "json",
    },
    "diff-run": {"rtol", "atol", "quiet", "error_exitcode", "json"},
    "profile run": {"form", "output", "against", "what_if", "advice", "top", "quiet", "json", "rank", *RANKS},
}
# A value of each option that decides a run, none of them the default.
VALUES: dict[str, tuple[str, ...]] = {
    "arguments": ("--", "more"),
    "launch": ("--launch", "2"),
    "target": ("--target", "trn2"),
    "lnc": ("--lnc", "2"),
    "inputs": ("--inputs", "random:3"),
    "inputs_from": ("--inputs-from", "dumped"),
    "seed": ("--seed", "5"),
    "timing": ("--no-timing",),
    "act": ("--act", "table"),
    "hang_timeout_ps": ("--hang-timeout", "700ms"),
    "max_steps": ("--max-instructions", "7000000"),
    "limit_ps": ("--limit", "600ms"),
    "max_seconds": ("--max-time", "9m"),
    "nki": ("--nki", "installed"),
    "precise_fp": ("--precise-fp", "0"),
    "lenient": ("--lenient",),
    "schedule": ("--schedule",),
    "checks": ("--tool", "racecheck"),
    "dump_dir": ("--dump-dir", "dumps"),
    "record": ("--record", "again.nrec"),
}
WANTED = {"target": "trn2", "lnc": 2, "inputs": "random:3", "inputs_from": Path("dumped"), "seed": 5, "timing": False,
          "act": "table", "hang_timeout_ps": 700_000_000_000, "max_steps": 7_000_000,
          "limit_ps": 600_000_000_000, "max_seconds": 540.0, "nki": "installed", "precise_fp": "0", "launch": 2,
          "arguments": ("more",), "checks": ("racecheck",), "dump_dir": Path("dumps"),
          "record": Path("again.nrec"), "lenient": True, "schedule": True}  # fmt: skip


class Seen(NamedTuple):
    """What reached the emulator in one command: configurations, devices, first inputs, devices checked for races."""

    configurations: list[RunConfiguration]
    devices: list[Device]
    inputs: list[float]
    raced: list[Device]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Watch what every command hands to the opener and to the emulator."""
    found = Seen([], [], [], [])
    make, fill, take, scripts = Device.__init__, Device.set_inputs, opening.take_launch, launches.run_launches
    attach, look = Racecheck.attach, Again.attach

    def init(self: Device, *args: Any, **options: Any) -> None:
        make(self, *args, **options)
        found.devices.append(self)

    def set_inputs(self: Device, arrays: Any, borrowed: bool = False) -> None:
        fill(self, arrays, borrowed)
        found.inputs.append(float(np.asarray(next(iter(arrays.values()))).reshape(-1)[0]))

    def raced(self: Racecheck, device: Device) -> None:
        attach(self, device)
        found.raced.append(device)

    def asked(self: Again, device: Device) -> None:
        look(self, device)
        if "racecheck" in self.tools:  # which is not made where all is in order
            found.raced.append(device)

    def taken(file: Path, configuration: RunConfiguration, **options: Any) -> Any:
        found.configurations.append(configuration)
        return take(file, configuration, **options)

    def run_launches(file: Path, launched: launches.Launches, **options: Any) -> int:
        found.configurations.append(launched.configuration)
        return scripts(file, launched, **options)

    monkeypatch.setattr(Device, "__init__", init)
    monkeypatch.setattr(Device, "set_inputs", set_inputs)
    monkeypatch.setattr(Racecheck, "attach", raced)
    monkeypatch.setattr(Again, "attach", asked)
    monkeypatch.setattr(opening, "take_launch", taken)
    for module in ("running.files", "check.checking", "program.launches"):
        monkeypatch.setattr(f"neurontools.{module}.run_launches", run_launches)
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, program_text: str, program_file: Path) -> Path:
    """Return a folder with a file of every kind."""
    import neurontools.nki
    from neurontools.cli import main

    neurontools.nki.install()  # so that `--nki installed` finds one, whatever ran before
    place = tmp_path_factory.mktemp("kinds")
    (place / "script.py").write_text(SCRIPT)
    (place / "assembly.s").write_text(program_text.replace(".target trn2\n", ""))
    (place / "neff.neff").write_bytes(program_file.read_bytes())
    np.savez(place / "in.npz", x=np.ones((128, 64), np.float32))
    np.savez(place / "golden.npz", y=np.zeros((128, 64), np.float32), out=np.zeros((128, 64), np.float32))
    (place / "dumped").mkdir()
    (place / "dumped/input0").write_bytes(np.full((128, 64), 4, np.float32).tobytes())
    (place / "dumped/model_name.txt").write_text("double")
    run = ["run", place / "neff.neff", "--inputs", place / "in.npz", "--record", place / "recording.nrec", "-q"]
    assert main(list(map(str, run))) == 0
    return place


@pytest.fixture
def folder(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder with a file of every kind the current one."""
    monkeypatch.chdir(made)
    for path in made.glob("again*"):
        path.unlink()
    return made


FILES = {"script": "script.py", "assembly": "assembly.s", "neff": "neff.neff", "recording": "recording.nrec"}


def parameters(command: str) -> list[str]:
    """Return the parameters of a command that decide its run, without the suffix of a side."""
    module = import_module(TABLE[command.removesuffix(" --against")].module)
    parsed = typer.main.get_command(module.app)
    names = {(each.name or "").removesuffix("_a").removesuffix("_b") for each in parsed.params}
    return sorted(names - OF_THE_REPORT[command] - {"context", "file", "one", "other", "help"})


def cases() -> Iterator[tuple[str, str, str]]:
    for command in COMMANDS:
        for name in parameters(command):
            for kind in KINDS:
                yield command, name, kind


def test_every_option_that_decides_a_run_is_asked_about() -> None:
    assert set(VALUES) == set(WANTED) == set(OPTIONS) == {one.name for one in fields(RunConfiguration)} - {"given"}
    for command in COMMANDS:
        assert set(parameters(command)) <= set(VALUES), command
    for kind in Kind:
        assert set(REFUSED[kind]) <= {*OPTIONS, "journal"}


@pytest.mark.parametrize(("command", "name", "kind"), [*cases()])
def test_honoured_or_refused(cli: Cli, seen: Seen, folder: Path, command: str, name: str, kind: str) -> None:
    words = [*command.removesuffix(" --against").split(), FILES[kind], *COMMANDS[command]]
    option = list(VALUES[name])
    if command == "diff-run" and name not in ("inputs", "inputs_from", "max_steps", "limit_ps", "max_seconds"):
        option[0] += "-b"
    if command == "debug" and name == "checks":
        option[0] = "--check"
    seen.configurations.clear(), seen.devices.clear(), seen.inputs.clear()
    ended = cli(*words, *option)
    refused = kind in {one.value for one in Kind} and name in REFUSED[Kind(kind)]
    if command == "run --against" and name in ("dump_dir", "record"):
        refused = True
    if name == "lnc" and kind in ("assembly", "neff"):
        refused = True  # built for one core
    if refused:
        hint = OPTIONS[name] if name == "arguments" else option[0]
        assert ended.status == 2 and seen.devices == [], ended
        assert [hint in line for line in ended.err.splitlines() if line.startswith("neurontools: ")] == [True], ended
        return
    assert ended.status in (0, 1), ended
    PROOFS[name](seen, ended, kind)


def reaches_configuration(name: str) -> Callable[[Seen, Ended, str], None]:
    def proof(seen: Seen, ended: Ended, kind: str) -> None:
        assert any(getattr(each, name) == WANTED[name] for each in seen.configurations), name

    return proof


def reaches_device(name: str) -> Callable[[Seen, Ended, str], None]:
    def proof(seen: Seen, ended: Ended, kind: str) -> None:
        assert any(getattr(device, name) == WANTED[name] for device in seen.devices), name

    return proof


def _target(seen: Seen, ended: Ended, kind: str) -> None:
    assert any(device.target.name == "trn2" for device in seen.devices)


def _lnc(seen: Seen, ended: Ended, kind: str) -> None:
    assert any(len(device.cores) == 2 for device in seen.devices)


def _inputs(seen: Seen, ended: Ended, kind: str) -> None:
    first = float(np.random.default_rng(3).standard_normal((128, 64), np.float32)[0, 0])
    assert first in seen.inputs and "not given" not in ended.err


def _inputs_from(seen: Seen, ended: Ended, kind: str) -> None:
    assert 4.0 in seen.inputs


def _launch(seen: Seen, ended: Ended, kind: str) -> None:
    assert 8.0 in seen.inputs  # those of the second launch


def _checks(seen: Seen, ended: Ended, kind: str) -> None:
    assert seen.raced and set(seen.raced) <= set(seen.devices)


def _dump_dir(seen: Seen, ended: Ended, kind: str) -> None:
    from neurontools.dump.hook import DumpObserver

    found = [each for device in seen.devices for each in device.observers if isinstance(each, DumpObserver)]
    assert found and all(each.settings.local.startswith("dumps/") for each in found)


def _record(seen: Seen, ended: Ended, kind: str) -> None:
    assert Path("again.nrec").is_file() and Path("again-2.nrec").is_file() == (kind == "script")


PROOFS: dict[str, Callable[[Seen, Ended, str], None]] = {
    **{name: reaches_configuration(name) for name in ("arguments", "nki", "precise_fp", "lenient", "schedule")},
    **{name: reaches_device(name) for name in ("seed", "timing", "act", "hang_timeout_ps", "max_steps", "limit_ps",
                                               "max_seconds")},
    "target": _target, "lnc": _lnc, "inputs": _inputs, "inputs_from": _inputs_from, "launch": _launch,
    "checks": _checks, "dump_dir": _dump_dir, "record": _record,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(REFUSED[Kind.CORE]))
def test_of_a_core_dump_every_option_of_a_run_is_refused(cli: Cli, hang_core: Path, name: str) -> None:
    if name in ("precise_fp", "dump_dir", "record"):
        return  # `debug` has none of them
    option = {"checks": ("--check", "racecheck"), "journal": ("--journal", "5")}.get(name, VALUES.get(name, ()))
    ended = cli("debug", hang_core, "-c", "why", *option)
    assert ended.status == 2 and "a core dump is one moment of a run that was" in ended.error_line


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "debug"])
def test_a_core_dump_does_not_run(cli: Cli, hang_core: Path, folder: Path, command: str) -> None:
    ended = cli(*command.removesuffix(" --against").split(), hang_core, *COMMANDS[command])
    assert ended.status == 3 and "`neurontools debug FILE` opens it" in ended.error_line


def test_a_default_that_was_spelled_out_is_refused_too(cli: Cli, folder: Path) -> None:
    for option in (("--timing",), ("--act", "exact"), ("--launch", "1"), ("--nki", "auto")):
        for command in (("debug", "-c", "when"), ("profile", "run")):
            if command[0] == "profile" and option == ("--timing",):
                continue
            ended = cli(*command, "recording.nrec", *option)
            assert ended.status == 2 and option[0] in ended.error_line
    assert cli("run", "neff.neff", "--rtol", "0.001").status == 2


def test_one_rule_for_inputs(cli: Cli, folder: Path) -> None:
    note = "input x float32[128, 64] was not given; it is all zeros"
    for command in COMMANDS:
        words = [*command.removesuffix(" --against").split(), "neff.neff", *COMMANDS[command], "--json"]
        first = json.loads(cli(*words).out.splitlines()[0] if command == "debug" else cli(*words).out)
        assert note in first["warnings"], command
        asked = cli(*words, "--inputs", "zeros")
        assert note not in asked.out + asked.err, command
    assert cli("run", "neff.neff", "--inputs", "random", "--inputs-from", "dumped").status == 2
    one, two, other = (
        cli("run", "neff.neff", "--inputs", f"random{seed}", "--json").json["result"]["outputs"]
        for seed in (":0", "", ":1")
    )
    assert one == two != other
