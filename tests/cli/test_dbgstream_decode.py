"""`neurontools dbgstream decode`: events come back as they were, damage is named by its offset."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from formats.debug_events import DebugEvent
from formats.debug_stream_files import EventReader, read_events, write_events
from formats.errors import FormatError
from neurontools.dbgstream.events import event_line, event_row
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def made(seed: int = 0) -> list[DebugEvent]:
    """Return events of several types and shapes."""
    rng = np.random.default_rng(seed)
    # A length of zero ends a shape on the wire, so no empty tensor is among them.
    arrays = [
        rng.standard_normal((2, 3)).astype(np.float32),
        np.arange(20, dtype=np.int8),
        rng.standard_normal(4).astype(ml_dtypes.bfloat16),
        np.ones((1, 2, 1, 3), np.float16),
        np.array([np.inf, np.nan], np.float32),
    ]
    return [DebugEvent(f"e{n}: ", n, 1 + n % 2, a.dtype.name, a.shape, a.tobytes()) for n, a in enumerate(arrays)]


def test_events_come_back(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(b"".join(write_events(made())))
    assert list(read_events(path.read_bytes())) == made()
    result = checked_json(cli("dbgstream", "decode", path, "--save", tmp_path / "out", "--json"), "dbgstream decode")
    assert [row["pipe"] for row in result["events"]] == ["output", "error", "output", "error", "output"]
    assert result["events"][4]["values"] == ["inf", "nan"] and len(result["events"][1]["values"]) == 8
    assert (np.load(tmp_path / "out" / "event-2.npy") == np.arange(20)).all()
    expected = np.frombuffer(made()[2].data, ml_dtypes.bfloat16).astype(np.float32)
    assert (np.load(tmp_path / "out" / "event-3.npy") == expected).all()
    assert "e1: int8[20]: 0 1 2 3 4 5 6 7 ..." in cli("dbgstream", "decode", path).out


@pytest.mark.parametrize("seed", range(5))
def test_events_in_pieces_are_the_same(seed: int) -> None:
    data = b"".join(write_events(made(seed)))
    rng, reader, found, at = random.Random(seed), EventReader(), [], 0
    while at < len(data):
        step = rng.randint(1, 700)
        found += reader.feed(data[at : at + step])
        at += step
    assert found == made(seed) and reader.waiting == 0 and reader.offset == len(data)


def test_types_that_are_unknown_and_names_that_are_hostile(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "events"
    strange = [
        DebugEvent("\x1b[2Jx ", 0, 9, "object", (2,), b"12345678"),
        DebugEvent("y ", 0, 1, "float32", (9,), b"1234"),
    ]
    path.write_bytes(b"".join(write_events(strange)))
    ended = cli("dbgstream", "decode", path)
    assert ended.status == 0 and "\x1b" not in ended.out and "8 bytes" in ended.out and "4 bytes" in ended.out


@pytest.mark.parametrize(
    ("dtype", "data"),
    [("S4", b"abcd"), ("U1", b"a\0\0\0"), ("V4", b"abcd"), ("i4,i4", bytes(8)), ("datetime64[s]", bytes(8)),
     ("complex64", bytes(8)), ("m8", bytes(8)), ("i4,(", b"a"), ("finfo", bytes(8)), ("__doc__", b"a"),
     ("object", bytes(8))],
)  # fmt: skip
def test_what_no_core_prints_is_bytes(dtype: str, data: bytes) -> None:
    assert event_line(event_row(1, DebugEvent("", 0, 1, dtype, (1,), data))).endswith(f"{len(data)} bytes")


def test_values_in_short_are_exact() -> None:
    whole = np.array([16_777_217, -5], np.int32)
    row = event_row(1, DebugEvent("", 0, 1, "int32", (2,), whole.tobytes()))
    assert row.values == [16_777_217, -5] and event_line(row).endswith(": 16777217 -5")
    for many, end in ((8, " 1"), (9, " 1 ...")):
        row = event_row(1, DebugEvent("", 0, 1, "float32", (many,), np.ones(many, np.float32).tobytes()))
        assert event_line(row).endswith(end)


def test_damage(cli: Cli, tmp_path: Path) -> None:
    data = b"".join(write_events(made()))
    path = tmp_path / "events"
    first = len(b"".join(write_events(made()[:1])))
    for bad, offset in ((data[:-1], None), (data[:70], 0), (data[:first] + b"\x01" * 200, first),
                        (data[:8] + b"\x07" + data[9:], 0), (b"\xff" * 64, 0)):  # fmt: skip
        path.write_bytes(bad)
        ended = cli("dbgstream", "decode", path, "--json")
        assert ended.status == 3
        assert offset is None or ended.json["error"]["offset"] == offset
    rng = random.Random(3)
    for _ in range(300):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] = rng.randrange(256)
        with suppress(FormatError):
            list(read_events(bytes(changed)))
    assert cli("dbgstream", "decode", tmp_path / "missing").status == 4
