"""Control characters in every text of every format: nothing that is printed or drawn makes a terminal obey them."""

from __future__ import annotations

import io
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.device import Device
from emulator.dump import EventTail, write_core
from formats.core.records import EnvironmentNote
from formats.neff import open_neff
from formats.neff.packing import pack, unpack
from neurontools.cli import main
from neurontools.command.table import TABLE
from neurontools.debugger.commands.table import COMMANDS
from neurontools.debugger.opening import open_session
from tests.cli.captures import capture
from tests.cli.captures import neff as captured_neff
from tests.tui.driving import Driver, drive

TOKEN = "QqQqQqQqQqQqQq"
PLANTED = "\x1b]\x07\u202e\x9b\x7f\u2066\r\x08"  # as many bytes as the token, which protobufs count
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

SCRIPT = f"""
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def kernel{TOKEN}(x{TOKEN}):
    out{TOKEN} = nl.ndarray(x{TOKEN}.shape, dtype=x{TOKEN}.dtype, buffer=nl.shared_hbm, name="out{TOKEN}")
    tile{TOKEN} = nl.ndarray(x{TOKEN}.shape, dtype=x{TOKEN}.dtype, buffer=nl.sbuf, name="tile{TOKEN}")
    nisa.dma_copy(dst=tile{TOKEN}, src=x{TOKEN})  # {TOKEN}
    nl.device_print("print{TOKEN}", tile{TOKEN})
    nisa.tensor_tensor(dst=tile{TOKEN}, data1=tile{TOKEN}, data2=tile{TOKEN}, op=nl.add)
    nisa.dma_copy(dst=out{TOKEN}, src=tile{TOKEN})
    return out{TOKEN}

kernel{TOKEN}(np.ones((128, 64), np.float32))
"""


def run(*arguments: object) -> tuple[int, str]:
    """Run one command line in this process; return its status and all that it printed."""
    out = io.StringIO()
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(120)
    try:
        with redirect_stdout(out), redirect_stderr(out):
            status = main([str(argument) for argument in arguments])
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return int(status), out.getvalue()


def _too_long(number: int, frame: object) -> None:
    raise KeyboardInterrupt  # a command that streams ends then, and what it printed is looked at


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """Return a folder with a file of every kind, each with control characters wherever there is text."""
    assert len(TOKEN.encode()) == len(PLANTED.encode())
    folder = tmp_path_factory.mktemp("planted")
    script = folder / f"{TOKEN}.py"
    script.write_text(SCRIPT)
    status, said = run("run", script, "--save-neff", folder / "plain.neff")
    assert status == 0, said
    apart = folder / "apart"
    unpack(open_neff(folder / "plain.neff"), apart)
    changed = 0
    for path in apart.rglob("*"):
        if path.is_file() and ".neff" not in path.relative_to(apart).parts:
            data = path.read_bytes()
            new = json.dumps(PLANTED)[1:-1].encode() if data.lstrip()[:1] in (b"{", b"[") else PLANTED.encode()
            changed += data.count(TOKEN.encode())
            path.write_bytes(data.replace(TOKEN.encode(), new))
    assert changed > 10
    neff = folder / f"x{PLANTED}.neff"
    pack(apart, neff)
    (folder / f"{PLANTED}.py").write_text(SCRIPT.replace(f"# {TOKEN}", f"# {PLANTED}".replace("\r", "")))
    status, said = run("run", neff, "--record", folder / f"r{PLANTED}.nrec")
    assert status == 0, said
    opened = open_neff(neff)
    device = Device(opened.target, cores=len(opened.subgraphs))
    device.load(opened)
    device.set_inputs({tensor.name: np.ones(tensor.shape, np.float32) for tensor in opened.inputs})
    tail = EventTail()
    device.observers.append(tail)
    for _ in range(6):
        device.step()
    text = f"e{PLANTED}"
    (folder / "cores").mkdir()
    for level in ("light", "full"):
        write_core(device, folder / "cores" / f"{level}{PLANTED}.core", level=level, journal=tail, log_tail=[text],
                   environment=EnvironmentNote(text, text, text, {text: text}, {f"NEURON_{text}": text}),
                   reason=text, folders=[folder])  # fmt: skip
    (folder / f"p{PLANTED}.s").write_text(
        (root / "examples" / "deadlock.s").read_text() + f"# {PLANTED}\n".replace("\r", "")
    )
    (folder / f"bad{PLANTED}.s").write_text(f".target trn2\n.engine pe\n    {PLANTED}\n")
    (folder / f"{PLANTED}.log").write_text(
        f"2024-Jan-01 10:00:00.0 1:2 ERROR  TDRV:{PLANTED}  {PLANTED} NRT_EXEC_HW_ERR_HBM_UE 1200 status=1200\n"
    )
    shutil.copy(capture(root), folder / f"c{PLANTED}.ntff")
    shutil.copy(captured_neff(root, folder), folder / f"c{PLANTED}.neff")
    return folder


ONCE: dict[str, tuple[object, ...]] = {
    **dict.fromkeys(("monitor run", "top", "mem watch", "sysfs mount"), ("--once",)),
    **dict.fromkeys(("sysfs watch", "dbgstream tail"), ("--for", 0.1)),
}
"""Commands that stream until they are interrupted, and what makes them look once."""


def lines(folder: Path) -> dict[str, list[list[object]]]:
    """Return command lines for every command of the table."""
    neff, script = folder / f"x{PLANTED}.neff", folder / f"{PLANTED}.py"
    core, full = folder / "cores" / f"light{PLANTED}.core", folder / "cores" / f"full{PLANTED}.core"
    text, bad, recording = folder / f"p{PLANTED}.s", folder / f"bad{PLANTED}.s", folder / f"r{PLANTED}.nrec"
    taken, of_taken, log = folder / f"c{PLANTED}.ntff", folder / f"c{PLANTED}.neff", folder / f"{PLANTED}.log"
    missing = folder / f"{PLANTED}.missing"
    found: dict[str, list[list[object]]] = {name: [[neff]] for name, row in TABLE.items() if row.module}
    found |= {name: [[core], [full]] for name in found if name.startswith("core ")}
    found |= {name: [[taken], [taken, "--neff", of_taken]] for name in found if name.startswith("ntff ")}
    found |= {
        "run": [[script], [neff], [recording], [text], [neff, "--against", missing]],
        "debug": [[script, "-c", "info tensors"], [recording, "-c", "info engines"]],
        "check": [[script], [text], [neff, "--format", "junit"], [neff, "--format", "sarif"]],
        "diff-run": [[script, neff], [neff, text]],
        "profile run": [[script, "--no-advice"], [neff]],
        "profile validate": [[PLANTED]],
        "neff where": [[neff, f"{PLANTED}.py:10"], [neff, "1"]],
        "neff diff": [[neff, neff], [neff, of_taken]],
        "neff survey": [[folder]],
        "neff dma": [[neff], [neff, "--queue", PLANTED]],
        "neff unpack": [[neff, folder / f"again{PLANTED}"], [neff, folder]],
        "neff pack": [[folder / "apart", folder / f"again{PLANTED}.neff"], [folder, folder / "y.neff"]],
        "disasm": [[neff, "--source", "--source-path", folder], [neff, "--asm"], [log]],
        "asm": [[bad, "-o", folder / "z.neff"], [text, "-o", folder / f"z{PLANTED}.neff"]],
        "core disasm": [[full], [core, "--source"]],
        "core verify": [[full, "--neff", neff], [core]],
        "core diff": [[full, core]],
        "core triage": [[folder / "cores"]],
        "core extract": [[full, folder / f"parts{PLANTED}"]],
        "core memory": [[full], [full, PLANTED]],
        "err explain": [[PLANTED], [log]],
        "ntff export": [[taken, "-o", folder / f"t{PLANTED}.json"]],
        "reference": [[PLANTED]],
        "schema": [["run"], [PLANTED]],
        # What would stream until it is interrupted looks once.
        "monitor run": [["--once"], ["--once", "--config", log]],
        "top": [["--once"], ["--once", log]],
        "mem watch": [["--once"], ["--once", folder]],
        "sysfs mount": [[folder / "tree", "--once"]],
        "sysfs watch": [[folder, "--for", 0.1]],
        "dbgstream tail": [[log, "--for", 0.1]],
        "tune": [[script, "--trials", 1]],
        "batch": [[log]],
    }
    # Some commands make the folder that is missing, and these would then follow what happens in it for ever.
    return {name: [*rows, [missing, *ONCE.get(name, ())]] for name, rows in found.items()}


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row.module])
def test_a_command_prints_none(planted: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(planted)
    for arguments in lines(planted)[name]:
        for more in ((), ("--json",)):
            status, said = run(*name.split(), *arguments, *more)
            assert status != 70, said
            assert not CONTROL.findall(said), (arguments, more, said)


def debugger_lines() -> Iterator[str]:
    # Topics in the place of the command that chooses one.
    for command in (each for one in COMMANDS.values() for each in one.topics or (one,)):
        if command.name != "quit":
            yield command.name
            yield f"{command.name} out{PLANTED}"
            yield f"{command.name} {PLANTED}.py:10"
    yield from ("info tensors", "print 0", "list", "disassemble", "break 9", "info breakpoints", "step", "continue")


@pytest.mark.parametrize("file", [f"x{PLANTED}.neff", f"{PLANTED}.py", f"cores/full{PLANTED}.core", f"r{PLANTED}.nrec"])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_debugger_prints_none(
    planted: Path, monkeypatch: pytest.MonkeyPatch, file: str, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(planted)
    from neurontools.debugger.repl import Repl

    session = open_session(planted / file)
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        repl = Repl(session, as_json=bool(options))
        for line in debugger_lines():
            repl.execute(line)
    assert not CONTROL.findall(out.getvalue()), out.getvalue()
    assert "␛" in out.getvalue() or options or file.endswith(".core")  # a dump holds no names of tensors


@pytest.mark.parametrize("file", [f"x{PLANTED}.neff", f"cores/full{PLANTED}.core"])
def test_no_pane_draws_them(planted: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(planted)
    session = open_session(planted / file)
    drawn: list[str] = []

    async def script(driver: Driver) -> None:
        for line in ("info tensors", "step", f"print {PLANTED}", "list", "next"):
            driver.app.worker.carry_out(line)
            await driver.settle()
        driver.app.notify(f"a {PLANTED} [bold]")
        driver.app.log_pane.note(((f"a {PLANTED}\t\n", ""),))
        for tab in range(1, 7):
            await driver.press(str(tab))
            drawn.append(rendered(driver.app))
        await driver.press("e")

    drive(session, script, size=(200, 50), name=file)
    drive(open_session(planted / file), script, size=(80, 24), name=file)
    assert "␛" in "".join(drawn)
    for text in drawn:
        assert not CONTROL.findall(text)


def rendered(app: Any) -> str:
    """Return the text of every segment on the screen, before a terminal or rich takes anything away."""
    return "\n".join("".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips())


def test_neuron_dump_prints_none(planted: Path, root: Path) -> None:
    for words in (["recover", f"{PLANTED}"], [f"--{PLANTED}"], ["recover", str(planted)]):
        done = subprocess.run([sys.executable, "-c", "from neurontools.dump.program import main; main()", *words],
                              cwd=root, capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
        assert not CONTROL.findall(done.stdout + done.stderr), done
