"""`neurontools hlo show`."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.hlo.compare import same
from formats.hlo.text import parse_module
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.cli.hlo_modules import model
from tests.formats.hlo.build import mlp


def test_show(cli: Cli, tmp_path: Path) -> None:
    file = model(tmp_path)
    ended = cli("hlo", "show", file, "--sources")
    assert ended.status == 0 and "ENTRY main {" in ended.out and "// model.py:42" in ended.out
    assert "lhs_contracting_dims={1}" in ended.out and "metadata" not in ended.out
    whole = cli("hlo", "show", file, "--whole").out
    text = tmp_path / "again.txt"
    text.write_text(whole)
    assert cli("hlo", "show", text, "--whole").out == whole and same(parse_module(whole), mlp())
    only = cli("hlo", "show", file, "--computation", "add_f32")
    assert "parameter(0)" in only.out and "ENTRY" not in only.out
    assert cli("hlo", "show", file, "--computation", "nobody").status == 4
    result = checked_json(cli("hlo", "show", file, "--json"), "hlo show")
    assert [each["name"] for each in result["computations"]] == ["add_f32", "main"]
    assert result["computations"][1]["instructions"][3]["source"] == "model.py:42"


def test_stablehlo(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    body = "%0 = stablehlo.add %a, %a : tensor<3xf32>\n    return %0 : tensor<3xf32>"
    path.write_text(
        f"module @m {{\n  func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {{\n    {body}\n  }}\n}}\n"
    )
    ended = cli("hlo", "show", path)
    try:
        import jaxlib  # noqa: F401 (asked whether it is there)
    except ImportError:
        assert ended.status == 6 and "jaxlib" in ended.error_line
        pytest.skip("jaxlib is not installed")
    assert ended.status == 0 and "add(" in ended.out
    path.write_text("module @m {\n  nonsense\n}\n")
    assert cli("hlo", "show", path).status == 3


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "hlo show", tmp_path)


def test_stablehlo_as_bytecode(cli: Cli, tmp_path: Path) -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    from jax import export

    exported = export.export(jax.jit(lambda x: jax.numpy.sin(x) * 2))(jax.ShapeDtypeStruct((4,), "float32"))
    path = tmp_path / "model.mlirbc"
    path.write_bytes(exported.mlir_module_serialized)
    ended = cli("hlo", "show", path)
    assert ended.status == 0 and "sine(" in ended.out
    path.write_bytes(exported.mlir_module_serialized[:60])
    assert cli("hlo", "show", path).status == 3
