"""`pack(unpack(f)) == f`, every way a stream can be kept, and folders that somebody changed."""

from __future__ import annotations

import json
import os
import tarfile
import zlib
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.neff import open_neff, pack, unpack
from formats.neff.gzipstream import DeflateParameters, gzip_member

from .support import bare, contents, fixture, plain_tar, stdlib_tar, tarinfo, wrapped

GZIP = bytes.fromhex("1f8b0800000000000403")


def tar() -> bytes:
    return open_neff(fixture()).archive.tar.read(0, 1 << 30)


def gzipped(level: int, header: bytes = GZIP) -> bytes:
    return wrapped(gzip_member(header, tar(), DeflateParameters(level)) + bytes(77))


def foreign() -> bytes:
    """Return a file whose stream no setting of zlib makes: it was flushed in the middle."""
    stream = zlib.compressobj(6, zlib.DEFLATED, -15)
    content = tar()
    body = (
        stream.compress(content[:5000])
        + stream.flush(zlib.Z_SYNC_FLUSH)
        + stream.compress(content[5000:])
        + stream.flush()
    )
    return wrapped(GZIP + body + zlib.crc32(content).to_bytes(4, "little") + len(content).to_bytes(4, "little"))


def odd_tar() -> bytes:
    content = stdlib_tar(
        tarinfo("d", tarfile.DIRTYPE), tarinfo("d/" + "n" * 200), tarinfo("e"), format=tarfile.PAX_FORMAT
    )
    return wrapped(content + b"\0" * 512)


FILES = {
    "fixture": fixture,
    "lnc 2": lambda: fixture("idle_pair.neff"),
    "bare tar": bare,
    **{f"level {level}": lambda level=level: gzipped(level) for level in range(10)},
    "gzip with a name": lambda: gzipped(6, b"\x1f\x8b\x08\x08\1\2\3\4\2\3file.tar\0"),
    "bytes behind the stream": lambda: wrapped(gzip_member(GZIP, tar(), DeflateParameters(1)) + b"rubbish"),
    "bytes behind the data": lambda: fixture() + b"more",
    "data shorter than told": lambda: fixture()[:-100],
    "wrong hash": lambda: fixture()[:172] + b"\1" * 32 + fixture()[204:],
    "rubbish in the header": lambda: fixture()[:470] + b"x" + fixture()[471:1000] + b"y" + fixture()[1001:],
    "pax, directory, long end": odd_tar,
    "no end block": lambda: wrapped(plain_tar({"a": b"x" * 512})[:1024]),
    "padding with rubbish": lambda: wrapped(plain_tar({"a": b"x"})[:600] + b"y" + plain_tar({"a": b"x"})[601:]),
}


@pytest.mark.parametrize("case", FILES)
def test_unchanged_folder_gives_the_same_bytes(case: str, tmp_path: Path) -> None:
    data = FILES[case]()
    unpack(open_neff(data), tmp_path / "d")
    result = pack(tmp_path / "d", tmp_path / "out.neff")
    assert (tmp_path / "out.neff").read_bytes() == data
    assert result == (len(data), "unchanged")
    for name, content in contents(data).items():
        assert (tmp_path / "d" / name).read_bytes() == content


def test_stream_that_cannot_be_made_again_is_kept(tmp_path: Path) -> None:
    data = foreign()
    unpack(open_neff(data), tmp_path / "d")
    assert (tmp_path / "d/.neff/stream.gz").is_file()
    assert pack(tmp_path / "d", tmp_path / "out").method == "unchanged, stored stream"
    assert (tmp_path / "out").read_bytes() == data
    (tmp_path / "d/info.json").write_text("{}")
    assert pack(tmp_path / "d", tmp_path / "out").method == "changed"
    assert open_neff(tmp_path / "out").read("info.json") == b"{}"


def test_stream_of_another_zlib_is_said_to_differ(tmp_path: Path) -> None:
    unpack(open_neff(fixture()), tmp_path / "d")
    manifest = tmp_path / "d/.neff/manifest.json"
    document = json.loads(manifest.read_text())
    document["deflate"]["level"] = 9  # as if this zlib's level 1 made something else
    manifest.write_text(json.dumps(document))
    assert pack(tmp_path / "d", tmp_path / "out").method == "recompressed"
    assert contents((tmp_path / "out").read_bytes()) == contents(fixture())
    assert open_neff(tmp_path / "out").verify() == []


@pytest.mark.parametrize("make", [fixture, bare])
def test_changed_members(make: object, tmp_path: Path) -> None:
    unpack(open_neff(make()), tmp_path / "d")  # type: ignore[operator]
    (tmp_path / "d/sg00/value_raw.bin").write_bytes(b"r" * 9)
    (tmp_path / "d/sg00/tensor_map.json").unlink()
    (tmp_path / "d/extra").mkdir()
    (tmp_path / "d/extra/new.txt").write_bytes(b"new" * 300)
    (tmp_path / "d/info.json").write_bytes((tmp_path / "d/info.json").read_bytes() + b" " * 2000)
    assert pack(tmp_path / "d", tmp_path / "out").method == "changed"
    neff = open_neff(tmp_path / "out")
    expected = [m.name for m in open_neff(fixture()).members if m.name != "sg00/tensor_map.json"] + ["extra/new.txt"]
    assert [m.name for m in neff.members] == expected
    assert neff.read("extra/new.txt") == b"new" * 300 and neff.subgraphs[0].constant("raw") == b"r" * 9
    assert neff.verify() == []
    assert neff.header.uuid == open_neff(fixture()).header.uuid
    assert (neff.size - 1024) % 10240 == 0 or neff.archive.compression == "none"
    (tmp_path / "d/.neff/manifest.json").unlink()
    with pytest.raises(FormatError, match="manifest"):
        pack(tmp_path / "d", tmp_path / "out2")
    assert not (tmp_path / "out2").exists()


def test_changed_file_with_an_unknown_hash_gets_a_right_one(tmp_path: Path) -> None:
    unpack(open_neff(FILES["wrong hash"]()), tmp_path / "d")
    (tmp_path / "d/extra").write_bytes(b"")
    pack(tmp_path / "d", tmp_path / "out")
    assert open_neff(tmp_path / "out").verify() == []


def test_changed_member_behind_a_pax_header(tmp_path: Path) -> None:
    content = stdlib_tar(tarinfo("n" * 120 + "/x", tarfile.REGTYPE), tarinfo("é"), format=tarfile.PAX_FORMAT)
    unpack(open_neff(wrapped(content)), tmp_path / "d")
    (tmp_path / "d/é").write_bytes(b"longer")
    pack(tmp_path / "d", tmp_path / "out")
    assert contents((tmp_path / "out").read_bytes()) == {"n" * 120 + "/x": b"x", "é": b"longer"}


def test_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/mine").write_text("x")
    with pytest.raises(FormatError, match="not empty"):
        unpack(open_neff(fixture()), tmp_path / "d")
    assert [p.name for p in (tmp_path / "d").iterdir()] == ["mine"]
    unpack(open_neff(fixture()), (tmp_path / "empty"))


def test_places_that_cannot_be_written_are_format_errors(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be written"):
        unpack(open_neff(fixture()), tmp_path / "no" / "such")
    unpack(open_neff(fixture()), tmp_path / "d")
    with pytest.raises(FormatError, match="cannot be written"):
        pack(tmp_path / "d", tmp_path / "no" / "out.neff")
    with pytest.raises(FormatError):
        pack(tmp_path / "nothing", tmp_path / "out.neff")


def test_links_in_a_folder_are_refused(tmp_path: Path) -> None:
    unpack(open_neff(fixture()), tmp_path / "d")
    os.symlink("/etc/passwd", tmp_path / "d/link")
    with pytest.raises(FormatError, match="only files and folders"):
        pack(tmp_path / "d", tmp_path / "out")
    (tmp_path / "d/link").unlink()
    (tmp_path / "d/info.json").unlink()
    os.symlink("/etc/passwd", tmp_path / "d/info.json")
    with pytest.raises(FormatError, match="only files and folders"):
        pack(tmp_path / "d", tmp_path / "out")


@pytest.mark.parametrize(
    "edit",
    [
        lambda m: m.update(schema="x"),
        lambda m: m["members"][0].update(name="../../etc/passwd"),
        lambda m: m["members"][0].update(name="/etc/passwd"),
        lambda m: m["members"][0].update(lead=1 << 40),
        lambda m: m["members"][0].update(lead=-5),
        lambda m: m["members"][0].update(pad=-1),
        lambda m: m.pop("members"),
        lambda m: m.update(gzip_header="zz"),
        lambda m: m["deflate"].update(level=77),
        lambda m: m["deflate"].pop("memory"),
        lambda m: m["deflate"].update(memory=1 << 80),
        lambda m: m.update(hash="crc"),
    ],
)
def test_edited_manifest_gives_an_error_or_a_file(edit: object, tmp_path: Path) -> None:
    unpack(open_neff(fixture()), tmp_path / "d")
    path = tmp_path / "d/.neff/manifest.json"
    document = json.loads(path.read_text())
    edit(document)  # type: ignore[operator]
    path.write_text(json.dumps(document))
    (tmp_path / "d/info.json").write_text("{}")
    try:
        pack(tmp_path / "d", tmp_path / "out")
    except FormatError:
        assert not (tmp_path / "out").exists()
    else:
        assert set(contents((tmp_path / "out").read_bytes())) == set(contents(fixture()))
