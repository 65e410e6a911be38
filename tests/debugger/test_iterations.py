"""Places are lines and turns of loops: breakpoints, stepping and variables in a kernel whose loops are unrolled."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from formats.core import open_core
from formats.errors import FormatError, NotFoundError
from formats.neff import Neff
from formats.neff.visits import (
    Loop,
    Site,
    TensorName,
    Visits,
    _Row,
    cut_visits,
    parse_visits,
    read_visits,
    write_visits,
)
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session, UsageError
from neurontools.debugger.commands.carry_out import carry_out
from neurontools.debugger.frames import backtrace
from neurontools.debugger.post_mortem import DumpedExecution
from neurontools.debugger.program import Program
from neurontools.nki.launch import build_neff, trace_kernel
from tests.debugger import calls, unrolled

FILE = Path(unrolled.__file__)
TURNS = unrolled.TURNS


def at(mark: str) -> int:
    """Return the line of the kernel that ends with a comment."""
    lines = FILE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


@pytest.fixture(scope="module")
def neff() -> Neff:
    return build_neff(unrolled.unrolled, (unrolled.X,), {})


@pytest.fixture
def session(neff: Neff) -> Session:
    made = Session(neff, {"x": unrolled.X}, timing=False)
    made.folders.append(FILE.parent)
    return made


def turns(session: Session) -> dict[str, object]:
    """Return the turns of loops that the session shows at what comes next."""
    ahead = session.ahead()
    assert ahead is not None
    return {one.name: one.value for one in ahead.iteration}


def line(session: Session) -> int | None:
    ahead = session.ahead()
    assert ahead is not None and ahead.source is not None
    return ahead.source.line


def test_a_breakpoint_stops_in_every_turn(session: Session) -> None:
    session.break_at(f"unrolled.py:{at('ADD')}")
    seen = []
    while session.continue_().reason == "breakpoint":
        seen.append(turns(session)["k"])
        assert line(session) == at("ADD")
    assert seen == list(range(TURNS))
    assert session.breakpoints[0].hits == TURNS
    back = []
    while session.reverse_continue().reason == "breakpoint":
        back.append(turns(session)["k"])
    assert back == seen[::-1]


def test_turns_of_the_same_words_in_a_row_are_places(session: Session) -> None:
    """Two turns of the inner loop follow each other on one engine, from one line."""
    session.break_at(f"unrolled.py:{at('TWICE')}")
    seen = []
    while session.continue_().reason == "breakpoint":
        here = turns(session)
        seen.append((here["k"], here["_"]))
    assert seen == [(k, turn) for k in range(TURNS) for turn in range(2)]


def test_a_breakpoint_at_a_function_stops_at_each_call(session: Session) -> None:
    """As in gdb, a function is a place: where each call of it begins, in every turn of the loops around it."""
    session.break_at("load")
    assert (session.breakpoints[0].kind, len(session.breakpoints[0].places)) == ("function", TURNS)
    seen = []
    while session.continue_().reason == "breakpoint":
        seen.append(turns(session)["k"])
        assert [row.function for row in session.backtrace()] == ["load", "unrolled"]
    assert sorted(seen) == list(range(TURNS)), "two engines load in turns"
    assert {row.name for row in session.info_scope("load")} >= {"x", "rows", "tile"}
    listing = session.list_source("load")
    assert listing.rows[0].number < at("LOAD") < listing.rows[-1].number
    assert "load" in session.program.functions and "fresh" not in session.program.functions, "that one has no word"
    with pytest.raises(NotFoundError, match=r"no engine, queue, opcode or function 'fresh'.*its functions .*load"):
        session.break_at("fresh")


def test_a_while_loop_is_told_by_what_it_tests(session: Session) -> None:
    session.break_at(f"unrolled.py:{at('WHILE')} if row == 1".partition(" if ")[0], condition="row == 1")
    assert session.continue_().reason == "breakpoint" and turns(session) == {"row": 1}
    assert session.continue_().reason == "finished"


def test_conditions_see_loop_variables_and_the_tensors_of_the_turn(session: Session) -> None:
    first = unrolled.X[2 * unrolled.ROWS, 0] + 1
    session.break_at(f"unrolled.py:{at('TWICE')}", condition="k == 2 and _ == 0")
    session.break_at(f"unrolled.py:{at('TWICE')}", condition=f"u[0, 0] >= {first} and k < 3")
    stop = session.continue_()
    assert stop.breakpoints == (1, 2) and turns(session)["k"] == 2
    (u,) = [row for row in session.info_locals() if row.name == "u"]
    assert u.tensor and u.value == "u_2" and session.tensor("u_2").array[0, 0] == first
    assert carry_out(session, "print u[0, 0]").value.array == first, "print means the variable, not the first tile"


def test_an_ignore_count_counts_turns(session: Session) -> None:
    session.break_at(f"unrolled.py:{at('ADD')}")
    session.ignore(1, 2)
    assert session.continue_().reason == "breakpoint" and turns(session)["k"] == 2


def test_a_line_in_the_middle_of_a_call_is_that_call(session: Session) -> None:
    made = session.break_at(f"unrolled.py:{at('INSIDE')}")
    assert made.where.endswith(f":{at('ADD')}") and len(made.places) == TURNS


def test_a_line_that_calls_a_function_stops_at_its_first_word(session: Session) -> None:
    session.break_at(f"unrolled.py:{at('CALL')}", condition="k == 1")
    assert session.continue_().reason == "breakpoint"
    levels = [(row.function, row.line) for row in session.backtrace()]
    assert levels == [("load", at("LOAD")), ("unrolled", at("CALL"))]
    rows = {(row.level, row.name): row.value for row in session.info_locals()}
    assert rows[0, "rows"] == (128, 8) and rows[0, "tile"] == "tile_1" and rows[1, "k"] == 1


def test_next_goes_from_turn_to_turn(session: Session) -> None:
    session.break_at(f"unrolled.py:{at('TWICE')}", condition="k == 1 and _ == 0")
    session.continue_()
    session.delete()
    seen = [(line(session), turns(session)["k"], turns(session).get("_"))]
    for _ in range(3):
        core, engine = session.focus()
        stop = session.next()
        assert stop.reason == "line" and session.focus() == (core, engine)
        row = session.backtrace()[0]
        seen.append((row.line, *[one.value for one in row.iteration]))
    twice, add = at("TWICE"), at("ADD")
    assert seen == [(twice, 1, 0), (twice, 1, 1), (add, 2), (twice, 2, 0)]
    session.reverse_next()
    assert session.backtrace()[0].line == add
    session.reverse_next()
    row = session.backtrace()[0]
    assert (row.line, [one.value for one in row.iteration]) == (twice, [1, 1])


def test_finish_and_reverse_finish(session: Session) -> None:
    session.break_at(f"unrolled.py:{at('LOAD')}", condition="k == 1")
    session.continue_()
    before = session.events
    stop = session.finish()
    assert stop.reason == "call done" and [row.function for row in session.backtrace()] != []
    assert session.reverse_finish().reason in ("line", "start", "breakpoint")
    session.goto("start")
    session.delete()
    session.until(f"unrolled.py:{at('LOAD')}")
    assert session.events <= before
    session.goto("end")
    session.goto("start")
    session.break_at(f"unrolled.py:{at('ADD')}")
    session.continue_()
    with pytest.raises(UsageError, match="no function"):
        session.finish()
    with pytest.raises(UsageError, match="no function"):
        session.reverse_finish()


def test_next_steps_over_the_call_at_whose_line_a_breakpoint_stopped() -> None:
    session = Session(build_neff(calls.calls, (calls.X,), {}), {"x": calls.X})
    text = Path(calls.__file__).read_text().splitlines()
    call = next(number for number, line in enumerate(text, 1) if line.endswith("# CALL"))
    session.break_at(f"calls.py:{call}", condition="k == 1")

    def places() -> list[tuple[int, object]]:
        return [(row.line, [one.value for one in row.iteration]) for row in session.backtrace()]

    session.continue_()
    before, inside = session.events, places()
    assert session.next().reason == "line" and places()[1] == (call, [2]), "the call as a whole"
    # Reached from behind, the place is the same.
    session.goto("end")
    assert session.reverse_continue().reason == "breakpoint" and session.events == before
    assert session.next().reason == "line" and places()[1] == (call, [2])
    # Without the breakpoint, at the same event of another run, each word of the function has its own line.
    session.reverse_continue()
    session.delete()
    session.restart()
    session.step(before)
    assert places() == inside
    session.next()
    assert places()[1] == (call, [1])


def test_a_function_that_is_over_is_not_finished(session: Session) -> None:
    session.goto("end")
    for leave in (session.finish, session.reverse_finish):
        with pytest.raises(UsageError, match="completed all its instructions"):
            leave()


def test_files_may_begin_with_a_digit(tmp_path: Path, program_text: str) -> None:
    session = Session(to_neff(parse_program(program_text, "01_double.s")), timing=False)
    assert session.break_at("01_double.s:17").kind == "line"
    with pytest.raises(UsageError, match="not a pc"):
        session.break_at("01:x")
    with pytest.raises(NotFoundError, match="it has 0 to 1; a source line is FILE:17"):
        session.focus(engine="sp")
        session.break_at("17")


def test_until_alone_leaves_the_loop(session: Session) -> None:
    session.break_at(f"unrolled.py:{at('TWICE')}")
    session.continue_()
    session.delete()
    engine = session.focus()
    session.until_later()
    assert session.focus() == engine
    assert session.backtrace()[0].line >= at("STORE") or session.device.cores[0].engines[engine[1]].done


def test_advance_is_until(session: Session) -> None:
    answer = carry_out(session, f"advance unrolled.py:{at('ADD')}")
    assert answer.error is None and answer.reason == "until" and line(session) == at("ADD")
    assert carry_out(session, f"advance unrolled.py:{at('ADD')}").reason == "until" and turns(session)["k"] == 1


def test_scope_names_the_variables_of_a_place(session: Session) -> None:
    rows = {row.name: row for row in session.info_scope(f"unrolled.py:{at('STORE')}")}
    assert rows["k"].value == 0 and rows["v"].shape == (128, 8) and rows["v"].space == "SBUF"


def test_tiles_are_called_as_the_kernel_calls_them(session: Session) -> None:
    """By annotated assignments, tuples, and where a function's result goes."""
    names = set(session.tensors.names(0))
    assert {"tile", "u", "v", "last", "u_3", "v_3"} <= names
    assert not any(name.startswith(("sbuf", "psum")) for name in names)


def test_every_word_of_the_kernel_has_its_turn(neff: Neff) -> None:
    known = read_visits(neff.subgraphs[0])
    assert known is not None
    lines = {known.site(visit).line for visit in range(len(known))}
    assert {at(mark) for mark in ("LOAD", "CALL", "ADD", "TWICE", "STORE", "WHILE")} == lines
    assert known.iteration(known.at("DVE", 2)) and known.at("DVE", 10**6) == -1 and known.at("none", 0) == -1


def test_files_without_visits_still_have_lines(session: Session) -> None:
    """Words of one line that follow each other are then one place, as in files of the compiler."""
    plain = Program(session.device)
    places = plain.resolve(f"unrolled.py:{at('TWICE')}", "DVE").places
    assert len(places) == TURNS and len(session.break_at(f"unrolled.py:{at('TWICE')}").places) == 2 * TURNS
    assert plain.iteration(0, "DVE", 2) == () and len(backtrace(plain, (0, "DVE", 2))) == 1


def test_tracing_holds_no_frame_of_the_kernel() -> None:
    (traced,) = trace_kernel(unrolled.unrolled, (unrolled.X,))
    assert traced.trace.visits is not None
    assert not traced.trace.visits._calls and traced.trace.visits._bottom is None


BAD = [
    ({"visits": 3}, "list"),
    ({"visits": [[-1, 0, -1, 1]]}, "not a row"),
    ({"visits": [[0, 0, -1, 1, {}]]}, "does not come before"),
    ({"visits": [[-1, 7, -1, 1, {}]]}, "does not come before"),
    ({"visits": [[-1, 0, -1, 1, {"k": [1.5]}]]}, "neither number"),
    ({"visits": [[-1, 0, -1, 1, {}], [-1, 0, 0, 2, {}], [-1, 0, 1, 3, {}]]}, "builds on"),
    ({"words": {"PE": [0]}}, "pairs"),
    ({"words": {"PE": [0, 5]}}, "pairs"),
    ({"words": {"PE": [4, -1, 4, -1]}}, "pairs"),
    ({"sites": [{"file": "k.py", "function": "f", "line": 1, "loops": [[1]]}]}, "lists of a line"),
]


class Member:
    """A subgraph that has one member."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def has(self, name: str) -> bool:
        return name == "visits.json"

    def member(self, name: str) -> str:
        return f"sg00/{name}"

    def parsed_bytes(self, name: str) -> bytes:
        return self._data


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message for _, message in BAD])
def test_a_malformed_member_is_refused(change: dict[str, object], message: str) -> None:
    site = {"file": "k.py", "function": "f", "line": 1, "loops": []}
    good = {"sites": [site], "visits": [], "words": {}}
    with pytest.raises(FormatError, match=message) as caught:
        read_visits(Member(json.dumps({**good, **change}).encode()))
    assert "visits.json" in str(caught.value)


def test_what_is_written_is_read_again() -> None:
    sites = [Site("k.py", "f", 3, (Loop(2, ("k",)), Loop(3, ()))), Site("h.py", "g", 9)]
    rows = [(-1, 0, -1, 1, {"k": 0, "t": TensorName("t")}), (0, 1, -1, 1, {"shape": (1, 2), "on": True, "f": 0.5}),
            (-1, 0, 0, 2, {"k": 1, "name": "x"})]  # fmt: skip
    found = read_visits(Member(write_visits(sites, rows, {"PE": [1, 0, 4, 2, 6, -1]})))
    assert found is not None and len(found) == 3 and found.sites == tuple(sites)
    assert [found.at("PE", pc) for pc in (0, 1, 3, 4, 5, 6, 99)] == [-1, 0, 0, 2, 2, -1, -1]
    assert found.variables(2) == {"k": 1, "t": "t", "name": "x"}
    assert isinstance(found.variables(2)["t"], TensorName) and not isinstance(found.variables(2)["name"], TensorName)
    assert [tuple(one) for one in found.iteration(2)] == [("k", 1), ("#", 2)]
    assert found.chain(1) == (1, 0) and found.variables(1)["shape"] == (1, 2)


def test_a_dump_keeps_the_turns_of_the_words_that_it_has(session: Session, neff: Neff, tmp_path: Path) -> None:
    carry_out(session, f"break {FILE}:{at('STORE')}")
    for _ in range(3):
        session.continue_()
    place = session.ahead()
    assert place is not None
    assert turns(session) == {"k": 2}
    whole = read_visits(neff.subgraphs[0])
    assert whole is not None
    for kind in ("light", "full"):
        path = tmp_path / f"{kind}.core"
        session.save_core(path, kind)
        dump = DumpedExecution(open_core(path))
        assert dump.program.iteration(0, place.engine, place.pc) == place.iteration
        kept = parse_visits(dump.core.program.visits[0].encode(), "kept")
        words = {(each.engine, pc) for each in dump.core.program.streams
                 for _, first, _, _, count in each.runs for pc in range(first, first + count)}  # fmt: skip
        assert words
        for engine, pc in words:
            mine, theirs = kept.at(engine, pc), whole.at(engine, pc)
            assert [(kept.site(one), kept.variables(one)) for one in kept.chain(mine)] == [
                (whole.site(one), whole.variables(one)) for one in whole.chain(theirs)
            ]


def test_what_is_cut_holds_no_more_than_it_has_to() -> None:
    sites = [Site("k.py", "f", 3), Site("h.py", "g", 9)]
    rows = [_Row(-1, 0, -1, 1, {"k": 0}), _Row(0, 1, -1, 1, {"s": 1}), _Row(-1, 0, 0, 2, {"n": 5}),
            _Row(2, 1, -1, 1, {})]  # fmt: skip
    whole = Visits(sites, rows, {"PE": [1, 1, 4, 3, 6, -1], "SP": [0, 0]})
    assert cut_visits(whole, {"PE": [range(1)]}) == b""
    cut = parse_visits(cut_visits(whole, {"PE": [range(4, 5), range(5, 9)]}), "cut")
    assert len(cut) == 3 and [cut.at("PE", pc) for pc in (3, 4, 5, 6)] == [-1, 2, 2, -1] and cut.at("SP", 0) == -1
    assert cut.variables(1) == {"k": 0, "n": 5} and cut.chain(2) == (2, 1) and cut.site(2) == sites[1]


def test_the_run_is_the_same(session: Session) -> None:
    session.goto("end")
    np.testing.assert_array_equal(session.tensor("out").array, (unrolled.X + 1) * 2)
