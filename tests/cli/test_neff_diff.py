"""`neurontools neff diff`."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats import isa
from formats.neff import open_neff
from formats.neff.tar import member_header, resized_header
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.formats.neff.support import contents, plain_tar, wrapped
from tests.formats.neff.test_understood import TRANSPOSE, descriptor, program


def test_a_file_is_the_same_as_itself(cli: Cli, program_file: Path) -> None:
    same = cli("neff", "diff", program_file, program_file)
    assert same.status == 0 and same.out.endswith("the same content\n")


def test_one_changed_word_is_shown(cli: Cli, root: Path, tmp_path: Path) -> None:
    """A file whose Scalar stream has one constant changed differs in that member, and in one place."""
    from formats.neff import pack, unpack

    path = root / "fixtures" / "neff" / "add_exp.neff"
    folder, changed = tmp_path / "parts", tmp_path / "changed.neff"
    unpack(open_neff(path), folder)
    stream = next(folder.rglob("Activation.bin"))
    data = bytearray(stream.read_bytes())
    at = next(i for i in range(0, len(data), 64) if data[i] == isa.Activate.OPCODE)
    data[at + isa.Activate.FIELDS["scale"].offset + 3] ^= 0x01
    stream.write_bytes(data)
    pack(folder, changed)
    found = cli("neff", "diff", path, changed, "--json", "--error-exitcode", "9")
    assert found.status == 9
    result = checked_json(found, "neff diff")
    assert [m for m in result["members"]["changed"] if m.endswith(".bin")] == ["sg00/Activation.bin"]
    (engine,) = result["subgraphs"][0]["engines"].values()
    (run,) = engine["runs"]
    assert run["kind"] == "replace" and run["lengths"] == [1, 1] and run["first"] != run["second"]
    text = cli("neff", "diff", path, changed)
    assert text.status == 1 and f"  - {run['first'][0]}" in text.out and f"  + {run['second'][0]}" in text.out
    assert cli("neff", "diff", path, changed, "--quiet").out == ""


def test_a_byte_that_no_text_shows_is_shown_in_braces(cli: Cli, root: Path, tmp_path: Path) -> None:
    """`run` refuses such a file, `verify` notes the byte, `diff` never prints the same line twice."""
    from formats.neff import pack, unpack

    path = root / "fixtures" / "neff" / "add_exp.neff"
    folder, changed = tmp_path / "parts", tmp_path / "changed.neff"
    unpack(open_neff(path), folder)
    stream = next(folder.rglob("Activation.bin"))
    data = bytearray(stream.read_bytes())
    at = next(i for i in range(0, len(data), 64) if data[i] == isa.Activate.OPCODE)
    data[at + 2] = 1
    stream.write_bytes(data)
    pack(folder, changed)
    text = cli("neff", "diff", path, changed).out.splitlines()
    (before,), (after,) = ([line[4:] for line in text if line.startswith(f"  {mark} ")] for mark in "-+")
    assert after == f"{before} {{flags=0x1}}"
    what = f"sg00/Activation pc {at // 64}: ACTIVATE byte 2 is 0x01: what flags means is not known"
    verified = cli("neff", "verify", changed)
    assert verified.status == 0 and what in verified.out
    ran = cli("run", changed)
    assert ran.status == 6 and what in ran.err


def test_transfers_are_compared(cli: Cli, tmp_path: Path) -> None:
    paths = [tmp_path / "one.neff", tmp_path / "two.neff", tmp_path / "three.neff"]
    items = [descriptor(), descriptor(**TRANSPOSE), descriptor(source_offset=512, source_sizes=(512, 63))]
    for path, item in zip(paths, items, strict=True):
        path.write_bytes(program(item))
    result = checked_json(cli("neff", "diff", paths[0], paths[1], "--json"), "neff diff")
    (graph,) = result["subgraphs"]
    (found,) = graph["transfers"]
    assert (found["queue"], found["block_id"], found["only_in"], found["descriptors"]) == ("qSPIO0", 0, "", [1, 1])
    assert "descriptor 0 transpose_op None -> WZXY" in found["changes"] and graph["differing_transfers"] == 1
    text = cli("neff", "diff", paths[0], paths[2]).out
    assert "sg00 DMA block 0 of qSPIO0:\n" in text and "descriptor 0 source_offset 0 -> 512" in text


def test_info_names_what_is_not_understood(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "new.neff"
    path.write_bytes(program(descriptor(extra={"surprise": 1})))
    found = "sg00/SP.json dma qSPIO0 0 descriptor 0: key 'surprise' with 1 is not known"
    assert checked_json(cli("neff", "info", path, "--json"), "neff info")["not_understood"] == [found]
    assert found in cli("neff", "info", path).out
    ran = cli("run", path)
    assert ran.status == 6 and found in ran.err


def test_bad_files(cli: Cli, tmp_path: Path, program_file: Path) -> None:
    refuses_bad_files(cli, "neff diff", tmp_path, program_file)


def test_what_runs_by_inference_is_said_wherever_a_user_looks(cli: Cli, tmp_path: Path) -> None:
    path, plain = tmp_path / "inferred.neff", tmp_path / "plain.neff"
    shape = {"op": "transpose", "transpose_op": "WZXY", "transpose_element_size": 4}
    path.write_bytes(program(descriptor(**shape, transpose_shape=(1, 4, 32, 64))))
    plain.write_bytes(program(descriptor(**shape, transpose_shape=(1, 1, 64, 128))))
    said = "WZXY over 1 x 4 blocks is executed block by block (inferred; formats.md 13)"
    where = "sg00/SP dma qSPIO0 0 descriptor 0"
    assert checked_json(cli("neff", "info", path, "--json"), "neff info")["inferred"] == [f"{where}: {said}"]
    assert said in cli("neff", "info", path).out
    assert f"{where}: {said}" in cli("neff", "verify", path).out
    for command in ("run", "check"):
        ran = cli(command, path, "--inputs", "zeros")
        assert ran.status == 0 and f"{where}: {said}" in ran.err
        assert "inferred" not in cli(command, plain, "--inputs", "zeros").err
    assert checked_json(cli("neff", "info", plain, "--json"), "neff info")["inferred"] == []


def test_a_folder_in_the_archive_is_no_content(cli: Cli, tmp_path: Path) -> None:
    data = program(descriptor())
    files, folder = contents(data), bytearray(member_header("sg00", 0))
    folder[156:157] = b"5"
    for name, extra in (("a.neff", b""), ("b.neff", resized_header(bytes(folder), 0))):
        (tmp_path / name).write_bytes(wrapped(extra + plain_tar(files), data))
    ended = cli("neff", "diff", tmp_path / "b.neff", tmp_path / "b.neff")
    assert ended.status == 0 and "the same content" in ended.out
    assert "- member sg00" in cli("neff", "diff", tmp_path / "b.neff", tmp_path / "a.neff").out


def test_streams_too_long_to_align_say_so(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from neurontools.neff import diff

    monkeypatch.setattr(diff, "_COMPARED", 0)
    for name, value in (("a.neff", 1), ("b.neff", 2)):
        data = program(descriptor())
        files = contents(data)
        files["sg00/SP.bin"] += isa.Nop(cycle=value).raw
        (tmp_path / name).write_bytes(wrapped(plain_tar(files), data))
    text = cli("neff", "diff", tmp_path / "a.neff", tmp_path / "b.neff").out
    assert ": too much differs to tell places apart" in text
