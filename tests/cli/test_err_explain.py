"""`neurontools err explain`: codes, names, lines, logs, and what is none of them."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.nrt.logs import OOB, STATUS, infodump


@pytest.mark.parametrize("words", [["1006"], ["NRT_EXEC_OOB"], ["nrt_exec_oob"], ["NRT_OOB"]])
def test_a_status(cli: Cli, words: list[str]) -> None:
    ended = cli("err", "explain", *words)
    assert ended.status == 0 and ended.err == ""
    lines = ended.out.splitlines()
    assert lines[0] == "NRT_EXEC_OOB (1006)"
    heads = (
        "  means     An indirect copy",
        "  cause     An index",
        "  next      `neuron-dump why FILE`",
        "  counter   status/oob (sysfs)",
        "  dump      neuron-dump why FILE",
        "  source    AWS Neuron",
    )
    for head in heads:
        assert any(line.startswith(head) for line in lines), head
    result = checked_json(cli("err", "explain", *words, "--json"), "err explain")
    assert result["kind"] == "code" and result["errors"][0]["code"] == 1006


def test_a_line_gives_its_message_and_its_values(cli: Cli) -> None:
    result = checked_json(cli("err", "explain", OOB, "--json"), "err explain")
    assert result["kind"] == "line" and result["line"]["module"] == "TDRV"
    assert result["errors"][0]["name"] == "oob-instruction" and result["errors"][0]["values"]["instruction"] == "11"
    assert cli("err", "explain", *STATUS.split()).out.startswith("NRT_EXEC_OOB (1006)")  # unquoted, too


def test_a_log_gives_the_first_error_first(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "nrt.log"
    log.write_text("\n".join([STATUS, OOB, *infodump()]))
    ended = cli("err", "explain", log)
    assert ended.status == 0
    assert "first: line 2, process 4444: " in ended.out and "nrt_infodump at line 3" in ended.out
    result = checked_json(cli("err", "explain", log, "--json"), "err explain")
    assert result["kind"] == "log" and result["errors"][0]["name"] == "oob-instruction"
    assert result["log"] == {
        "lines": 2 + len(infodump()), "recognised": 2 + len(infodump()), "processes": [4444],
        "first_error": "2025-09-19T18:57:20.782962+00:00",
    }  # fmt: skip
    assert result["infodumps"][0]["fields"]["instance_id"] == "i-0b514eadc4fec7de6"


def test_a_log_on_standard_input(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"\xff\n" + "\n".join([STATUS, OOB, *infodump()]).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text), "ascii"))
    ended = cli("err", "explain", "-", "--json")
    result = checked_json(ended, "err explain")
    assert ended.json["inputs"] == {"what": "-"} and result["kind"] == "log"
    assert result["log"]["lines"] == 3 + len(infodump()) and result["errors"][0]["line"] == 3


@pytest.mark.parametrize("length", [255, 256, 259, 5000])
def test_a_line_of_any_length_is_text(cli: Cli, length: int) -> None:
    line = OOB.ljust(length, ".")[-length:]
    ended = cli("err", "explain", line)
    assert ended.status in (0, 4) and "file name too long" not in ended.err
    assert cli("err", "explain", f"NRT_EXEC_OOB {line}").out.count("NRT_EXEC_OOB (1006)")
    assert cli("err", "explain", "x" * length).status == 4
    assert "no such file" in cli("err", "explain", f"/{'x' * length}").error_line


def test_other_files(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 4000)
    (tmp_path / "empty").write_bytes(b"")
    for name in ("noise", "empty"):
        ended = cli("err", "explain", tmp_path / name)
        assert ended.status == 0 and "no error that is known" in ended.out
    missing = cli("err", "explain", tmp_path / "gone.log")
    assert missing.status == 4 and "gone.log: no such file" in missing.error_line


def test_what_is_not_known(cli: Cli) -> None:
    ended = cli("err", "explain", "NRT_EXEC_OOBB")
    assert ended.status == 4 and "did you mean NRT_EXEC_OOB" in ended.error_line
    assert cli("err", "explain", "all", "is", "well").status == 4
    assert cli("err", "explain", "4711").status == 4
    failed = cli("err", "explain", "4711", "--json")
    assert failed.json["error"]["kind"] == "not-found"
    checked_json(failed, "err explain")
    assert cli("err", "explain").status == 2


def test_compiler_and_kernel_errors(cli: Cli) -> None:
    assert cli("err", "explain", "[NCC_EVRF036] something").out.startswith("NCC_EVRF036\n")
    line = "NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-1 nc-id=3 action=TERMINATE_INSTANCE"
    assert "Replace the instance" in cli("err", "explain", line).out


def _failing_rank(folder: Path, rank: int, fault: str) -> None:
    """Let a session of its own write the log of a rank, as the runtime writes it."""
    from tests.runtime.support import Session, copying

    session = Session({"NEURONTOOLS_INJECT": fault, "NEURON_RT_VISIBLE_CORES": str(rank)})
    model = session.runtime.load(copying())
    with pytest.raises(Exception, match="NRT_"):
        session.runtime.execute(model, *session.sets(model))
    (folder / f"rank{rank}.log").write_text("\n".join(session.lines))


def test_logs_of_many_ranks_are_one_timeline(cli: Cli, tmp_path: Path) -> None:
    """Ranks 0 and 1 wait in a collective for rank 2, whose HBM failed, and give up before it says so."""
    for rank, fault in ((0, "collectives-hang"), (1, "hang"), (2, "hbm-ue")):
        _failing_rank(tmp_path, rank, fault)
    names = [str(tmp_path / f"rank{rank}.log") for rank in range(3)]
    result = checked_json(cli("err", "explain", *names, "--json"), "err explain")
    first = result["errors"][0]
    assert (first["code"], first["log"]) == (1201, names[2])
    times = [error["time"] for error in result["errors"][1:]]
    assert times == sorted(times) and {error["log"] for error in result["errors"]} == set(names)
    assert result["log"]["files"] == names
    assert [block["status"] for block in result["infodumps"]] == [
        "NRT_EXEC_HW_ERR_COLLECTIVES", "NRT_TIMEOUT", "NRT_EXEC_HW_ERR_HBM_UE",
    ]  # fmt: skip
    assert all(block["whole"] for block in result["infodumps"])
    text = cli("err", "explain", tmp_path).out
    assert text.startswith("3 logs, ") and f"{names[2]} line 1, process " in text.split("first: ")[1].splitlines()[0]
    # Alone, a hang is what the log says.
    alone = checked_json(cli("err", "explain", names[0], "--json"), "err explain")
    assert alone["errors"][0]["code"] == 1200 and "files" not in alone["log"]


def test_a_folder_without_logs(cli: Cli, tmp_path: Path) -> None:
    assert cli("err", "explain", tmp_path).status == 4
