"""Emulated runs call the collector as the runtime does; the dump alone then tells what went wrong."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from formats import isa
from formats.core import open_core
from formats.neff import EXTENDED_FEATURE
from formats.nrt.names import parse_directory, parse_file
from neurontools.dump.hook import DumpSettings
from neurontools.dump.program import main as neuron_dump
from tests.cli.check import checked_json
from tests.cli.conftest import Cli, cli  # noqa: F401 (a fixture)
from tests.dump.support import whole_dumps
from tests.emulator.dma_programs import gen3
from tests.nrt.infodumps import parse_infodumps

pytestmark = pytest.mark.usefixtures("clean")

KERNEL = """
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

ROWS, COLUMNS, TAKEN = 128, 64, 32

@nki.jit
def gather(table, indices):
    out = nl.ndarray((TAKEN, COLUMNS), dtype=table.dtype, buffer=nl.shared_hbm)
    rows = nl.ndarray((TAKEN, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=rows, src=indices)
    tile = nl.ndarray((TAKEN, COLUMNS), dtype=table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=table.ap(pattern=[[COLUMNS, TAKEN], [1, COLUMNS]], offset=0,
                  vector_offset=rows, indirect_dim=0))
    nisa.dma_copy(dst=out, src=tile)
    return out

indices = np.arange(TAKEN, dtype=np.int32).reshape(TAKEN, 1)
indices[7] = 99999
print(gather(np.ones((ROWS, COLUMNS), np.float32), indices).sum())
"""


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Start in an empty folder, without variables of a dump."""
    for name in list(os.environ):
        if name.startswith(("NEURON_RT_", "NEURONTOOLS_CLUSTER", "NEURONTOOLS_INSTANCE", "NEURONTOOLS_DUMP")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def _two_cores() -> bytes:
    """Return a file whose cores each wait for a signal that the other one gives only afterwards, at a barrier."""
    wait = isa.decode(isa.assemble("NOP S[9]>=1 cycle=0"))
    words = {"Activation": [wait, isa.CoreBarrier(semaphore=9, barrier_id=1)]}
    return gen3(words, more=[words], lnc=2, features=[EXTENDED_FEATURE]).to_bytes()


def _core_of(directory: Path) -> Path:
    return next(path for path in sorted(directory.iterdir()) if "-nd0-nc0-" in path.name)


def test_a_gather_out_of_bounds(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]  # noqa: F811
) -> None:  # fmt: skip
    monkeypatch.setenv("NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY", str(tmp_path / "dumps" / "dt-%d-cid-%c"))
    monkeypatch.setenv("NEURON_RT_LOG_LEVEL", "INFO")
    (tmp_path / "gather.py").write_text(KERNEL)
    ended = cli("run", "gather.py", "--json")
    assert ended.status == 5
    result = checked_json(ended, "run")
    (launch,) = result["launches"]
    assert launch["fault"]["status"] == {"name": "NRT_EXEC_OOB", "code": 1006}
    directory = Path(launch["dump"])
    named = parse_directory(directory.name)
    assert named is not None and named.cluster == "0" * 16 and named.time is not None
    assert whole_dumps(directory) == {os.getpid()}
    kinds = sorted(parsed.kind for path in directory.iterdir() if (parsed := parse_file(path.name)) is not None)
    assert kinds == ["core", "log", "manifest"] and len(list(directory.iterdir())) == 3
    (log,) = directory.glob("i-emulated-nrt-pid-*.log")
    (block,) = parse_infodumps(log.read_text().splitlines())
    assert (block.status, block.call, block.whole) == ("NRT_EXEC_OOB", "nrt_execute", True)
    assert block.environment["NEURON_RT_LOG_LEVEL"] == "INFO"
    # The dump alone names instruction, line, index and limit.
    (tmp_path / "gather.py").unlink()
    core = open_core(_core_of(directory))
    assert core.status.code == 1006 and core.error_location == "nrt_execute"
    assert core.fault is not None and core.fault.source is not None
    line = next(n for n, text in enumerate(KERNEL.splitlines(), 1) if "vector_offset" in text) - 1
    assert core.fault.source.line == line
    capsys.readouterr()
    assert neuron_dump(["why", str(_core_of(directory))]) in (0, 1)
    text = capsys.readouterr().out
    for word in ("gather.py", f":{line}", "99999", "127", "NRT_EXEC_OOB", "1006"):
        assert word in text, text


def test_two_cores_that_wait_for_each_other(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]  # noqa: F811
) -> None:  # fmt: skip
    path = tmp_path / "two.neff"
    path.write_bytes(_two_cores())
    ended = cli("run", path, "--dump-dir", tmp_path / "dumps", "--json")
    assert ended.status == 5
    directory = Path(checked_json(ended, "run")["dump"])
    names = sorted(path.name for path in directory.iterdir() if "-nd0-nc" in path.name)
    assert [name.split("-pid-")[0] for name in names] == ["i-emulated-nd0-nc0", "i-emulated-nd0-nc1"]
    for name in names:  # each file tells of both
        capsys.readouterr()
        assert neuron_dump(["why", str(directory / name), "--json"]) in (0, 1)
        text = capsys.readouterr().out
        assert json.loads(text)["schema"] == "neurontools.core.why/1"
        core = open_core(directory / name)
        assert {(wait.core, wait.engine) for wait in core.waits.waits} == {(0, "Activation"), (1, "Activation")}
        assert core.waits.cycles == (((0, "Activation"), (1, "Activation")),)
        assert "nc0 Activation" in text and "nc1 Activation" in text


def test_nothing_is_written_when_all_is_well(cli: Cli, tmp_path: Path, root: Path) -> None:  # noqa: F811
    ended = cli("run", root / "examples" / "vector_add.py", "--dump-dir", tmp_path / "dumps", "--json")
    assert ended.status == 0 and checked_json(ended, "run")["launches"][0]["dump"] is None
    assert not (tmp_path / "dumps").exists()


def test_a_script_of_ones_own_is_called(cli: Cli, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    script = tmp_path / "mine"
    script.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"json.dump([sys.argv[1:], os.path.getsize(os.environ['NEURONTOOLS_CORE_FILE'])], open('called', 'w'))\n"
        "print('trouble', file=sys.stderr)\nsys.exit(9)\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("NEURONTOOLS_NEURON_DUMP", str(script))
    monkeypatch.setenv("NEURONTOOLS_CLUSTER_ID", "00ab00cd00ef0011")
    monkeypatch.setenv("NEURONTOOLS_INSTANCE_ID", "i-0123")
    monkeypatch.setenv("NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY", "")
    monkeypatch.setenv("NEURON_RT_S3_CORE_DUMP_PREFIX", "s3://b/%c/%i/%p-%t-%l")
    ended = cli("run", root / "examples" / "deadlock.s", "--json")
    assert ended.status == 5  # the script's own failure changes nothing
    assert f"{script} ended with status 9" in ended.json["warnings"] and "trouble" in ended.json["warnings"]
    arguments, size = json.loads((tmp_path / "called").read_text())
    pairs = dict(zip(arguments[::2], arguments[1::2], strict=True))
    assert list(pairs) == [
        "--neff-name", "--neff-uuid", "--date-time", "--pid", "--tid", "--log-id", "--instance-id", "--cluster-id",
        "--error-location", "--error-code", "--local-output-dir", "--s3-output-prefix",
    ]  # fmt: skip
    assert pairs["--error-code"] == "5" and pairs["--error-location"] == "nrt_execute"
    assert pairs["--local-output-dir"] == "" and pairs["--neff-name"] == "deadlock" and len(pairs["--neff-uuid"]) == 32
    ids = f"{pairs['--pid']}-{pairs['--tid']}-{pairs['--log-id']}"
    assert pairs["--s3-output-prefix"] == f"s3://b/00ab00cd00ef0011/i-0123/{ids}"
    assert len(pairs["--date-time"].split("-")) == 5 and size > 1000


def test_a_script_that_is_not_there_is_a_warning(
    cli: Cli, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    monkeypatch.setenv("NEURONTOOLS_NEURON_DUMP", str(tmp_path / "none"))
    ended = cli("run", root / "examples" / "deadlock.s", "--dump-dir", tmp_path / "dumps")
    assert ended.status == 5 and "no dump: " in ended.err


def test_which_variables_ask_for_a_dump() -> None:
    local, prefix = "NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY", "NEURON_RT_S3_CORE_DUMP_PREFIX"
    assert DumpSettings.of({}) is None
    assert DumpSettings.of({local: "", prefix: ""}) is None  # both empty disable
    assert DumpSettings.of({local: "/d"}) == DumpSettings("/d", "")
    assert DumpSettings.of({prefix: "s3://b"}) == DumpSettings("/tmp/neuron-core-dump/dt-%d-cid-%c", "s3://b")
    assert DumpSettings.of({local: "", prefix: "s3://b"}) == DumpSettings("", "s3://b")
    assert DumpSettings.of({local: "/d"}, Path("/e")) == DumpSettings("/e/dt-%d-cid-%c", "")
