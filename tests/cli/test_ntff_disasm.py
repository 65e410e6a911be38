"""`neurontools ntff disasm`."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.neff import HEADER_SIZE, Header, open_neff
from neurontools.ntff.capture import capture_of
from tests.cli.captures import capture, neff, refuses_bad_captures
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.formats.neff.support import fixture
from tests.formats.ntff.made import capture as made


def test_loaded_words_with_the_compilers_pc_and_line(cli: Cli, root: Path, tmp_path: Path) -> None:
    ended = cli("ntff", "disasm", capture(root), "-e", "vector", "--neff", neff(root, tmp_path), "--json")
    result = checked_json(ended, "ntff disasm")
    (engine,) = result["engines"]
    assert engine["engine"] == "DVE" and ended.json["warnings"] == []
    assert [row["compiler_pc"] for row in engine["rows"]] == [None, None, None, 0, 1, 2, None, None]
    work = engine["rows"][5]
    assert work["text"].startswith("TENSOR_TENSOR S[6]++@complete op=ADD") and work["times"] == 1
    assert work["source"].endswith("double.s:16") and work["duration_ps"] > 0
    text = cli("ntff", "disasm", capture(root), "-e", "dve", "--neff", neff(root, tmp_path)).out
    assert "# fixtures/ntff/double.s:16" in text


def test_only_the_program_and_only_some_words(cli: Cli, root: Path) -> None:
    rows = cli("ntff", "disasm", capture(root), "--program", "--json").json["result"]["engines"]
    assert [len(one["rows"]) for one in rows] == [1, 3, 1, 3, 2]
    some = cli("ntff", "disasm", capture(root), "-e", "sp", "-s", 3, "-n", 2, "--json").json["result"]["engines"]
    assert [row["pc"] for row in some[0]["rows"]] == [3, 4]


def test_another_neff_is_noticed(cli: Cli, root: Path) -> None:
    ended = cli("ntff", "disasm", capture(root), "--neff", root / "fixtures" / "neff" / "add_exp.neff")
    assert "has the uuid" in ended.err


@pytest.mark.parametrize(("uuid", "told"), [(b"", True), (b"\7", True), (b"\7\x08", False), (b"\7\x08\0\x09", False)])
def test_a_capture_that_does_not_say_what_ran_is_no_match(tmp_path: Path, uuid: bytes, told: bool) -> None:
    """Captures may end the uuid at its first zero byte, and nowhere else; none at all matched every file."""
    data, whole = fixture(), b"\7\x08\0\x09".ljust(16, b"\1")
    ran = open_neff(Header.parse(data)._replace(uuid=whole).encode() + data[HEADER_SIZE:])
    path = tmp_path / "x.ntff"
    path.write_bytes(made([], "caf\u00e9\x1b.neff", uuid, version=5))
    ntff, odd = capture_of(ran, path)
    assert bool(odd) == told and ntff.name == "caf\u00e9\\x1b.neff"


def test_an_engine_that_does_not_exist(cli: Cli, root: Path) -> None:
    ended = cli("ntff", "disasm", capture(root), "-e", "gpu")
    assert ended.status == 2 and "'gpu' is none of pe, act, pool, dve, sp" in ended.err


def test_bad_files(cli: Cli, root: Path, tmp_path: Path) -> None:
    refuses_bad_captures(cli, "ntff disasm", root, tmp_path)
