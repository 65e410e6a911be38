"""Looking: memory by every kind of address, tensors and tiles with slices, source, words, the `info` views."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError, NotFoundError
from formats.neff import open_neff, pack, unpack
from neurontools.debugger import Session, UsageError
from neurontools.debugger.commands.carry_out import carry_out
from neurontools.debugger.memory import parse_format
from neurontools.debugger.tensors import parse_index

X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
TILE = {
    "name": "acc", "space": "SBUF", "partition": 0, "partitions": 128, "offset": 0x5000, "shape": [128, 8, 8],
    "dtype": "float32", "pcs": {"DVE": [2, 2]},
}  # fmt: skip


@pytest.fixture
def session(program_file: Path) -> Session:
    """Return a session behind the addition of the doubling program."""
    made = Session(program_file, {"x": X}, timing=False)
    made.stepi("dve")
    made.stepi()
    made.stepi()
    return made


Tiled = Callable[[Any], Session]


@pytest.fixture
def tiled(program_file: Path, tmp_path: Path) -> Tiled:
    """Return a function that opens the doubling program with a tile map."""

    def make(tiles: Any) -> Session:
        unpack(open_neff(program_file), tmp_path / "parts")
        (graph,) = [path for path in (tmp_path / "parts").rglob("sg00") if path.is_dir()]
        (graph / "tiles.json").write_text(tiles if isinstance(tiles, str) else json.dumps(tiles))
        pack(tmp_path / "parts", tmp_path / "tiled.neff")
        return Session(tmp_path / "tiled.neff", {"x": X}, timing=False)

    return make


@pytest.mark.parametrize(
    ("address", "space", "partition", "byte"),
    [
        ("3:0x5000", "SBUF", 3, 0x5000),
        ("sbuf:3:20480", "SBUF", 3, 0x5000),
        ("nc0 sbuf:3:0x5000", "SBUF", 3, 0x5000),
        (3 * 0x40000 + 0x5000, "SBUF", 3, 0x5000),
        ("psum:5:8", "PSUM", 5, 8),
        (0x2000000 + 5 * 0x4000 + 8, "PSUM", 5, 8),
    ],
)
def test_on_chip_addresses(session: Session, address: int | str, space: str, partition: int, byte: int) -> None:
    found = session.examine(address, 4, "f")
    assert (found.space, found.core, found.partition, found.address) == (space, 0, partition, byte)
    if space == "SBUF":
        assert found.values.tolist() == (2 * X[3, :4]).tolist() and found.written.all()
    else:
        assert not found.written.any()


def test_device_memory_by_name_and_address(session: Session) -> None:
    found = session.examine("x+8", 3, "f")
    assert found.space == "HBM" and found.values.tolist() == [2.0, 3.0, 4.0] and found.name == "x"
    again = session.examine(f"hbm:{found.address:#x}", 1, "f")
    assert again.values.tolist() == [2.0] and again.name == "x"
    assert session.examine(None, 2, "f").values.tolist() == [3.0, 4.0], "behind the last ones"
    assert not session.examine("y", 1).written.any()
    (tensor,) = [row for row in session.info_tensors() if row.name == "x"]
    assert tensor.address == found.address - 8


@pytest.mark.parametrize(
    ("text", "count", "base", "dtype"),
    [
        ("", None, "x", "uint32"),
        ("x", None, "x", "uint32"),
        ("8f", 8, "f", "float32"),
        ("/8fh", 8, "f", "float16"),
        ("4xb", 4, "x", "uint8"),
        ("d", None, "d", "int32"),
        ("2uh", 2, "d", "uint16"),
        ("gx", None, "x", "uint64"),
        ("bfloat16", None, "f", "bfloat16"),
        ("16:bfloat16", 16, "f", "bfloat16"),
        ("3:int8", 3, "d", "int8"),
        ("fp16", None, "f", "float16"),
    ],
)
def test_formats(text: str, count: int | None, base: str, dtype: str) -> None:
    found = parse_format(text)
    assert (found[0], found[1], found[2].numpy_name) == (count, base, dtype)


def test_a_format_stays_until_another_is_given(session: Session) -> None:
    assert session.examine("x", format="4f").base == "f"
    again = session.examine("x")
    assert (again.base, again.dtype, again.values.size) == ("f", "float32", 1)
    assert session.examine("x", format="2xb").values.size == 2
    assert (session.examine().dtype, session.examine("x").base) == ("uint8", "x")
    with pytest.raises(UsageError):
        session.examine("x", format="zz")
    assert session.examine("x").dtype == "uint8"


@pytest.mark.parametrize("text", ["z", "ff", "0x", "fb", "8fhh", "99999999x", "int99"])
def test_formats_that_mean_nothing(text: str) -> None:
    with pytest.raises(UsageError):
        parse_format(text)


@pytest.mark.parametrize(
    ("address", "count", "error"),
    [
        ("128:0", 1, NotFoundError),
        ("0:0x38000", 1, NotFoundError),
        ("0:0x37ffc", 2, NotFoundError),
        ("psum:0:0x4000", 1, NotFoundError),
        ("hbm:0", 1, NotFoundError),
        ("hbm:what", 1, UsageError),
        ("x+what", 1, UsageError),
        ("x+32768", 1, NotFoundError),
        ("x+32764", 2, NotFoundError),
        ("nobody", 1, NotFoundError),
        ("nc1 0:0", 1, NotFoundError),
        ("0:0", 0, UsageError),
        (0x3000000, 1, NotFoundError),
        (None, 1, UsageError),
    ],
)
def test_addresses_that_lead_nowhere(
    program_file: Path, address: int | str | None, count: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        Session(program_file, {"x": X}).examine(address, count)


@pytest.mark.parametrize("index", ["0:4", "3", "-1", "::16, 0", "..., -1", "1, 2", "None, 0", "5:2:-1", ""])
def test_slices_are_numpys(session: Session, index: str) -> None:
    text = f"x[{index}]" if index else "x"
    assert np.array_equal(session.print_tensor(text), eval(f"X[{index}]") if index else X)


_PART = st.one_of(st.none(), st.integers(-9, 9))


@given(st.lists(st.one_of(st.integers(-9, 9), st.slices(9), st.just(...)), min_size=1, max_size=3))
def test_every_index_means_what_it_does_in_python(items: list[Any]) -> None:
    def text(item: Any) -> str:
        if item is ...:
            return "..."
        if isinstance(item, slice):
            return ":".join("" if part is None else str(part) for part in (item.start, item.stop, item.step))
        return str(item)

    found = parse_index(", ".join(map(text, items)))
    assert found == (tuple(items) if len(items) > 1 else items[0])


def test_an_error_never_quotes_a_control_character() -> None:
    with pytest.raises(UsageError) as error:
        parse_index("\x1b]0;title\x07")
    assert str(error.value) == "[\\x1b]0;title\\x07] is not an index"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x[", UsageError),
        ("[1]", UsageError),
        ("x[a]", UsageError),
        ("x[1.5]", UsageError),
        ("x[True]", UsageError),
        ("x[__import__('os')]", UsageError),
        ("x[0](1)", UsageError),
        ("x[128]", NotFoundError),
        ("x[0, 0, 0]", NotFoundError),
        ("x[::0]", NotFoundError),
        ("z", NotFoundError),
    ],
)
def test_tensors_that_cannot_be_printed(session: Session, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        session.print_tensor(text)


def test_unwritten_elements_are_counted(session: Session) -> None:
    assert session.tensor("y[0:2]").unwritten == 128
    assert session.tensor("x").unwritten == 0
    session.continue_()
    assert session.tensor("y").unwritten == 0


def test_constants_without_a_type_are_bytes(session: Session) -> None:
    assert session.print_tensor("two").view(np.float32).tolist() == [2.0] * 128


def test_tiles_of_the_builders_map(tiled: Tiled) -> None:
    session = tiled([TILE])
    assert session.tensor("acc").unwritten == 128 * 64
    session.continue_()
    assert np.array_equal(session.print_tensor("acc[3]"), (2 * X[3]).reshape(8, 8))
    assert session.examine("acc", 2, "f").values.tolist() == [0.0, 2.0]
    (row,) = [row for row in session.info_tensors() if row.kind == "tile"]
    assert (row.name, row.space, row.core, row.address, row.nbytes) == ("acc", "SBUF", 0, 0x5000, 128 * 256)


def test_of_two_tiles_with_one_name_the_living_one_counts(tiled: Tiled) -> None:
    early = {**TILE, "offset": 0x4000, "pcs": {"DVE": [0, 1]}}
    session = tiled([early, TILE])
    assert session.examine("acc").address == 0x4000
    session.until("dve:2")
    assert session.examine("acc").address == 0x5000
    session.continue_()
    assert session.examine("acc").address == 0x5000


@pytest.mark.parametrize(
    "tiles",
    [
        "[" * 100_000,
        "{",
        {},
        ["tile"],
        [{**TILE, "offset": "0"}],
        [{**TILE, "partition": True}],
        [{**TILE, "shape": [64, 8]}],
        [{**TILE, "shape": []}],
        [{**TILE, "space": "HBM"}],
        [{**TILE, "pcs": {"DVE": 3}}],
        [{**TILE, "dtype": "float31"}],
        [{key: value for key, value in TILE.items() if key != "name"}],
    ],
)
def test_malformed_tile_maps_are_format_errors(tiled: Tiled, tiles: Any) -> None:
    with pytest.raises(FormatError):
        tiled(tiles).info_tensors()


@pytest.mark.parametrize("place", [{"offset": 0x37F80}, {"offset": 1 << 40}, {"partition": 500}])
def test_a_tile_outside_of_memory_is_not_found(tiled: Tiled, place: dict[str, int]) -> None:
    session = tiled([{**TILE, **place}])
    for look in (session.print_tensor, session.watch, session.last_write):
        with pytest.raises(NotFoundError, match="outside of SBUF"):
            look("acc")
    assert session.breakpoints.last == 0
    assert carry_out(session, "info map").error is None, "the others are on the map"


def test_engines_and_what_they_wait_for(session: Session) -> None:
    rows = {row.engine: row for row in session.info_engines()}
    assert rows["DVE"].state == "done" and rows["DVE"].focus and rows["DVE"].text is None
    assert rows["Activation"].pc == 1 and rows["Activation"].words == 3
    fresh = Session(session.neff, {"x": X}, timing=False)
    fresh.step(5)
    row = next(row for row in fresh.info_engines() if row.engine == "Activation")
    assert (row.state, row.waits_for) == ("wait", "S[6]>=1, is 0")


def test_queues_semaphores_and_memory(session: Session) -> None:
    queues = {row.name: row for row in session.info_queues()}
    assert (queues["qIn"].completed, queues["qIn"].nbytes, queues["qOut"].completed) == (1, 32768, 0)
    semaphores = {row.number: row.value for row in session.info_semaphores()}
    assert semaphores == {6: 1, 8: 16}
    assert len(session.info_semaphores(everything=True)) == 512
    memory = {(row.space, row.name): row.written for row in session.info_memory()}
    assert memory["SBUF", ""] == 2 * 32768 and memory["HBM", "x"] == 32768 and memory["HBM", "y"] == 0


def test_words_are_marked_with_state_wait_and_breakpoint(program_file: Path) -> None:
    session = Session(program_file, {"x": X}, timing=False)
    session.break_at("dve:2")
    session.stepi("dve")
    rows = session.disassemble().rows
    assert [row.state for row in rows] == ["done", "next", ""]
    assert [row.satisfied for row in rows] == [None, False, None]
    assert [row.breakpoints for row in rows] == [(), (), (1,)]
    session.continue_()
    assert [(row.state, row.satisfied) for row in session.disassemble("dve").rows] == [
        ("done", None),
        ("done", True),
        ("flying", None),
    ]
    assert [row.pc for row in session.disassemble("act", around=2, count=2).rows] == [1, 2]
    assert session.disassemble("act", 1).rows[1].text == "PSEUDO_DMA_TRIGGER S[6]>=1 qOut block_id=0"
    for around in (3, -1):
        with pytest.raises(NotFoundError):
            session.disassemble("dve", around)


def test_source_lines_with_engines_and_breakpoints(program_file: Path, program_text: str, tmp_path: Path) -> None:
    session = Session(program_file, {"x": X}, timing=False)
    with pytest.raises(NotFoundError, match=r"double\.s is not here"):
        session.list_source()
    session.folders.append(tmp_path)
    (tmp_path / "double.s").write_text(program_text)
    session.break_at("double.s:17")
    session.continue_()
    listing = session.list_source()
    assert listing.file == "double.s" and [row.number for row in listing.rows] == list(range(12, 22))
    marks = {row.number: (row.engines, row.breakpoints) for row in listing.rows if row.engines or row.breakpoints}
    assert marks == {17: (("dve",), (1,)), 20: (("act",), ())}
    session.forget_listing()
    assert session.list_source("double.s:3", 2).rows[0].number == 2
    assert session.list_source().rows[0].number == 4, "goes on behind the last ones"
    assert session.list_source(5).rows[0].number == 1
    for around in ("999", "other.s:3"):
        with pytest.raises(NotFoundError):
            session.list_source(around)
    with pytest.raises(UsageError):
        session.list_source("double.s:x")


def test_focus(session: Session) -> None:
    assert session.focus("nc0 pe") == (0, "PE") == session.focus()
    assert session.focus(engine="act") == (0, "Activation")
    for core, engine in ((1, None), (None, "gpu"), (-1, None)):
        with pytest.raises(NotFoundError):
            session.focus(core, engine)
