"""`neurontools debug`: golden sessions, scripts of commands, pipes, JSON, the prompt, what is refused."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neurontools.debugger.commands.carry_out import split_commands, without_comment
from neurontools.debugger.commands.table import COMMANDS
from neurontools.debugger.repl import Repl
from neurontools.text.terminal import page
from tests.cli.check import refuses_bad_files, schema_of_command
from tests.cli.conftest import Cli, Ended
from tests.cli.schema import problems

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "debug"
X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
KERNEL = """
import sys
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def twice(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out, src=tile)
    return out

print("before", sys.argv[1:])
try:
    nki.simulate(twice)(np.arange(128 * 8, dtype=np.float32).reshape(128, 8))
except Exception:
    print("swallowed")
print("after")
"""


@pytest.fixture
def double(program_text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the doubling program's source in the current folder, its input beside it."""
    monkeypatch.chdir(tmp_path)
    Path("double.s").write_text(program_text)
    np.savez("in.npz", x=X)
    return Path("double.s")


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """Return a script with a kernel."""
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    return path


def documents(ended: Ended) -> list[Any]:
    """Return the documents of a --json session, each checked against the schema."""
    schema = schema_of_command("debug")
    found = [json.loads(line) for line in ended.out.splitlines()]
    for document in found:
        assert problems(document, schema) == []
    return found


def golden(name: str, ended: Ended) -> None:
    """Compare a session with tests/golden/debug; NEURONTOOLS_UPDATE_GOLDEN=1 writes it anew."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("NEURONTOOLS_UPDATE_GOLDEN"):
        path.write_text(ended.out)
    assert ended.out == path.read_text()


@pytest.mark.parametrize("name", ["stepping", "breakpoints", "time_travel", "watchpoints", "conditions"])
def test_golden_sessions(cli: Cli, double: Path, name: str) -> None:
    ended = cli("debug", double, "--inputs", "in.npz", "--no-timing", "-x", GOLDEN / f"{name}.cmd")
    assert (ended.status, ended.err) == (0, "")
    golden(name, ended)


@pytest.mark.parametrize("name", ["deadlock", "out_of_bounds"])
def test_golden_sessions_that_end_badly(cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(root)
    ended = cli("debug", f"examples/{name}.s", "--no-timing", "-x", GOLDEN / f"{name}.cmd")
    assert ended.status == 5
    golden(name, ended)


def test_every_golden_has_its_commands() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {path.stem for path in GOLDEN.glob("*.cmd")}


def test_a_kernel_is_debugged_at_its_first_launch(cli: Cli, kernel: Path) -> None:
    ended = cli("debug", kernel, "-c", "b kernel.py:11; c; s; p x[0, :3]; c; p out[1, :3]", "--", "--rows", "4")
    assert ended.status == 0, ended
    assert ended.out.startswith("before ['--rows', '4']\n")
    assert "swallowed" not in ended.out and "\nafter\n" not in ended.out
    assert "kernel.py:11)" in ended.out, "stopped before the line"
    assert "[0., 1., 2.]" in ended.out and "[16., 18., 20.]" in ended.out


def test_time_travel_as_json(cli: Cli, double: Path) -> None:
    commands = "b dve:2; c; mark here; rs; g here; g end; when; lw y[3]; lw psum:0:0"
    ended = cli("debug", double, "--inputs", "in.npz", "--no-timing", "-c", commands, "--json")
    assert ended.status == 0
    values = {document["inputs"]["command"]: document["result"]["value"] for document in documents(ended)}
    back = values["rs"]
    assert (back["reason"], back["completions"], back["events"], back["ahead"]["pc"]) == ("step", -1, 7, 1)
    assert values["mark here"] == {"name": "here", "events": 8, "time_ps": 4}
    assert values["g here"]["completions"] == 1 and values["g end"]["reason"] == "finished"
    assert values["when"]["marks"] == [values["mark here"]] and values["when"]["budget"] == 500_000_000
    assert (values["lw y[3]"]["engine"], values["lw y[3]"]["kind"]) == ("qOut", "dma")
    assert values["lw psum:0:0"]["number"] is None


def test_the_journal_has_a_size(cli: Cli, double: Path) -> None:
    assert cli("debug", double, "--journal", "1", "-c", "s 3; rs 2; when").status == 0
    ended = cli("debug", double, "--journal", "0", "-c", "s 3; rs")
    assert ended.status == 2 and "keeps no journal" in ended.err


def test_a_kernel_on_two_cores(cli: Cli, kernel: Path) -> None:
    kernel.write_text(KERNEL.replace("nki.simulate(twice)", "nki.simulate(twice)[2]"))
    ended = cli("debug", kernel, "-c", "b kernel.py:11; b nc1 kernel.py:11; i b; c; focus nc1; disas; c; c", "--json")
    values = [document["result"]["value"] for document in documents(ended)]
    assert [len({place[0] for place in each["places"]}) for each in values[2]] == [2, 1]
    assert values[3]["ahead"]["core"] == 0 and values[4]["focus"][0] == 1 and values[5]["core"] == 1
    assert values[6]["breakpoints"] == [1, 2] and values[6]["ahead"]["core"] == 1
    assert values[7]["reason"] == "finished"
    assert "before" in ended.err and "before" not in ended.out


def test_a_script_without_a_launch_and_one_that_fails(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("print('nothing to do')\n")
    ended = cli("debug", path, "-c", "s")
    assert ended.status == 4 and "launched no kernel" in ended.error_line
    path.write_text("raise SystemExit(7)\n")
    assert cli("debug", path, "-c", "s").status == 7


def test_json_is_one_document_per_command(cli: Cli, double: Path) -> None:
    ended = cli("debug", double, "--json", "-c", "step; b dve:2; c; info engines; x/2f 0:0x5000; p y[0,:2]; bogus")
    found = documents(ended)
    assert [document["inputs"]["command"] for document in found][:2] == ["step", "b dve:2"]
    assert [document["exit"] for document in found] == [0] * 6 + [2] and ended.status == 2
    assert found[0]["warnings"] == ["input x float32[128, 64] was not given; it is all zeros"]
    assert not any(document["warnings"] for document in found[1:])
    step = found[0]["result"]
    assert step["command"] == "step" and step["value"]["steps"][0]["time_ps"] > 0
    stop = found[2]["result"]["value"]
    assert (stop["reason"], stop["breakpoints"], stop["ahead"]["engine"]) == ("breakpoint", [1], "DVE")
    assert {row["engine"] for row in found[3]["result"]["value"]} == {"PE", "Activation", "Pool", "DVE", "SP"}
    assert found[4]["result"]["value"]["written"]["values"] == [False, False]
    assert found[5]["result"]["value"]["array"] == {"dtype": "float32", "shape": [2], "values": ["nan", "nan"]}
    assert found[6]["error"]["kind"] == "usage" and ended.err == ""


def test_json_of_every_command(cli: Cli, double: Path) -> None:
    script = (
        "help; help step; info q; info s; info m; info t; info w; l; disas; f pe; state; tb qOut; en; dis; d; r; u #3"
    )
    ended = cli("debug", double, "--json", "--inputs", "in.npz", "-c", script)
    assert ended.status == 0 and len(documents(ended)) == script.count(";") + 1


@pytest.mark.parametrize(
    ("script", "status", "text"),
    [
        ("foo", 2, "no command 'foo'"),
        ("st", 2, "may be step or stepi or state"),
        ("info", 2, "engines, queues"),
        ("info z", 2, "engines, queues"),
        ("step x", 2, "is not a count"),
        ("continue 3", 2, "is not a time"),
        ("x/9z 0", 2, "is not a format"),
        ("print", 2, "TENSOR"),
        ("print x[a]", 2, "is not an index"),
        ("break", 2, "ENGINE:PC"),
        ("disas 1 2 3", 2, "disassemble"),
        ("stepi pe pe", 2, "is not a count"),
        ("delete two", 2, "number of a breakpoint"),
        ("break pe:99", 4, "no PE pc 99"),
        ("break gone.py:3", 4, "no source file"),
        ("print gone", 4, "no tensor"),
        ("print x[128]", 4, "out of bounds"),
        ("x hbm:0", 4, "no memory"),
        ("delete 3", 4, "no breakpoint 3"),
        ("focus gpu", 4, "no engine"),
        ("help gone", 4, "no command"),
    ],
)
def test_a_failing_command_ends_a_batch(cli: Cli, double: Path, script: str, status: int, text: str) -> None:
    ended = cli("debug", double, "--inputs", "in.npz", "-c", f"{script}; state")
    assert ended.status == status and text in ended.error_line
    assert ended.out == f"> {script}\n", "nothing after it"


@pytest.mark.parametrize(
    "words",
    [["gone.s", "-c", "s"], ["double.s", "-x", "gone.cmd"], ["double.s", "--lnc", "2", "-c", "s"],
     ["double.s", "--fly"],
     ["double.s", "--journal", "-1", "-c", "s"], ["double.s", "-c", "s; bogus"]],
)  # fmt: skip
def test_errors_are_one_document_a_line_too(cli: Cli, double: Path, words: list[str]) -> None:
    ended = cli("debug", *words, "--json")
    assert ended.status and ended.err == ""
    assert documents(ended)[-1]["error"]["message"]


def test_errors_of_a_script_name_its_file_and_line(cli: Cli, double: Path) -> None:
    Path("first.cmd").write_text("# a comment\n\nstep\nprint nobody\nstep\n")
    ended = cli("debug", double, "--inputs", "in.npz", "-x", "first.cmd")
    assert ended.status == 4 and ended.error_line.startswith("first.cmd:4: no tensor 'nobody'")
    ended = cli("debug", double, "-c", "step", "-x", "first.cmd", "--json")
    assert documents(ended)[-1]["error"]["message"].startswith("first.cmd:4: no tensor 'nobody'")
    Path("block.cmd").write_text("break dve\ncommands\nstep\n  fly\nend\n")
    ended = cli("debug", double, "--inputs", "in.npz", "-x", "block.cmd")
    assert ended.status == 2 and ended.error_line.startswith("block.cmd:4: no command 'fly'")
    assert cli("debug", double, "--inputs", "in.npz", "-c", "fly").error_line.startswith("no command 'fly'")
    Path("outer.cmd").write_text("step\nsource inner.cmd\n")
    Path("inner.cmd").write_text("\n# a comment\ndefine two\nstep\nend\nfly\n")
    ended = cli("debug", double, "--inputs", "in.npz", "-x", "outer.cmd")
    assert ended.status == 2 and ended.error_line.startswith("inner.cmd:6: no command 'fly'")
    ended = cli("debug", double, "--inputs", "in.npz", "-c", "source inner.cmd")
    assert ended.error_line.startswith("inner.cmd:6: ")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="the file without an end of this test is a device")
def test_a_file_of_commands_without_end_is_refused(cli: Cli, double: Path) -> None:
    for words in (("-x", "/dev/zero"), ("-c", "source /dev/zero")):
        ended = cli("debug", double, "--inputs", "in.npz", *words)
        assert ended.status == 3 and "too large" in ended.error_line


def test_bad_files_and_options(cli: Cli, double: Path, kernel: Path, tmp_path: Path) -> None:
    refuses_bad_files(cli, "debug", tmp_path, "-c", "step")
    assert cli("debug", double, "--nki", "theirs").status == 2
    assert cli("debug", double, "--target", "trn1", "-c", "s").status == 3
    assert cli("debug", double, "--lnc", "2", "-c", "s").status == 2
    assert cli("debug", double, "-c", "s", "--", "argument").status == 2
    assert cli("debug", kernel, "--inputs", "in.npz", "-c", "s").status == 2
    assert cli("debug", double, "--inputs", "gone.npz", "-c", "s").status == 4
    assert cli("debug", double, "-x", "gone.cmd").status == 4
    np.savez("wrong.npz", x=X[:3])
    ended = cli("debug", double, "--inputs", "wrong.npz", "-c", "s")
    assert ended.status == 3 and "shape [3, 64]" in ended.error_line


def test_commands_may_be_given_more_than_once(cli: Cli, double: Path) -> None:
    """All are carried out, in their order; a page of hints spells a breakpoint and what follows like that."""
    once = cli("debug", double, "-c", "break DVE:0; continue; info breakpoints")
    parts = cli("debug", double, "-c", "break DVE:0; continue", "--commands", "info breakpoints")
    assert once.status == parts.status == 0 and once.out == parts.out and "DVE:0" in once.out
    assert cli("debug", double, "-c", "no such", "-c", "state").status == cli("debug", double, "-c", "no such").status


HELPED = """
import numpy as np, nki, nki.isa as nisa, nki.language as nl

def helper(a, b):
    nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
    v = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=v, data=a, op0=nl.multiply, operand0=2.0)
    nisa.tensor_copy(dst=a, src=v)

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    b = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x)
    nisa.memset(dst=b, value=3.0)
    for turn in range(2):
        helper(a, b)
    nisa.dma_copy(dst=out, src=a)
    return out

kernel(np.arange(128 * 8, dtype=np.float32).reshape(128, 8))
"""


def test_out_of_a_helper_and_back_with_its_values(cli: Cli, tmp_path: Path) -> None:
    """Row 0 is 0 to 7, then 6 to 20 by twos, then 18 to 46 by fours."""
    script = tmp_path / "helped.py"
    script.write_text(HELPED)

    def said(*commands: str) -> list[str]:
        words = [word for command in ("break helped.py:7; continue", *commands) for word in ("-c", command)]
        ended = cli("debug", script, *words)
        assert ended.status == 0, ended
        return ended.out.splitlines()

    out = said("finish; p a[0, 0:3]; p v[0, 0:3]; find a[0], 12; find a[0], 5")
    assert "the function has returned" in out and out.count("[ 6.,  8., 10.]") == 2
    assert out[-3] == "a[0][3]" and out[-1] == "5 stands nowhere there"
    second = "continue"
    out = said(second, "p a[0, 0:3]; reverse-finish; where; p a[0, 0:3]; continue; finish; p v_1[0, 0:3]; p a[0, 0:3]")
    values = [line.strip() for line in out if line.startswith("[")]
    assert values == ["[ 9., 11., 13.]", "[ 6.,  8., 10.]", "[18., 22., 26.]", "[18., 22., 26.]"]
    back = out.index("> reverse-finish")
    assert any(line.startswith("#0  helper at ") and line.endswith(":5") for line in out[back:])


def test_commands_come_from_a_pipe(cli: Cli, double: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("s\n\n\n# a comment\nquit\nbogus\n"))
    ended = cli("debug", double, "--inputs", "in.npz")
    assert ended.status == 0 and ended.err == ""
    assert [line.split()[0] for line in ended.out.splitlines() if line.startswith("#")] == ["#0", "#1", "#2"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("bogus\ns\n"))
    assert cli("debug", double, "--inputs", "in.npz").status == 2
    monkeypatch.setattr(sys, "stdin", io.StringIO("break dve\ns\ncommands 1\n\nstate\nend\ninfo breakpoints\n"))
    assert cli("debug", double, "--inputs", "in.npz").out.endswith("\n        state\n"), "only what stands in the block"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_errors_do_not_end_the_prompt(cli: Cli, double: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", _Terminal())
    lines = iter(["bogus", KeyboardInterrupt, "s", "", "p nobody", "c"])

    def ask(prompt: str) -> str:
        assert prompt.startswith("(neuron nc0 ")
        line = next(lines, EOFError)
        if isinstance(line, str):
            return line
        raise line

    monkeypatch.setattr("builtins.input", ask)
    ended = cli("debug", double, "--inputs", "in.npz", "--cli", "-c", "s")
    assert ended.status == 0
    assert [line.split("'")[1] for line in ended.err.splitlines()] == ["bogus", "nobody"]
    assert "#2 " in ended.out and "the program has ended" in ended.out


def test_ctrl_c_belongs_to_the_pager(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupts = "import os, signal, sys; sys.stdin.read(); os.kill(os.getppid(), signal.SIGINT)"
    monkeypatch.setenv("PAGER", f"{sys.executable} -c {shlex.quote(interrupts)}")
    assert page(["line"] * 1000)
    monkeypatch.setenv("PAGER", "less '")
    assert not page(["line"] * 1000), "what is not a command line is no pager"


def test_ctrl_c_while_lines_are_printed_leads_to_the_prompt(
    program_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from neurontools.debugger import Session

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    lines, show = iter(["step", "state"]), Repl._show
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines, None) or _end())
    repl = Repl(Session(program_file, {"x": X}))

    def interrupted(self: Repl, answer: Any) -> None:
        if answer.name == "step":
            raise KeyboardInterrupt
        show(self, answer)

    monkeypatch.setattr(Repl, "_show", interrupted)
    assert repl.interact() == 0
    out, err = capsys.readouterr()
    assert err == "interrupted\n" and "1 event," in out


def _end() -> str:
    raise EOFError


def test_ctrl_c_ends_a_batch_with_130(program_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from neurontools.debugger import Session

    class Interrupting:
        def on_event(self, event: Any) -> None:
            if event.number == 3:
                raise KeyboardInterrupt

    session = Session(program_file, {"x": X})
    session.device.observers.append(Interrupting())
    assert Repl(session).batch(["continue", "state"]) == 130
    out = capsys.readouterr().out
    assert "interrupted" in out and "> state" not in out


def test_list_and_x_go_on_when_repeated(double: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from neurontools.debugger.opening import open_session
    from neurontools.program.configuration import RunConfiguration

    repl = Repl(open_session(double, RunConfiguration(inputs="in.npz")))
    assert repl.piped(io.StringIO("l 6\n\nx/2f x\n\n")) == 0
    out = capsys.readouterr().out
    numbers = [int(line[3:8]) for line in out.splitlines() if line[0] != ">" and line[3:8].strip().isdigit()]
    assert numbers == list(range(1, 21))
    values = [line.split(":  ")[1] for line in out.splitlines() if line.startswith("hbm x ")]
    assert values == ["0  1", "2  3"]


def test_comments_and_splitting() -> None:
    assert split_commands("a; b # c; d\n# e\n\n f ;; until #12; #3 x") == ["a", "b", "f", "until #12", "#3 x"]
    assert without_comment("  # 3") == "" and without_comment("s 2 # two") == "s 2"


def test_completion(double: Path) -> None:
    from neurontools.debugger.opening import open_session
    from neurontools.program.configuration import RunConfiguration

    repl = Repl(open_session(double, RunConfiguration(inputs="in.npz")))
    assert repl.complete("ste") == ["step ", "stepi "]
    assert repl.complete("info q") == ["queues"]
    assert repl.complete("p ") == ["x", "y", "two"]
    assert "double.s:17" in repl.complete("break dou") and repl.complete("si d") == ["dve"]
    assert repl.complete("bogus x") == []


def test_help_knows_every_command(cli: Cli, double: Path) -> None:
    out = cli("debug", double, "--inputs", "in.npz", "-c", "help").out
    for name, command in COMMANDS.items():
        assert f"\n{name} " in out and command.summary in out


def test_checks_that_run_along(cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    commands = "checks; catch finding racecheck; c; info findings; rs; i f; checks off; info findings"
    ended = cli("debug", "examples/race.s", "--check", "race", "-c", commands)
    assert ended.status == 0, ended
    parts = [part.split("\n", 1) for part in ("\n" + ended.out).split("\n> ")[1:]]
    assert [command for command, _ in parts] == commands.split("; ")
    shown = [text for _, text in parts]
    assert "racecheck running: 0 findings" in shown[0] and "catchpoint 1" in shown[2] and "[write-read]" in shown[3]
    assert shown[5] == "none" and "no checks are running" in shown[6] and shown[7].strip() == "none"
    found = documents(cli("debug", "examples/race.s", "--check", "all", "-c", "g end; info findings", "--json"))
    (finding,) = found[1]["result"]["value"]
    assert (finding["tool"], finding["site"]["engine"], finding["others"][0]["engine"]) == ("racecheck", "DVE", "qB")
    assert cli("debug", "examples/race.s", "--check", "taste", "-c", "s").status != 0


def test_a_hang_by_time_though_others_move(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "polling.s"
    path.write_text(
        ".target trn2\n.dialect extended\n.engine dve\n    NOP S[9]>=1 cycle=0\n.engine pool\nhere:\n"
        "    NOP S[10]++@complete cycle=1000\n    COMPARE_BRANCH cmp_op=ALWAYS label_id=%here\n"
    )
    for command in (("run", path), ("debug", path, "-c", "continue")):
        ended = cli(*command, "--hang-timeout", "3us")
        assert ended.status == 5 and "hang timeout at " in ended.out and "S[9]>=1" in ended.out, ended
        assert cli(*command, "--hang-timeout", "soon").status == 2


def test_statistics_and_export(cli: Cli, double: Path) -> None:
    ended = cli("debug", double, "--inputs", "in.npz", "--json", "-c", "g end; p y[0:2]; export y[3:5] out.npy; p two")
    value = documents(ended)[1]["result"]["value"]
    want = 2 * X[0:2]
    assert value["statistics"] == {
        "elements": 128, "minimum": 0.0, "maximum": float(want.max()), "mean": float(want.mean()), "nans": 0,
        "infinities": 0,
    }  # fmt: skip
    assert (np.load("out.npy") == 2 * X[3:5]).all()
    assert "mean 127" in cli("debug", double, "--inputs", "in.npz", "-c", "g end; p y[0:2]").out
    for line, status in (("export y", 2), ("export y out.txt", 2), ("export q out.npy", 4), ("export y no/o.npy", 3)):
        assert cli("debug", double, "-c", line).status == status, line


def test_commands_of_a_breakpoint_go_on(cli: Cli, double: Path) -> None:
    script = "tb dve:2; commands; p y[0, 0]; c; state; end; catch dma; comm; i q; end; c; c; c"
    ended = cli("debug", double, "-c", script)
    assert ended.status == 0 and "state" not in [line[2:] for line in ended.out.splitlines() if line[:2] == "> "]
    assert ended.out.count("> i q") == 2 and ended.out.count("> p y[0, 0]") == 1
    assert cli("debug", double, "-c", "commands; s; end").status == 2
    assert cli("debug", double, "-c", "b dve; commands; bogus; end").status == 2


@pytest.mark.parametrize("line", ["b dve if", "watch", "catch", "catch snow", "condition", "condition x", "ignore 1",
                                  "ignore a b", "checks maybe", "info registers pe act", "info events some",
                                  "info dma x", "b dve if S[1", "continue 3", "stepi -2", "list 20,10",
                                  "until dve:"])  # fmt: skip
def test_arguments_that_make_no_sense(cli: Cli, double: Path, line: str) -> None:
    ended = cli("debug", double, "--inputs", "in.npz", "-c", line)
    assert ended.status == 2 and ended.error_line


@pytest.mark.parametrize("line", ["info timeline 0us 99999999s", "info\tregisters\tpe", "x/2i DVE:0x1"])
def test_odd_arguments_that_make_sense(cli: Cli, double: Path, line: str) -> None:
    ended = cli("debug", double, "--inputs", "in.npz", "-c", line)
    assert (ended.status, ended.err) == (0, "")


def test_completion_knows_the_new_commands(program_file: Path) -> None:
    from neurontools.debugger import Session

    repl = Repl(Session(program_file, {"x": X}))
    assert "nan" in repl.complete("catch ") and repl.complete("checks race") == ["racecheck"]
    assert repl.complete("info regi") == ["registers"] and "dve" in repl.complete("info registers d")
    repl.execute("b dve:2")
    assert repl.complete("condition ") == ["1"] and "y" in repl.complete("export ")
