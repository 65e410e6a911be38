"""`neurontools dbgstream record`: what a program prints, in the documented bytes."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.prints import X, written


def test_a_program_that_prints(cli: Cli, tmp_path: Path) -> None:
    neff, inputs = written(tmp_path)
    events = tmp_path / "events"
    ended = cli("dbgstream", "record", neff, "-o", events, "--inputs", inputs, "--json")
    result = checked_json(ended, "dbgstream record")
    assert ended.status == 0 and result["status"] == "NRT_SUCCESS"
    assert [row["prefix"] for row in result["events"]] == ["first: ", "again: "]
    data = events.read_bytes()
    # runtime.md 15: a header of 64 bytes, a payload of 1,024, the tensor; read here by the documented offsets.
    assert len(data) == result["bytes"] == 2 * (64 + 1024 + X.nbytes)
    size, kind = struct.unpack_from("<QI", data)
    assert (size, kind) == (1024 + X.nbytes, 1)
    payload = data[64 : 64 + size]
    assert payload[:512].rstrip(b"\0") == b"first: " and payload[520:536].rstrip(b"\0") == b"float32"
    assert struct.unpack_from("<8Q", payload, 536)[:3] == (2, 3, 0)
    assert struct.unpack_from("<Q", payload, 600) == (X.nbytes,)
    assert (np.frombuffer(payload[1024:], np.float32).reshape(2, 3) == X).all()


def test_a_program_that_prints_nothing(cli: Cli, root: Path, tmp_path: Path) -> None:
    ended = cli("dbgstream", "record", root / "fixtures" / "neff" / "add_exp.neff", "-o", tmp_path / "events")
    assert ended.status == 0 and (tmp_path / "events").read_bytes() == b"" and "0 events" in ended.out


def test_a_fault_and_bad_places(cli: Cli, root: Path, tmp_path: Path) -> None:
    ended = cli("dbgstream", "record", root / "examples" / "out_of_bounds.s", "-o", tmp_path / "events")
    assert ended.status == 5 and "NRT_EXEC_OOB" in ended.out
    assert cli("dbgstream", "record", tmp_path / "missing.neff", "-o", tmp_path / "events").status == 4
    assert cli("dbgstream", "record", root / "examples" / "deadlock.s", "-o", tmp_path / "no" / "events").status == 4
