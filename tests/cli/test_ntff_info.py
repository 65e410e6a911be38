"""`neurontools ntff info`."""

from __future__ import annotations

from pathlib import Path

from formats.neff.wire import write_varint
from tests.cli.captures import capture, refuses_bad_captures
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.formats.ntff.made import CoreSpec, begin
from tests.formats.ntff.made import capture as made


def test_what_a_capture_holds(cli: Cli, root: Path) -> None:
    result = checked_json(cli("ntff", "info", capture(root), "--json"), "ntff info")
    assert (result["version"], result["name"], result["target"]) == (6, "double", "trn2")
    (core,) = result["cores"]
    dve = next(one for one in core["engines"] if one["engine"] == "DVE")
    assert (dve["words"], dve["compiler_words"], dve["inserted"]) == (8, 3, 5)
    assert {"kind": "trace", "core": 0, "instance": 0, "records": 20} in result["sections"]
    text = cli("ntff", "info", capture(root)).out
    assert text.startswith("double.ntff: profile capture, version 6\n")
    assert "64-79" in text and "runtime   2.30.51 (0123abcd)" in text


def test_how_fields_are_known(cli: Cli, root: Path) -> None:
    ended = cli("ntff", "info", capture(root), "--layout")
    assert ended.status == 0 and "observed" in ended.out and "time in picoseconds" in ended.out


def test_what_is_not_understood_is_told(cli: Cli, tmp_path: Path) -> None:
    core = CoreSpec("sg00", 0, {"DVE": bytes(64 + 3)}, records={"trace": begin(0, "DVE", 0, 1000) + bytes(5)})
    odd = write_varint(99, 7)
    plain = made([core])
    size = int.from_bytes(plain[1:8], "little")
    at = 128 + size
    path = tmp_path / "odd.ntff"
    path.write_bytes(plain[:1] + (size + len(odd)).to_bytes(7, "little") + plain[8:at] + odd + plain[at:])
    result = checked_json(cli("ntff", "info", path, "--json"), "ntff info")
    assert (result["unknown_fields"], result["cut_bytes"]) == (2, 8)  # the writer of tests leaves one
    text = cli("ntff", "info", path).out
    assert text.endswith("\n2 fields of the metadata not understood; 8 bytes of cut records or words left out\n")


def test_bad_files(cli: Cli, root: Path, tmp_path: Path) -> None:
    refuses_bad_captures(cli, "ntff info", root, tmp_path)
