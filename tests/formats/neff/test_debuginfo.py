"""The wire format, and the chain from a word to a line with its levels in other shapes than ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.neff.debug_writer import DebugEntry, DebugWriter
from formats.neff.debuginfo import DebugFile, SourceLocation, locate
from formats.neff.wire import packed, read_fields, unpack_varints, write_bytes, write_varint

u64 = st.integers(0, 2**64 - 1)
message = st.lists(st.tuples(st.integers(1, 1 << 20), st.one_of(u64, st.binary(max_size=40))), max_size=8)


@given(message)
def test_messages_round_trip(fields: list[tuple[int, int | bytes]]) -> None:
    data = b"".join(write_varint(n, v) if isinstance(v, int) else write_bytes(n, v) for n, v in fields)
    assert list(read_fields(data, "x")) == fields


@given(st.lists(u64, min_size=1))
def test_packed_numbers_round_trip(numbers: list[int]) -> None:
    ((field, value),) = read_fields(packed(3, numbers), "x")
    assert field == 3 and unpack_varints(value, "x") == tuple(numbers)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_an_error(data: bytes) -> None:
    try:
        list(read_fields(data, "x"))
    except FormatError as error:
        assert str(error).startswith("x: 0x")


def test_fixed_numbers_and_unpacked_ids_are_read() -> None:
    data = bytes([1 << 3 | 1]) + (5).to_bytes(8, "little") + bytes([2 << 3 | 5]) + (6).to_bytes(4, "little")
    assert list(read_fields(data, "x")) == [(1, 5), (2, 6)]
    assert unpack_varints(9, "x") == (9,)


@pytest.mark.parametrize("data", [b"\x00", b"\x0b", b"\x0a\x05ab", b"\x09abc", b"\x08", b"\x08" + b"\xff" * 11])
def test_damaged_messages_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="debug info"):
        list(read_fields(data, "x"))


def entry(number: int, name: str = "", parents: tuple[int, ...] = (), **attributes: str) -> bytes:
    out = write_varint(1, number) + write_bytes(2, name) + packed(3, parents)
    for key, value in attributes.items():
        out += write_bytes(7, write_bytes(1, key) + write_bytes(2, value))
    return write_bytes(3, out)


def level(parent: str, *entries: bytes, strings: tuple[str, ...] = (), kernels: tuple[str, ...] = ()) -> DebugFile:
    data = write_bytes(1, "d") + write_bytes(2, parent) + b"".join(entries) + write_varint(4, 1)
    return DebugFile(
        data + b"".join(write_bytes(5, s) for s in strings) + b"".join(write_bytes(7, s) for s in kernels), parent
    )


def chain(*levels: DebugFile, pc: int = 0) -> SourceLocation | None:
    following = dict(zip([id(item) for item in levels], [*levels[1:], None], strict=True))
    return locate(levels[0], pc, lambda item: following[id(item)])


ASM = level("backend", entry(0, parents=(7,)))


def test_line_on_the_backend_level() -> None:
    backend = level("penguin", entry(7, "I-1", (3,), kernel_file="0", kernel_line="58"), strings=("k.py",))
    penguin = level("hlo", entry(3, "float32<1> $3"))
    assert chain(ASM, backend, penguin) == SourceLocation("k.py", 58, "I-1", "float32<1> $3")
    assert chain(ASM, backend) == SourceLocation("k.py", 58, "I-1")


def test_line_on_the_penguin_level_only() -> None:
    backend = level("penguin", entry(7, "I-1", (3,)))
    penguin = level("hlo", entry(3, "float32<1> $3", kernel_file="1", kernel_line="9"), strings=("a.py", "k.py"))
    assert chain(ASM, backend, penguin) == SourceLocation("k.py", 9, "I-1", "float32<1> $3")


def test_line_on_the_hlo_level_is_plain_text() -> None:
    backend, penguin = level("penguin", entry(7, "I-1", (3,))), level("hlo", entry(3, "t", (1,)))
    hlo = level("pttf", entry(1, "%dot", source_file="m.py", source_line="4"))
    assert chain(ASM, backend, penguin, hlo) == SourceLocation("m.py", 4, "I-1", "t")


def test_kernel_name_without_lines() -> None:
    backend = level("penguin", entry(7, "I-1", (3,)))
    penguin = level("hlo", entry(3, "t", kernel_name="0"), kernels=("attention",))
    assert chain(ASM, backend, penguin) == SourceLocation(None, None, "I-1", "t", "attention")


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_line": "9"},
        {"kernel_file": "0", "kernel_line": "x"},
        {"kernel_file": "5", "kernel_line": "1"},
        {"kernel_file": "-1", "kernel_line": "1"},
    ],
)
def test_attributes_that_name_no_line(attributes: dict[str, str]) -> None:
    backend = level("penguin", entry(7, "I-1", **attributes), strings=("k.py",))
    assert chain(ASM, backend) == SourceLocation(None, None, "I-1")


def test_broken_chains_end() -> None:
    assert chain(ASM) is None and chain(ASM, level("x", entry(8))) is None
    assert chain(ASM, pc=1) is None and chain(ASM, pc=-1) is None
    circle = level("backend", entry(7, "I-1", (7,)))
    assert locate(circle, 0, lambda item: circle) == SourceLocation(None, None, "I-1", "I-1")


def test_writer_and_reader_agree() -> None:
    writer = DebugWriter(1)
    entries = [
        None,
        DebugEntry("w", "f.py", 3),
        DebugEntry("w", "f.py", 3),
        DebugEntry("v", "g.py", 4, "t"),
        DebugEntry("u"),
    ]
    writer.engine("DVE", entries)
    asm = DebugFile(writer.local["debug_info_asm_DVE.dbg"], "asm")
    backend = DebugFile(writer.local["debug_info_backend_DVE.dbg"], "backend")
    penguin = DebugFile(writer.shared["debug_info/debug_info_penguin.dbg_sg000001"], "penguin")
    assert len(asm) == 5 and len(backend) == 3 and (asm.engine_id, backend.engine_id) == (5, 5)
    assert asm.parent == "debug_info_backend_DVE.dbg" and backend.parent == "debug_info_penguin.dbg"
    found = [chain(asm, backend, penguin, pc=pc) for pc in range(5)]
    place = SourceLocation("f.py", 3, "w")
    assert found == [None, place, place, SourceLocation("g.py", 4, "v", "t"), SourceLocation(None, None, "u")]


def test_entries_that_are_each_others_parents_do_not_double_with_every_level() -> None:
    entries = b"".join(write_bytes(3, write_varint(1, number) + packed(3, range(1, 41))) for number in range(1, 41))
    circle = DebugFile(write_bytes(2, "circle") + entries, "circle")
    assert locate(circle, 0, lambda level: circle) is None
