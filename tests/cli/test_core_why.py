"""`neurontools core why`."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.core import CoreWriter
from formats.core import records as r
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.dumps import dump, refuses_bad_dumps

GATHER = """
import nki.isa as nisa
import nki.language as nl
import nki

@nki.jit
def gather(table, indices):
    out = nl.ndarray((32, 64), dtype=table.dtype, buffer=nl.shared_hbm)
    rows = nl.ndarray((32, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=rows, src=indices)
    tile = nl.ndarray((32, 64), dtype=table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=table.ap(pattern=[[64, 32], [1, 64]], offset=0, vector_offset=rows, indirect_dim=0))
    nisa.dma_copy(dst=out, src=tile)
    return out

import numpy as np
indices = np.arange(32, dtype=np.int32).reshape(32, 1)
indices[7] = 99999
gather(np.ones((128, 64), np.float32), indices)
"""


def test_a_fault_names_instruction_line_index_and_limit(cli: Cli, fault_core: Path) -> None:
    result = checked_json(cli("core", "why", fault_core, "--json"), "core why")
    fault = result["fault"]
    assert (fault["pc"], fault["opcode"], fault["line"]) == (2, "TENSOR_TENSOR", "examples/out_of_bounds.s:15")
    assert "0x380ef" in fault["got"] and "0x37fff" in fault["expected"] and result["status"]["code"] == 1006
    assert [line["line"] for line in result["lines"]] == [14, 15, 16] and result["lines"][1]["here"]
    (wait,) = result["waits"]
    assert (wait["engine"], wait["cause"]) == ("Activation", "fault")
    assert wait["verdict"] == "nc0 DVE pc 2 would signal S[6], and its engine has faulted"
    text = cli("core", "why", fault_core).out
    for part in ("TENSOR_TENSOR S[6]++", "examples/out_of_bounds.s:15", "0x37ff0 to 0x380ef", "0x0 to 0x37fff"):
        assert part in text


def test_a_gather_names_the_index(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.py").write_text(GATHER)
    ended = cli("debug", "kernel.py", "--commands", "continue; save-core x.core light")
    assert ended.status == 5 and "x.core: light core dump" in ended.out
    result = checked_json(cli("core", "why", tmp_path / "x.core", "--json"), "core why")
    fault = result["fault"]
    assert (fault["tensor"], fault["line"].split("/")[-1]) == ("table", "kernel.py:12")
    assert "index 99999 in row 7" in fault["got"] and "indices 0 to 127" in fault["expected"]
    assert {wait["cause"] for wait in result["waits"]} == {"fault"}


def test_a_deadlock_names_both_sides(cli: Cli, hang_core: Path) -> None:
    result = checked_json(cli("core", "why", hang_core, "--json"), "core why")
    causes = {wait["engine"]: wait["cause"] for wait in result["waits"]}
    assert causes == {"Activation": "deadlock", "DVE": "deadlock", "Pool": "blocked"}
    assert result["cycles"] == [["nc0 Activation", "nc0 DVE"]] and result["roots"] == ["nc0 Activation", "nc0 DVE"]
    text = cli("core", "why", hang_core).out
    assert "cycle: nc0 Activation waits for nc0 DVE waits for nc0 Activation" in text
    assert "+1 from nc0 DVE pc 2 (examples/deadlock.s:23), blocked" in text


def test_what_finished_is_no_one_s_fault(cli: Cli, root: Path, tmp_path: Path) -> None:
    path = dump(root, "race", tmp_path / "x.core")
    assert "nothing faulted, and nobody waits" in cli("core", "why", path).out


def test_every_cause(cli: Cli, tmp_path: Path) -> None:
    def signal(state: str, owner: str = "PE", engine: str = "") -> r.SignalState:
        return r.SignalState(0, engine or owner, owner, 1, "NOP", state, 1)

    waits = [
        r.WaitState(0, "SP", 1, "NOP", number=1, need=1),
        r.WaitState(0, "DVE", 1, "NOP", number=2, need=3, present=1, signals=(signal("done"),), done=1),
        r.WaitState(0, "PE", 1, "NOP", number=3, need=3, present=4, overshoot=True),
        r.WaitState(0, "Pool", 1, "NOP", number=4, signals=(signal("running", "SP", "qIn"),), pending=1),
        r.WaitState(1, "SP", 1, "NOP", number=5, signals=(signal("queued", "DVE"),), pending=1),
        r.WaitState(1, "PE", 1, "NOP", number=6, signals=(signal("queued", "Activation"),), pending=1),
    ]
    with CoreWriter(tmp_path / "x.core") as writer:
        writer.note(r.DumpNote(outcome="hang", cores=2))
        writer.note(r.WaitsNote("deadlock", 5, tuple(waits)))
    result = checked_json(cli("core", "why", tmp_path / "x.core", "--json"), "core why")
    causes = [wait["cause"] for wait in result["waits"]]
    assert causes == ["never-signalled", "never-met", "overshoot", "transfer", "blocked", "running"]
    assert result["waits"][1]["verdict"] == "everything that signals S[2] has done so: after 1 signal it is 1"


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_dumps(cli, "core why", tmp_path)
