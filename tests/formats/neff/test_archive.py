"""gzip and tar: caps, damage, foreign writers, and names that must not reach a disk."""

from __future__ import annotations

import gzip
import tarfile
import tracemalloc
import zlib
from pathlib import Path

import pytest

from formats.errors import FormatError, NotFoundError
from formats.neff import Limits, open_neff, unpack
from formats.neff.gzipstream import DeflateParameters, find_parameters, gzip_member, header_length, inflate
from formats.neff.tar import member_header, read_index, resized_header

from .support import SMALL, bare, fixture, plain_tar, stdlib_tar, tarinfo, wrapped

HEADER = bytes.fromhex("1f8b0800000000000403")
CONTENT = b"".join(i.to_bytes(3, "little") * (i % 7) for i in range(20_000))


@pytest.mark.parametrize("parameters", [(1, 8, 0), (6, 8, 0), (9, 9, 0), (5, 4, 1), (6, 8, 2), (6, 9, 3), (4, 8, 4)])
def test_parameters_that_make_a_stream_are_found(parameters: tuple[int, int, int]) -> None:
    member = gzip_member(HEADER, CONTENT, DeflateParameters(*parameters))
    assert gzip.decompress(member) == CONTENT
    found = find_parameters(member, CONTENT)
    assert found is not None and gzip_member(HEADER, CONTENT, found) == member


def test_stream_of_another_compressor_has_no_parameters() -> None:
    flushing = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = flushing.compress(CONTENT[:5000]) + flushing.flush(zlib.Z_FULL_FLUSH)
    body += flushing.compress(CONTENT[5000:]) + flushing.flush()
    member = HEADER + body + zlib.crc32(CONTENT).to_bytes(4, "little") + len(CONTENT).to_bytes(4, "little")
    assert inflate(member, 1 << 20)[0] == CONTENT
    assert find_parameters(member, CONTENT) is None


@pytest.mark.parametrize(
    ("flags", "extra"), [(0, b""), (4, b"\x03\x00abc"), (8, b"name\0"), (28, b"\x01\x00zname\0comment\0")]
)
def test_optional_gzip_fields_are_skipped(flags: int, extra: bytes) -> None:
    header = HEADER[:3] + bytes([flags]) + HEADER[4:] + extra
    member = gzip_member(header, CONTENT, DeflateParameters(1))
    assert header_length(member) == len(header)
    assert inflate(member + b"tail", 1 << 20) == (bytearray(CONTENT), len(member))


def test_inflating_stops_at_the_cap() -> None:
    member = gzip_member(HEADER, CONTENT, DeflateParameters(9))
    assert len(inflate(member, len(CONTENT))[0]) == len(CONTENT)
    with pytest.raises(FormatError, match="more than its limit"):
        inflate(member, len(CONTENT) - 1)


def test_bomb_is_refused_in_bounded_memory() -> None:
    bomb = wrapped(gzip_member(HEADER, bytes(64 << 20), DeflateParameters(9)))
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="inflates to more than its limit"):
            list(open_neff(bomb, SMALL).members)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_ratio_is_the_cap_of_big_files_and_can_be_raised() -> None:
    data = wrapped(gzip_member(HEADER, plain_tar({"zeros": bytes(300_000)}), DeflateParameters(9)))
    tight = Limits(floor=0, ratio=10)
    with pytest.raises(FormatError, match="inflates to more"):
        list(open_neff(data, tight).members)
    assert open_neff(data, tight._replace(ratio=2000)).members[0].size == 300_000


def test_too_many_and_too_big_members_are_refused() -> None:
    data = wrapped(plain_tar({str(i): b"x" for i in range(20)}))
    assert len(open_neff(data, Limits(members=20)).members) == 20
    with pytest.raises(FormatError, match="too many members"):
        list(open_neff(data, Limits(members=19)).members)
    with pytest.raises(FormatError, match="over the size limit"):
        list(open_neff(wrapped(plain_tar({"a": b"xx"})), Limits(member_size=1)).members)


def test_damaged_stream_is_refused() -> None:
    data = bytearray(fixture())
    data[1024 + 200] ^= 0x40
    with pytest.raises(FormatError, match="gzip stream is damaged"):
        list(open_neff(bytes(data)).members)


def test_neither_gzip_nor_tar_is_refused() -> None:
    with pytest.raises(FormatError, match="neither gzip nor tar"):
        list(open_neff(wrapped(b"\x28\xb5\x2f\xfd" + bytes(2000))).members)


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tars_of_the_standard_library_are_read(format: int) -> None:
    names = ["short", "d" * 60 + "/" + "f" * 80]
    if format != tarfile.USTAR_FORMAT:
        names.append("/".join(["e" * 90] * 4))
    neff = open_neff(wrapped(stdlib_tar(*map(tarinfo, names), format=format)))
    assert [m.name for m in neff.members] == names
    assert all(neff.read(name) == b"x" for name in names)


def test_own_headers_are_read_by_the_standard_library(tmp_path: Path) -> None:
    names = ["a", "p" * 120 + "/" + "f" * 99]
    (tmp_path / "t.tar").write_bytes(plain_tar(dict.fromkeys(names, b"content")))
    with tarfile.open(tmp_path / "t.tar") as tar:
        for member in tar.getmembers():
            assert (member.mode, member.uname, member.mtime) == (0o664, "nobody", 0)
        assert tar.getnames() == names


def test_resized_header_keeps_what_it_does_not_change() -> None:
    block = member_header("name", 5)
    assert resized_header(resized_header(block, 700), 5) == block


def test_names_too_long_for_ustar_are_refused() -> None:
    for name in ("n" * 101, "p" * 156 + "/x", "a/" + "n" * 101):
        with pytest.raises(FormatError, match="too long"):
            member_header(name, 0)


def test_base_256_size_is_understood() -> None:
    block = bytearray(member_header("big", 0))
    block[124:136] = b"\x80" + (3).to_bytes(11, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    neff = open_neff(wrapped(bytes(block) + b"abc" + bytes(509 + 1024)))
    assert neff.read("big") == b"abc"


@pytest.mark.parametrize("record", [b"9 path=x", b"999 path=x\n", b"x path=y\n", b"0 \n", b"-5 p=1\n"])
def test_damaged_pax_record_is_refused(record: bytes) -> None:
    block = bytearray(member_header("pax", len(record)))
    block[156:157] = b"x"
    data = resized_header(bytes(block), len(record)) + record.ljust(512, b"\0") + plain_tar({"a": b""})
    with pytest.raises(FormatError, match="pax record"):
        list(open_neff(wrapped(data)).members)


def test_tar_damage_is_refused() -> None:
    data = bytearray(bare())
    data[1024 + 5] ^= 1
    with pytest.raises(FormatError, match="checksum"):
        list(open_neff(bytes(data)).members)
    with pytest.raises(FormatError, match="not an octal number"):
        block = bytearray(plain_tar({"a": b""}))
        block[124:136] = b"00000000009 "
        list(open_neff(wrapped(resized_checksum(block))).members)


def resized_checksum(block: bytearray) -> bytes:
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block[:512])
    return bytes(block)


def test_missing_member_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="no member 'nothing'"):
        open_neff(fixture()).read("nothing")


UNSAFE = {
    "absolute": [tarinfo("/etc/passwd")],
    "dot dot": [tarinfo("sg00/../../x")],
    "dot": [tarinfo("./x")],
    "empty part": [tarinfo("a//b")],
    "symbolic link": [tarinfo("link", tarfile.SYMTYPE, "/etc")],
    "hard link": [tarinfo("link", tarfile.LNKTYPE, "x")],
    "character device": [tarinfo("null", tarfile.CHRTYPE)],
    "block device": [tarinfo("disk", tarfile.BLKTYPE)],
    "fifo": [tarinfo("pipe", tarfile.FIFOTYPE)],
    "second member": [tarinfo("same"), tarinfo("same")],
    "file and a folder": [tarinfo("a"), tarinfo("a/b")],
    "folder and a file": [tarinfo("a/b"), tarinfo("a")],
    "backslash": [tarinfo("a\\..\\b")],
    "drive": [tarinfo("C:x")],
    "control": [tarinfo("a\nb")],
    "directory that leads out": [tarinfo("../d", tarfile.DIRTYPE)],
    "folder is taken": [tarinfo(".neff/manifest.json")],
}


@pytest.mark.parametrize("case", UNSAFE)
def test_unsafe_archives_are_refused_before_anything_is_written(case: str, tmp_path: Path) -> None:
    neff = open_neff(wrapped(stdlib_tar(*UNSAFE[case])))
    with pytest.raises(FormatError, match="member is refused"):
        unpack(neff, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    if case != "folder is taken":
        assert any(p.where == "archive" and p.severity == "error" for p in neff.verify())


def test_directories_are_harmless(tmp_path: Path) -> None:
    neff = open_neff(wrapped(stdlib_tar(tarinfo("d", tarfile.DIRTYPE), tarinfo("d/x"))))
    assert [m.kind for m in neff.members] == ["directory", "file"]
    unpack(neff, tmp_path / "out")
    assert (tmp_path / "out/d/x").read_bytes() == b"x"


def test_index_reports_a_missing_end() -> None:
    neff = open_neff(wrapped(plain_tar({"a": b"content"})[:1024]))
    index = read_index(neff.archive.tar, Limits())
    assert not index.closed and neff.read("a") == b"content"
