"""`--schedule` of every command that runs scripts: operations go ahead of others that wait, with the same results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

SCRIPT = """
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def products(a, b):
    out = nl.ndarray((512, 512), nl.float32, buffer=nl.shared_hbm)
    left, right = nl.load(a), nl.load(b)
    for start in range(0, 512, 128):
        total = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
        nisa.memset(total, 0.0)
        nisa.nc_matmul(total, left[:, start : start + 128], right)
        result = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(result, total)
        nisa.dma_copy(out[start : start + 128], result)
    return out

a, b = (np.random.default_rng(seed).random((128, 512), np.float32) for seed in (0, 1))
assert np.allclose(products(a, b), a.T @ b, rtol=1e-5)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    return file


def test_a_scheduled_run_is_shorter_and_gives_the_same(cli: Cli, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def time_ps(*options: str) -> int:
        made = cli("run", str(script), "--target", "trn2", "--json", *options)
        assert made.status == 0, made
        return int(json.loads(made.out)["result"]["launches"][0]["time_ps"])

    plain, scheduled = time_ps(), time_ps("--schedule")
    assert scheduled < plain
    monkeypatch.setenv("NEURONTOOLS_SCHEDULE", "on")
    assert time_ps() == scheduled


def test_other_commands_have_that_order(cli: Cli, script: Path) -> None:
    def checked(*options: str) -> int:
        made = cli("check", str(script), "--target", "trn2", "--json", *options)
        assert made.status == 0, made
        return int(json.loads(made.out)["result"]["runs"][0]["time_ps"])

    assert checked("--schedule") < checked()
    said = [cli("debug", str(script), "--target", "trn2", "-c", "continue", *more) for more in ((), ("--schedule",))]
    assert [one.status for one in said] == [0, 0], said
    assert said[0].out != said[1].out  # which says when the program ended


def test_a_profile_says_what_another_order_saves(cli: Cli, script: Path) -> None:
    def profiled(*options: str) -> dict[str, object]:
        made = cli("profile", "run", str(script), "--target", "trn2", "--json", *options)
        assert made.status == 0, made
        found: dict[str, object] = json.loads(made.out)["result"]
        return found

    plain, scheduled = profiled(), profiled("--schedule")
    rules = [{one["rule"]: one for one in found["advice"]} for found in (plain, scheduled)]  # type: ignore[attr-defined]
    saved = plain["total_time_ns"] - scheduled["total_time_ns"]  # type: ignore[operator]
    assert rules[0]["order"]["saves_ns"] == pytest.approx(saved) and "order" not in rules[1]
    assert rules[0]["order"]["line"] == "script.py:11" and "--schedule" in rules[0]["order"]["message"]
    texts = [cli("profile", "run", str(script), "--target", "trn2", *more).out for more in ((), ("--schedule",))]
    first, second = (one.splitlines()[:2] for one in texts)
    assert first[1].startswith("that is in the kernel's order; scheduled") and second[1] == ""
    assert second[0].split(": ")[1].removesuffix(" (simulated)") in first[1]  # the time of the other


def test_a_search_tries_both_orders(cli: Cli, script: Path) -> None:
    made = cli("tune", str(script), "--target", "trn2", "--schedule")
    assert made.status == 0, made
    assert "2 of 2 variants tried" in made.out and "\n+ --schedule\n" in made.out
    found = json.loads(cli("tune", str(script), "--target", "trn2", "--schedule", "--json").out)["result"]
    assert found["parameters"] == {"--schedule": ["off", "on"]}
    times = {one["values"]["--schedule"]: one["time_ps"] for one in found["trials"]}
    assert times["on"] == found["best"]["time_ps"] < times["off"] == found["baseline"]["time_ps"]
    without = cli("tune", str(script), "--target", "trn2")
    assert without.status == 4 and "--schedule" in without.err, without
