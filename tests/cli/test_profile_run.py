"""`neurontools profile`: the report, its JSON, comparisons, what-ifs, exports, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emulator.arch import arch_of
from formats.errors import FormatError
from neurontools.command.output import Report
from neurontools.profile import profiling
from neurontools.profile.compare import deltas
from neurontools.profile.results import LineDelta, LineRow
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli

KERNEL = """
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def twice(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out

for columns in COLUMNS:
    nki.simulate(twice)(np.ones((128, columns), np.float32))
"""


def kernel(folder: Path, *columns: int, name: str = "kernel.py") -> Path:
    path = folder / name
    path.write_text(KERNEL.replace("COLUMNS", repr(columns)))
    return path


def test_the_report(cli: Cli, tmp_path: Path) -> None:
    ended = cli("profile", kernel(tmp_path, 64), "--target", "trn2")
    assert ended.status == 0 and ended.err == ""
    assert ended.out.splitlines()[0].startswith("twice on trn2, 1 core: ")
    for text in ("(simulated)", "busy %", "critical path: ", "kernel.py:9", "qSPDynamicHW", "advice"):
        assert text in ended.out
    assert cli("profile", "run", kernel(tmp_path, 64), "--target", "trn2").out == ended.out


def test_json(cli: Cli, tmp_path: Path) -> None:
    result = checked_json(cli("profile", kernel(tmp_path, 64), "--json", "--what-if", "dma=2x"), "profile run")
    assert result["is_simulation"] is result["metadata"]["is_simulation"] is True
    assert result["critical_path"]["total_ns"] == result["total_time_ns"]
    links = result["critical_path"]["links"]
    assert links[0]["start_ns"] == 0 and links[-1]["end_ns"] == result["total_time_ns"]
    assert result["what_if"]["total_time_ns"] < result["what_if"]["before_ns"] == result["total_time_ns"]
    assert cli("profile", kernel(tmp_path, 64), "--format", "json").json["result"]["name"] == "twice"


def test_a_later_launch(cli: Cli, tmp_path: Path) -> None:
    script = kernel(tmp_path, 64, 512)
    first, second = (cli("profile", script, "--no-advice", "--json", "--launch", n).json["result"] for n in (1, 2))
    assert second["dma"]["bytes"] == 8 * first["dma"]["bytes"]
    missing = cli("profile", script, "--launch", 3)
    assert missing.status == 4 and "launched 2 kernels, not 3" in missing.error_line


def test_against_another_program_and_a_saved_profile(cli: Cli, tmp_path: Path) -> None:
    small, large = kernel(tmp_path, 64, name="small.py"), kernel(tmp_path, 512, name="large.py")
    saved = tmp_path / "small.json"
    saved.write_text(cli("profile", small, "--json").out)
    for other in (small, saved):
        found = checked_json(cli("profile", large, "--against", other, "--json"), "profile run")["against"]
        assert found["total_time_ns"] > found["before_ns"]
        assert {"large.py:9", "small.py:9"} <= {one["line"] for one in found["lines"]}
    equal = cli("profile", small, "--against", saved, "--json").json["result"]["against"]
    assert equal["lines"] == [] and equal["before_ns"] == equal["total_time_ns"]
    saved.write_text("{}")
    assert cli("profile", small, "--against", saved).status == 3


def test_against_a_run_that_did_not_finish_says_so(cli: Cli, root: Path, tmp_path: Path) -> None:
    deadlock, fine = root / "examples/deadlock.s", root / "examples/race.s"
    ended = cli("profile", fine, "--no-advice", "--against", deadlock)
    assert ended.status == 5 and "warning: deadlock.s: the run hung: deadlock at" in ended.err
    saved = tmp_path / "deadlock.json"
    cli("profile", deadlock, "--no-advice", "--format", "json", "--output", saved)
    ended = cli("profile", fine, "--no-advice", "--against", saved)
    assert ended.status == 0 and "is of a run that did not finish (hang): its times end there" in ended.err


def test_lines_of_files_of_one_name_are_compared_together() -> None:
    row = LineRow("kernel.py:3", "a/kernel.py", 5.0, 50.0, 4.0, 3.0, 2.0, 0, 1, 0, "vector COPY")
    other = row._replace(file="b/kernel.py", critical_ns=1.0)
    assert deltas([row, other], [row]) == (LineDelta("kernel.py:3", 1.0, 4.0, 3.0, 2.0),)


def what_if(cli: Cli, script: Path, change: str) -> float:
    found = cli("profile", script, "--target", "trn2", "--no-advice", "--json", "--what-if", change).json["result"]
    return float(found["what_if"]["total_time_ns"] - found["what_if"]["before_ns"])


def test_what_if(cli: Cli, tmp_path: Path) -> None:
    script = kernel(tmp_path, 2048)
    assert what_if(cli, script, "dma=1x") == 0
    assert what_if(cli, script, "pe=0") == 0  # no matmul
    both = what_if(cli, script, "dma_latency=2x,dma_bandwidth=2x,hbm=2x")
    assert both == what_if(cli, script, "dma=2x") < what_if(cli, script, "dma_bandwidth=2x") < 0
    assert what_if(cli, script, "vector_clock=1.92") == what_if(cli, script, "vector_clock=2x") < 0
    assert what_if(cli, script, "kernel.py:10=0") == what_if(cli, script, "TENSOR_TENSOR=0") < 0
    assert what_if(cli, script, "semaphore=0") < 0 < what_if(cli, script, "dma=0.5x")


def test_what_if_takes_every_name_of_an_engine(cli: Cli, tmp_path: Path) -> None:
    from emulator.timeline.change import CLOCKS
    from formats import isa, neff
    from formats.engines import ENGINE_ALIASES
    from neurontools.profile.what_if import parse_change

    assert set(ENGINE_ALIASES.values()) == set(isa.ENGINES) == set(neff.ENGINES)
    script = kernel(tmp_path, 64)
    assert what_if(cli, script, "dve=2x") == what_if(cli, script, "vector=2x") < 0
    arch = arch_of("trn2")
    for alias, engine in ENGINE_ALIASES.items():
        assert parse_change(f"{alias}=2x", arch).word is not None
        if engine != "SP":
            (clock,) = parse_change(f"{alias}_clock=2x", arch).clocks
            assert clock in CLOCKS


@pytest.mark.parametrize("change", ["dma", "dma=", "dma=2", "warp=2x", "dma=0x", "pe_clock=0", "=2x", "dma=-1x"])
def test_what_if_refuses(cli: Cli, tmp_path: Path, change: str) -> None:
    ended = cli("profile", kernel(tmp_path, 64), "--what-if", change)
    assert ended.status == 2 and "--what-if" in ended.error_line


def test_exports(cli: Cli, tmp_path: Path) -> None:
    script = kernel(tmp_path, 64)
    table = cli("profile", script, "--format", "csv").out.splitlines()
    assert table[0].startswith("start_ts,end_ts,duration_ns,engine,") and len(table) > 8
    trace = json.loads(cli("profile", script, "--format", "chrome").out)
    assert trace["otherData"]["is_simulation"] is True
    for form, name in (
        ("perfetto", "trace.pftrace"),
        ("chrome", "trace.json"),
        ("csv", "one.csv"),
        ("text", "a.txt"),
        ("json", "a.json"),
    ):
        ended = cli("profile", script, "--format", form, "--output", tmp_path / name)
        assert ended.status == 0 and ended.out == f"wrote {tmp_path / name}\n"
        assert (tmp_path / name).stat().st_size > 500
    assert cli("profile", script, "--format", "csv", "-o", tmp_path / "tables").status == 0
    assert "is_simulation" in (tmp_path / "tables" / "Metadata.csv").read_text()
    assert cli("profile", script, "--format", "csv", "-o", tmp_path / "tables").status == 2  # not over a full folder


def test_refusals(cli: Cli, tmp_path: Path) -> None:
    script = kernel(tmp_path, 64)
    assert cli("profile", script, "--format", "perfetto").status == 2
    assert cli("profile", script, "--format", "svg").status == 2
    assert cli("profile", script, "--inputs", script).status == 2
    nothing = tmp_path / "nothing.py"
    nothing.write_text("x = 1\n")
    assert cli("profile", nothing).status == 4
    assert cli("profile").status == 2
    refuses_bad_files(cli, "profile run", tmp_path)


def test_a_run_that_does_not_finish(cli: Cli, root: Path) -> None:
    hung = cli("profile", root / "examples" / "deadlock.s", "--json")
    assert hung.status == 5 and any("hung" in text for text in hung.json["warnings"])
    assert checked_json(hung, "profile run")["outcome"] == "hang"
    assert cli("profile", root / "examples" / "out_of_bounds.s").status == 5


def test_a_neff_without_inputs_runs_on_zeros(cli: Cli, root: Path) -> None:
    ended = cli("profile", root / "fixtures" / "neff" / "add_exp.neff", "--no-advice")
    assert ended.status == 0 and "were not given; they are all zeros" in ended.err and "trn" in ended.out


@pytest.mark.parametrize(
    "change",
    [{"total_time_ns": float("inf")}, {"total_time_ns": "5"}, {"total_time_ns": 10**400}, {"name": 5}, {"lines": 5},
     {"lines": [5]}, {"lines": [{}]}, {"dma_bytes": -1}, {"busy_ns": float("nan")}, {"line": []}, {"outcome": 5}],
)  # fmt: skip
def test_values_of_a_saved_profile_are_checked(tmp_path: Path, change: dict[str, Any]) -> None:
    saved = tmp_path / "saved.json"
    row = dict.fromkeys(("critical_ns", "critical_percent", "busy_ns", "wait_ns", "dma_ns"), 1.0)
    counts = dict.fromkeys(("dma_bytes", "instruction_count", "transfer_count"), 1)
    line = {"line": "x:1", "file": "x", "what": "dma", **row, **counts}
    whole = {"name": "x", "outcome": "finished", "total_time_ns": 5.0, "lines": [line]}
    out = Report("profile run", True, {})
    saved.write_text(json.dumps({"result": whole}))
    assert profiling._saved(saved, out)[:2] == ("x", 5.0)
    inner = {key: value for key, value in change.items() if key in line}
    saved.write_text(json.dumps({**whole, **({"lines": [{**line, **inner}]} if inner else change)}))
    with pytest.raises(FormatError, match="is no profile"):
        profiling._saved(saved, out)
