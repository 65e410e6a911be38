"""Graphs at their edges: no elements, windows cut short, infinities of short floats, names, configurations, logs."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from formats.errors import FormatError
from formats.hlo import Module
from formats.hlo.text import parse_module
from formats.whole_files import umask
from neurontools.cli import main
from neurontools.compiler.cache import CompileCache
from neurontools.compiler.entry import translated
from neurontools.compiler.errors import CompileError
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.pipeline import compile_module
from neurontools.hlo_interpreter import evaluate
from tests.compiler.support import OURS, floats, run

_ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b)\n}\n"
_GE = "ge { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=GE\n}\n"


def module(root: str, *parameters: str, bodies: str = "", more: str = "") -> Module:
    given = "\n".join(f"  p{number} = {kind} parameter({number})" for number, kind in enumerate(parameters))
    return parse_module(f"HloModule m\n\n{bodies}\nENTRY main {{\n{given}\n{more}\n  ROOT r = {root}\n}}\n")


def both(made: Module, *inputs: Any, options: CompileOptions = OURS) -> tuple[Any, list[Any]]:
    return evaluate(made, list(inputs)), run(compile_module(made, options), *inputs)


@pytest.mark.parametrize("rule", ["add(p0, p0)", "convert(p1)", "sqrt(p0)", "select(p2, p0, p0)"])
def test_elementwise_operations_of_no_elements(rule: str) -> None:
    """What has no elements is a constant of none; it was refused as an operation that is not supported."""
    whole = module("f32[2,3] concatenate(q, p3), dimensions={0}", "f32[0,3]", "s32[0,3]", "pred[0,3]", "f32[2,3]",
                   more=f"  q = f32[0,3] {rule}")  # fmt: skip
    inputs = (floats(0, 3), np.zeros((0, 3), np.int32), np.zeros((0, 3), bool), floats(2, 3))
    want, (got,) = both(whole, *inputs)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("root", "kinds"),
    [
        ("f32[0,0] cholesky(p0), lower=true", ["f32[0,0]"]),
        ("f32[0,3,3] cholesky(p0), lower=true", ["f32[0,3,3]"]),
        ("f32[0,2] triangular-solve(p0, p1), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
         ["f32[0,0]", "f32[0,2]"]),
        ("f32[3,0] triangular-solve(p0, p1), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
         ["f32[3,3]", "f32[3,0]"]),
    ],
)  # fmt: skip
def test_factors_of_nothing(root: str, kinds: list[str]) -> None:
    """A factor without rows ended in a traceback."""
    made = compile_module(module(root, *kinds), OURS)
    assert [shape for _, shape in made.results] == [tuple(json.loads(root[3 : root.index(" ")]))]


@pytest.mark.parametrize(("pad", "places"), [("0_0", 4), ("-1_0", 3), ("-1_1", 4), ("1_-2", 3), ("0_-1", 3)])
def test_windows_whose_padding_cuts_elements_off(pad: str, places: int) -> None:
    """Negative padding shifted the result of select-and-scatter, or read beyond it."""
    whole = module(
        f"f32[8] select-and-scatter(p0, p1, c), window={{size=2 stride=2 pad={pad}}}, select=ge, scatter=add",
        "f32[8]", f"f32[{places}]", bodies=_ADD + _GE, more="  c = f32[] constant(0.5)",
    )  # fmt: skip
    want, (got,) = both(whole, floats(8), floats(places, seed=1))
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("kind", [ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3, ml_dtypes.bfloat16, np.float16])
def test_infinities_are_saturated_in_every_float(kind: Any) -> None:
    name = {"float8_e5m2": "f8e5m2", "float8_e4m3": "f8e4m3", "bfloat16": "bf16", "float16": "f16"}[kind.__name__]
    whole = module("f32[40,40] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
                   f"{name}[40,64]", f"{name}[40,64]")  # fmt: skip
    options = CompileOptions(target="trn1", saturate_infinity=True, limits="ours")
    a, b = floats(40, 64).astype(kind), floats(40, 64, seed=1).astype(kind)
    want, (got,) = both(whole, a, b, options=options)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("names", ["a,a", "input0,b", "SB,b", "DGETable0,b"])
def test_no_two_tensors_have_one_name(names: str) -> None:
    """Of two outputs of one name the file had one, with the values of either."""
    whole = module(f'(f32[4], f32[4]) tuple(q, p0), frontend_attributes={{neff_output_names="{names}"}}',
                   "f32[4]", more="  q = f32[4] add(p0, p0)")  # fmt: skip
    with pytest.raises(FormatError, match="has the name of an input or output"):
        compile_module(whole, OURS)


_SCALED = '{\\"scaled_dot_backend_config\\":{\\"lhs_batch_dimensions\\":[%s]}}'


@pytest.mark.parametrize(
    ("target", "config", "code"),
    [
        ("__op$block_scaled_dot", _SCALED % "Infinity", "EVRF049"),
        ("__op$block_scaled_dot", _SCALED % "0.5", "EVRF049"),
        ("QuantizeMX", "[" * 100_000, "EVRF036"),
        ("AwsNeuronCustomNativeKernel", f"/tmp/{'b' * 300}", "EVRF059"),
    ],
)
def test_odd_configurations_have_their_code(target: str, config: str, code: str) -> None:
    """These were an OverflowError, a RecursionError and an OSError."""
    whole = module(f'f32[4,4] custom-call(p0, p0, p0, p0), custom_call_target="{target}", backend_config="{config}"',
                   "u32[4,4]")  # fmt: skip
    with pytest.raises(CompileError) as caught:
        compile_module(whole, OURS)
    assert caught.value.code == code


def test_a_cache_is_for_everybody_and_forgives(tmp_path: Path) -> None:
    whole, cache = module("f32[4] add(p0, p0)", "f32[4]"), CompileCache(tmp_path)
    made = compile_module(whole, OURS)
    cache.keep(b"module", OURS, made)
    (entry,) = cache.folder.iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o777 & ~umask()
    found = cache.find(b"module", OURS)
    assert found is not None and found.neff == made.neff
    report = entry / "report.json"
    told = json.loads(report.read_text())
    for broken in ({key: value for key, value in told.items() if key != "sha256"}, {**told, "cores": [1]}, [], 7):
        report.write_text(json.dumps(broken))
        assert cache.find(b"module", OURS) is None


def test_an_entry_that_another_process_has_just_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, cache = module("f32[4] add(p0, p0)", "f32[4]"), CompileCache(tmp_path)
    made = compile_module(whole, OURS)
    rename = Path.rename

    def raced(self: Path, target: Path) -> Path:
        target.mkdir()
        (target / "model.done").touch()
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", raced)
    cache.keep(b"module", OURS, made)
    assert [one.name for one in cache.folder.iterdir()] == [cache.key(b"module", OURS)]


_TEXT = "HloModule m\n\nENTRY main {\n  p0 = f32[4] parameter(0)\n  ROOT r = f32[4] add(p0, p0)\n}\n"


def test_the_log_has_what_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines about passes were printed, and written nowhere; a folder that --workdir named had to be there."""
    monkeypatch.chdir(tmp_path)
    Path("m.txt").write_text(_TEXT)
    given = ["compile", "model", "m.txt", "--verbose", "info", "--pipeline", "SaveTemps", "--workdir", "kept/here"]
    assert main([*given, "--tensorizer-options=--print-nki"]) == 0
    log = Path("log-neuron-cc.txt").read_text()
    assert "INFO after verify: 2 lines" in log and "\nafter verify: 2 lines" in capsys.readouterr().out
    assert {"nki.py", "file.import.txt"} <= {one.name for one in Path("kept/here").iterdir()}


def test_an_error_comes_before_that_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ["compile", "model", "m.txt", "--logfile", "nowhere/log"]
    Path("m.txt").write_text(_TEXT.replace("add(p0, p0)", "add(p0, nothing)"))
    assert main(given) == 3
    assert "nothing" in capsys.readouterr().err
    Path("m.txt").write_text(_TEXT)
    assert main(given) == 3
    assert "the log cannot be written" in capsys.readouterr().err


def test_a_flag_of_the_framework_takes_no_word() -> None:
    """The word behind it was the module."""
    line = ["compile", "--retry_failed_compilation", "m.hlo", "--target", "trn2"]
    assert translated(line) == ["compile", "model", "m.hlo", "--target", "trn2"]
