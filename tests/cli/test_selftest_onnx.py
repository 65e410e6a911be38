"""`neurontools selftest onnx`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_a_sample_agrees(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    rows = tmp_path / "rows.jsonl"
    ended = cli("selftest", "onnx", "--sample", "200", "--rows", rows, "--json")
    result = checked_json(ended, "selftest onnx")
    assert result["cases"] == 200 and result["agree"] >= 170
    assert "error" not in result["outcomes"] and "refused" not in result["outcomes"], result["others"]
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    assert len(lines) == 200 and {line["outcome"] for line in lines} == set(result["outcomes"])


def test_cases_by_name(cli: Cli) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    ended = cli("selftest", "onnx", "--only", "test_softmax_axis", "--least", "999")
    assert ended.status == 1 and "agree (100.0 %)" in ended.out and "Softmax" in ended.out


def test_without_onnx(cli: Cli) -> None:
    try:
        import onnx  # noqa: F401 (asked whether it is there)
    except ImportError:
        ended = cli("selftest", "onnx")
        assert ended.status == 6 and "needs the extra onnx" in ended.error_line
    ended = cli("selftest", "onnx", "--backend", "nobody")
    assert ended.status == 4
