"""`neurontools compile model`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

import neurontools
from formats.hlo import PrimitiveType, save_hlo
from neurontools.compiler.command import app
from neurontools.compiler.pipeline import PASSES
from neurontools.compiler.without_effect import WITHOUT_EFFECT, told
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.compiler.support import adder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_hlo(tmp_path / "adder.hlo.pb", adder())
    return tmp_path / "adder.hlo.pb"


def test_a_module_becomes_a_neff_that_runs(cli: Cli, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "adder.neff"
    log = tmp_path / "log.txt"
    result = checked_json(
        cli("compile", "--framework", "XLA", model, "--target", "trn2", f"--output={out}", "-lnc", "1", "-O1",
            "--logfile", log, "--json"), "compile model")  # fmt: skip
    assert (result["inputs"], result["outputs"], result["lnc"]) == (["x", "input1"], ["sum"], 1)
    assert log.exists()
    x, y = np.arange(15, dtype=np.float32).reshape(3, 5), np.ones((3, 5), np.float32)
    ran = neurontools.run(neurontools.open_neff(out), {"x": x, "input1": y})
    assert (ran.outputs["sum"] == x + y).all()


def test_words_are_those_of_both_cores(cli: Cli, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "two.neff"
    log = ("--logfile", tmp_path / "log")
    result = checked_json(cli("compile", model, "-o", out, "--lnc", "2", *log, "--json"), "compile model")
    cores = neurontools.open_neff(out).subgraphs
    assert len(cores) == 2
    wanted = {engine: sum(len(core.stream_bytes(engine)) // 64 for core in cores) for engine in result["words"]}
    assert result["words"] == wanted
    assert result["hbm_bytes"]["input"] == 2 * 3 * 5 * 4


def test_a_module_of_text_compiles_as_its_proto_does(cli: Cli, model: Path, tmp_path: Path) -> None:
    text = tmp_path / "adder.hlo"
    text.write_text(cli("hlo", "show", model).out)
    log, cache = ("--logfile", tmp_path / "log"), ("--cache_dir", tmp_path / "cache")
    for number, given in enumerate((model, text)):
        assert cli("compile", given, "-o", tmp_path / f"{number}.neff", *log, *cache).status == 0
    x, y = np.arange(15, dtype=np.float32).reshape(3, 5), np.ones((3, 5), np.float32)
    for number in range(2):
        ran = neurontools.run(neurontools.open_neff(tmp_path / f"{number}.neff"), {"x": x, "input1": y})
        assert (ran.outputs["sum"] == x + y).all()
    assert cli("compile", "cache", "verify", *cache).status == 0


def test_instructions_name_operation_and_line(cli: Cli, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "adder.neff"
    assert cli("compile", model, "-o", out, "--logfile", tmp_path / "log").status == 0
    ended = cli("neff", "where", out, "model.py:42")
    assert ended.status == 0
    assert "BIR: add.5" in ended.out
    assert "TENSOR_TENSOR" in ended.out


def test_refusals_have_code_operation_and_line(cli: Cli, tmp_path: Path) -> None:
    save_hlo(tmp_path / "c.pb", adder(PrimitiveType.C128))
    ended = cli("compile", tmp_path / "c.pb", "-o", tmp_path / "c.neff", "--logfile", tmp_path / "log")
    assert ended.status == 3
    assert "[NCC_EVRF004] %a: complex type c128 is not supported" in ended.err
    assert "EVRF004" in (tmp_path / "log").read_text()
    assert not (tmp_path / "c.neff").exists()
    save_hlo(tmp_path / "u.pb", adder(opcode="custom-call", target="AwsNeuronRmsNorm"))
    ended = cli("compile", tmp_path / "u.pb", "-o", tmp_path / "u.neff", "--logfile", tmp_path / "log")
    assert ended.status == 6
    assert (
        "[NCC_EUOC002] %add.5: custom call AwsNeuronRmsNorm is not supported by this compiler at model.py:42"
        in ended.err
    )


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--target", "trn1", "--lnc", "2"], 3, "NCC_EARG001"),
        (["--target", "inf1"], 6, "neuron-cc"),
        (["--target", "trn9"], 3, "trn9"),
        (["--framework", "TF"], 2, "XLA"),
        (["--auto-cast", "some"], 2, "matmult"),
        (["--auto-cast-type", "fp4"], 2, "bf16"),
        (["--dump-after", "nothing"], 4, "no pass 'nothing'"),
        (["--native-int64", "enabled"], 6, "native-int64"),
    ],
)
def test_bad_options(cli: Cli, model: Path, tmp_path: Path, arguments: list[str], status: int, text: str) -> None:
    ended = cli("compile", model, "-o", tmp_path / "x.neff", "--logfile", tmp_path / "log", *arguments)
    assert (ended.status, text in ended.err) == (status, True)


_USES = {
    "--distribution-strategy": ["--distribution-strategy=llm-training"],
    "--enable-fast-context-switch": ["--enable-fast-context-switch"],
    "--pipeline": ["--pipeline", "tensorize"],
    "--internal-tensorizer-opt-level": ["--internal-tensorizer-opt-level=3"],
    "--internal-hlo2tensorizer-options": ["--internal-hlo2tensorizer-options=--verify-hlo=false"],
}


def test_options_without_effect_say_so(cli: Cli, model: Path, tmp_path: Path, root: Path) -> None:
    assert _USES.keys() == WITHOUT_EFFECT.keys()
    command = ("compile", model, "--logfile", tmp_path / "log", "-o")
    silent = cli(*command, tmp_path / "plain.neff", "-O2", "--enable-fast-loading-neuron-binaries")
    assert (silent.status, silent.err) == (0, "")
    section = (root / "docs/commands.md").read_text().split("## neurontools compile model")[1].split("\n## ")[0]
    offered = {one: each for each in get_command(app).params for one in (*each.opts, *each.secondary_opts)}
    for name, use in _USES.items():
        used = cli(*command, tmp_path / "used.neff", "--enable-fast-loading-neuron-binaries", *use)
        assert (used.status, used.err) == (0, f"warning: {told((name,))}\n")
        assert WITHOUT_EFFECT[name].reason in used.err
        assert (tmp_path / "used.neff").read_bytes() == (tmp_path / "plain.neff").read_bytes(), name
        assert f"`{name}`" in section
    said = [one for one, each in offered.items() if "no effect here" in (getattr(each, "help", "") or "")]
    assert {*said} == WITHOUT_EFFECT.keys() - {"--pipeline"}  # of which one value has an effect
    both = cli(
        *command, tmp_path / "used.neff", "--internal-tensorizer-opt-level=3", "--distribution-strategy=NEMO", "--json"
    )
    names = "--distribution-strategy", "--internal-tensorizer-opt-level"
    assert both.json["warnings"] == [told(names)]


def test_verbose_says_what_is_told(cli: Cli, model: Path, tmp_path: Path) -> None:
    command = (
        "compile",
        model,
        "-o",
        tmp_path / "a.neff",
        "--logfile",
        tmp_path / "log",
        "--distribution-strategy=NEMO",
    )
    plain, info, debug, error = (cli(*command, *more) for more in (
        (), ("--verbose=info",), ("--verbose=debug",), ("--verbose=error",)
    ))  # fmt: skip
    assert "without effect" in plain.err
    assert "after canonicalise" not in plain.out
    assert "after canonicalise" in info.out
    assert "graph " not in info.out
    assert "graph " in debug.out
    assert error.err == ""
    assert "WARNING --distribution-strategy" in (tmp_path / "log").read_text()  # the file has all


def test_temporary_graphs_are_kept_where_that_is_asked_for(cli: Cli, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    command = ("compile", model, "-o", tmp_path / "a.neff", "--logfile", tmp_path / "log", "--workdir", folder)
    assert cli(*command).status == 0
    assert list(folder.iterdir()) == []
    assert cli(*command, "--pipeline", "compile", "SaveTemps").status == 0
    assert {one.name for one in folder.iterdir()} == {f"a.{name}.txt" for name in PASSES}
    assert "graph " in (folder / "a.attention.txt").read_text()


def test_bad_modules(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.pb").write_bytes(b"\xff\xff\xff not a module")
    log = ("--logfile", tmp_path / "log")
    assert cli("compile", tmp_path / "bad.pb", *log).status == 3
    assert cli("compile", tmp_path / "missing.pb", *log).status == 4
    assert cli("compile", tmp_path / "bad.pb", tmp_path / "bad.pb", *log).status == 2


def test_the_cache_answers_the_second_time(cli: Cli, model: Path, tmp_path: Path) -> None:
    files = []
    for number in range(2):
        out = tmp_path / f"{number}.neff"
        arguments = ("-o", out, "--logfile", tmp_path / "log", "--cache_dir", tmp_path / "cache", "--json")
        result = checked_json(cli("compile", model, *arguments), "compile model")
        assert result["cached"] is bool(number)
        files.append(out.read_bytes())
    assert files[0] == files[1]
