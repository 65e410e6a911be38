"""Programs that never end: every command that runs them ends, says why, and where every engine stands."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import neurontools
from emulator.diagnosis.causes import Reason
from neurontools.profile import profiling
from neurontools.program.configuration import RunConfiguration
from neurontools.program.recording import open_recording
from tests.cli.conftest import Cli

HEAD = ".target trn2\n.dialect extended\n"
SELF = HEAD + ".engine sp\nhere:\n    COMPARE_BRANCH cmp_op=ALWAYS label_id=%here\n"
COUNTING = (
    HEAD + ".engine sp\nhere:\n    NOP S[5]++@complete cycle=0\n    COMPARE_BRANCH cmp_op=ALWAYS label_id=%here\n"
)
ENDING = HEAD + ".engine sp\n    NOP S[5]++@complete cycle=0\n"
SCRIPT = """
import sys
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def forever(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    flag = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.memset(dst=flag, value=1)
    left = nisa.register_alloc()
    nisa.register_load(left, flag)
    while left:
        nisa.tensor_scalar(tile, tile, nl.multiply, 1.0)
        nisa.register_load(left, flag)
    nisa.dma_copy(dst=out, src=tile)
    return out

try:
    forever(np.ones((128, 64), np.float32))
except Exception as error:
    print("caught", type(error).__name__)
print("after")
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a folder with programs."""
    for name, text in (("self.s", SELF), ("counting.s", COUNTING), ("ending.s", ENDING), ("forever.py", SCRIPT)):
        (tmp_path / name).write_text(text)
    return tmp_path


COMMANDS = ("run", "check", "profile run")
BUDGETS = {
    ("--max-instructions", "500"): Reason.INSTRUCTION_LIMIT,
    ("--limit", "20us"): Reason.TIME_LIMIT,
    ("--max-time", "200ms"): Reason.HOST_TIME_LIMIT,
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("option", "reason"), BUDGETS.items())
def test_every_budget_ends_every_command(cli: Cli, programs: Path, command: str, option: tuple[str, str],
                                         reason: Reason) -> None:  # fmt: skip
    ended = cli(*command.split(), programs / "counting.s", *option)
    assert ended.status == 5 and f"{reason} at " in ended.out + ended.err, ended
    assert "running: nc0 SP pc " in ended.out + ended.err
    document = cli(*command.split(), programs / "counting.s", *option, "--json").json
    assert document["exit"] == 5
    if command != "profile run":
        result = document["result"] if command == "run" else document["result"]["runs"][0]
        assert result["hang"]["reason"] == reason and result["hang"]["running"][0].startswith("nc0 SP pc ")
    else:
        assert f"the run was stopped: {reason}" in document["warnings"][-1]
    assert cli(*command.split(), programs / "ending.s", *option).status == 0


@pytest.mark.parametrize("command", [*COMMANDS, "debug"])
def test_a_livelock_is_named_with_its_words_and_lines(cli: Cli, programs: Path, command: str) -> None:
    more = ("-c", "continue") if command == "debug" else ()
    ended = cli(*command.split(), programs / "self.s", *more)
    text = ended.out + ended.err
    status = 1 if command == "check" else 5  # to a check it is a finding
    assert ended.status == status and "livelock at " in text, ended
    assert "nc0 SP loops for ever through 1 word" in text and "self.s:5): COMPARE_BRANCH" in text
    assert ("SP goes round the loop from pc 0 for ever" in text) == (command == "check")
    if command == "run":
        (word,) = cli("run", programs / "self.s", "--json").json["result"]["hang"]["loops"]
        assert (word["engine"], word["pc"], word["source"]["line"]) == ("SP", 0, 5)


def test_the_other_commands_end_too(cli: Cli, programs: Path) -> None:
    ended = cli("debug", programs / "counting.s", "--max-instructions", "500", "-c", "continue")
    assert ended.status == 5 and "instruction limit at " in ended.out
    for option in BUDGETS:
        assert cli("diff-run", programs / "counting.s", *option).status in (0, 1)


def test_wrong_budgets_are_refused(cli: Cli, programs: Path) -> None:
    for option in (("--max-time", "soon"), ("--max-time", "5"), ("--limit", "5"), ("--max-instructions", "-1")):
        assert cli("run", programs / "ending.s", *option).status == 2, option
    for option in (("--max-time", "0"), ("--limit", "0"), ("--max-instructions", "0")):
        assert cli("run", programs / "ending.s", *option).status == 0, option


def test_who_has_a_budget_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    plain = RunConfiguration()
    assert plain.bounded() is plain
    settings = plain.bounded(always=True).settings()
    assert (settings.max_steps, settings.max_seconds, settings.limit_ps) == (100_000_000, 600.0, None)
    monkeypatch.setenv("CI", "true")
    assert plain.bounded() == plain.bounded(always=True)
    none = RunConfiguration(max_steps=0, max_seconds=0).bounded().settings()
    assert none.max_steps is None and none.max_seconds is None
    command = RunConfiguration(max_steps=7, limit_ps=5, max_seconds=1.5).command_line("run", Path("x.s"))
    assert command == "neurontools run x.s --max-instructions 7 --limit 5ps --max-time 1.5s"


def test_check_and_profile_have_one(cli: Cli, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neurontools.program.configuration._USUAL_STEPS", 400)
    bounded = RunConfiguration.bounded
    monkeypatch.setattr(
        RunConfiguration,
        "bounded",
        lambda self, *, always=False, steps=400: bounded(self, always=always, steps=min(steps, 400)),
    )
    ended = cli("check", programs / "counting.s")
    assert ended.status == 5 and "instruction limit at " in ended.out
    monkeypatch.setattr(profiling, "RECORDED", 300)
    ended = cli("profile", "run", programs / "counting.s")
    assert ended.status == 5 and "a profile records 300 completions; --max-instructions N takes more" in ended.err


def test_the_python_interface(programs: Path) -> None:
    from neurontools.assembly.assemble_neff import to_neff
    from neurontools.assembly.assembler import parse_program

    neff = to_neff(parse_program(COUNTING, "counting.s"))
    for options, reason in (({"max_instructions": 100}, "instruction limit"), ({"max_time": 0.1}, "host time limit")):
        result = neurontools.run(neff, **options)
        assert result.hang is not None and result.hang.reason == reason


# The command in a process that says when its device runs.
TELLING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore Ctrl-C for what runs in their background
from emulator.device import Device
from neurontools.cli import main

run = Device.run

def telling(self, until=None):
    Device.run = run
    print("running", file=sys.stderr, flush=True)
    return run(self, until)

Device.run = telling
sys.exit(main(sys.argv[1:]))
"""


def _interrupted(root: Path, *arguments: object) -> tuple[int, str, str]:
    """Run a command, press Ctrl-C while its device runs, and return status, output and errors."""
    process = subprocess.Popen([sys.executable, "-c", TELLING, *map(str, arguments)], cwd=root, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    try:
        assert process.stderr is not None
        while process.stderr.readline() not in ("running\n", ""):
            pass
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupt_tells_where_every_engine_stands(root: Path, programs: Path, command: str) -> None:
    status, out, err = _interrupted(root, *command.split(), programs / "counting.s")
    assert status == 130 and "interrupted at " in out + err and "running: nc0 SP pc " in out + err, (out, err)
    assert "Traceback" not in err


def test_an_interrupt_is_a_value_in_json_and_its_recording_ends_there(root: Path, cli: Cli, programs: Path) -> None:
    recording = programs / "cut.nrec"
    status, out, _ = _interrupted(root, "run", programs / "counting.s", "--json", "--record", recording)
    document = json.loads(out)
    assert status == document["exit"] == 130 and document["result"]["hang"]["reason"] == "interrupted"
    assert open_recording(recording).options["max_steps"] == open_recording(recording).end.completions > 0


def test_a_recording_that_the_clock_cut_short_ends_there(cli: Cli, programs: Path) -> None:
    recording = programs / "cut.nrec"
    assert cli("run", programs / "counting.s", "--max-time", "100ms", "--record", recording).status == 5
    ended = cli("debug", recording, "-c", "when")
    assert ended.status == 5 and "does not end as it was recorded" not in ended.out + ended.err
    assert f"{open_recording(recording).end.completions + 1:,} events" in ended.out


def test_an_interrupt_inside_a_launch_ends_the_script(root: Path, programs: Path) -> None:
    status, out, err = _interrupted(root, "run", programs / "forever.py")
    assert status == 130 and "caught" not in out and "after" not in out, (out, err)
    # At the moment of the interrupt engines may run, or all wait for one another at the edge of the loop.
    assert "execution interrupted" in err and "Traceback" not in err
    assert "running: nc0 " in err or "engines wait" in err
