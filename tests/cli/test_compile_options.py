"""Every option of the compiler with a value that it does not have: refused in one line, wherever it is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import neurontools
from formats.errors import FormatError
from formats.hlo import save_hlo
from neurontools.compiler.options import CompileOptions, check_options
from tests.cli.conftest import Cli
from tests.compiler.support import adder

# A value of the right type where the option has one, what the refusal says is allowed, and the flag.
_BAD: dict[str, tuple[Any, str, str]] = {
    "target": ("trn9", "inf2 or trn1 or trn1n or trn2 or trn3", "--target=trn9"),
    "model_type": ("nonsense", "generic or transformer or unet-inference", "--model-type=nonsense"),
    "auto_cast": ("nonsense", "none or matmult or all", "--auto-cast=nonsense"),
    "auto_cast_type": ("nonsense", "bf16 or fp16 or tf32 or fp8_e4m3", "--auto-cast-type=nonsense"),
    "native_int64": ("nonsense", "default or enabled or disabled", "--native-int64=nonsense"),
    "implicit_integer_downcast": ("dot,sum", "default, all, none or a list", "--implicit-integer-downcast=dot,sum"),
    "distribution_strategy": ("nonsense", "llm-training or NEMO", "--distribution-strategy=nonsense"),
    "lnc": (3, "1 and 2", "--lnc=3"),
    "optlevel": (4, "1, 2 or 3", "--optlevel=4"),
    "mixed_precision_accumulation": (2, "True or False", "--enable-mixed-precision-accumulation=2"),
    "saturate_infinity": (2, "True or False", "--enable-saturate-infinity=2"),
    "fast_context_switch": (2, "True or False", "--enable-fast-context-switch=2"),
    "fast_loading": (2, "True or False", "--enable-fast-loading-neuron-binaries=2"),
    "fp8_as_e4m3": (2, "True or False", "--experimental-unsafe-fp8e4m3fn-as-fp8e4m3=2"),
    "limits": ("nonsense", "documented or ours", "--limits=nonsense"),
    "early_ag_shift": (-2, "0 or more, or -1", "--early-ag-shift=-2"),
    "late_rs_shift": (-2, "0 or more, or -1", "--late-rs-shift=-2"),
    "cc_streams": (5, "1 to 4, or 0", "--cc-streams=5"),
    "seed": ("one", "a whole number", ""),  # of the compiler's own tests, no flag
}
_WITH_FLAG = [name for name, (_, _, flag) in _BAD.items() if flag]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_hlo(tmp_path / "adder.hlo.pb", adder())
    return tmp_path / "adder.hlo.pb"


def test_every_option_is_tried() -> None:
    assert set(_BAD) == set(CompileOptions._fields)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("name", _BAD)
def test_python_refuses_a_wrong_value(name: str, cached: bool, tmp_path: Path) -> None:
    bad, allowed, _ = _BAD[name]
    with pytest.raises(FormatError) as raised:
        neurontools.compile(adder(), **{"target": "trn2", "cache": tmp_path if cached else None, name: bad})
    text = str(raised.value)
    assert allowed in text
    assert str(bad).removeprefix("dot,") in text
    assert name in text.replace("-", "_") or "logical core configuration" in text
    assert "\n" not in text
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", CompileOptions._fields)
@pytest.mark.parametrize("bad", [None, 2.5, [], {}, b"all"], ids=repr)
def test_python_refuses_a_value_of_another_type(name: str, bad: Any) -> None:
    with pytest.raises(FormatError) as raised:
        check_options(CompileOptions()._replace(**{name: bad}))
    assert name in str(raised.value)
    assert repr(bad) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", _WITH_FLAG)
def test_the_command_line_refuses_a_wrong_value(name: str, cli: Cli, model: Path, tmp_path: Path) -> None:
    out, log = tmp_path / "out.neff", tmp_path / "log"
    ended = cli("compile", "model", model, "-o", out, "--logfile", log, _BAD[name][2])
    assert ended.status in (2, 3)
    flag, _, value = _BAD[name][2].partition("=")
    assert flag in ended.err or "logical core configuration" in ended.err
    assert value.removeprefix("dot,") in ended.err or "does not take a value" in ended.err
    assert "Traceback" not in ended.err
    assert not out.exists()


@pytest.mark.parametrize("name", [name for name in _BAD if name != "implicit_integer_downcast"])
def test_two_compilations_are_not_compared_with_a_wrong_value(name: str, cli: Cli, model: Path) -> None:
    ended = cli("compile", "diff", model, "--a", "lnc=1", "--b", f"{name}={_BAD[name][0]}")
    assert ended.status == 3
    assert "Traceback" not in ended.err
