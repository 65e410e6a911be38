"""Expressions: what they are, how they print, and that nothing else gets in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.errors import NeuronError, NotFoundError
from neurontools import nki
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session, UsageError
from neurontools.debugger.commands.carry_out import carry_out
from neurontools.debugger.expressions import FUNCTIONS, Expression
from neurontools.debugger.names import parse_time
from neurontools.debugger.post_mortem import open_core_session
from neurontools.debugger.results import TensorValue
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki.launch import build_neff

X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64) - 100


@pytest.fixture
def session(program_file: Path) -> Session:
    """Return a session at the end of the doubling program: y is 2 * x."""
    made = Session(program_file, {"x": X}, timing=False)
    made.goto("end")
    return made


def value(session: Session, text: str) -> Any:
    return getattr(session.evaluate(text), "value", None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("mean(x)", X.mean()),
        ("max(abs(y - x))", np.abs(X).max()),
        ("max(x[0, 0], 7)", 7.0),
        ("sum(x, 0)[3]", X.sum(0)[3]),
        ("x.T[3, 5]", X[5, 3]),
        ("x.shape", (128, 64)),
        ("count(x < 0)", 100),
        ("any(isnan(y)) or all(y == 2 * x)", True),
        ("argmin(x)", 0),
        ("(x @ x.T)[1, 2]", (X @ X.T)[1, 2]),
        ("sum(x[0:2] - x[0:2])", 0),
        ("S[6]", 1),
        ("S[2 * 3] << 4", 16),
        ("1 if time > 0ps else 2", 1),
        ("core", 0),
        ("0x10 ^ 0x11", 1),
    ],
)
def test_values(session: Session, text: str, expected: Any) -> None:
    assert np.asarray(value(session, text) == expected).all()


@pytest.mark.parametrize(
    "text",
    [
        "().__class__", "x.__class__", "x.dtype", "open('/etc/passwd')", "__import__('os')", "eval('1')", "x.tofile(1)",
        "[n for n in (1, 2)]", "lambda: 1", "f'{x}'", "{1: 2}", "x := 1", "await x", "print(1)", "x.T.T.__init__",
        "max(x, key=1)", "(1).real", "'x'.upper()", "getattr(x, 'T')", "np.load('x')",
    ],
)  # fmt: skip
def test_nothing_else_is_an_expression(session: Session, text: str) -> None:
    with pytest.raises(NeuronError):
        session.evaluate(text)


@pytest.mark.parametrize(
    "text",
    ["10 ** 10 ** 10", "1 << 10 ** 9", "2 ** 99999", "+".join(["1"] * 500), "-" * 5000 + "1",
     "(1 << 4000) * (1 << 4000)", "x / 0 / 0 ** -1", "1 // 0", "1 << -1", "x @ 3", "x + x[0:3]", "S[10 ** 30]"],
)  # fmt: skip
def test_what_would_grow_or_has_no_answer_is_refused(session: Session, text: str) -> None:
    with pytest.raises((UsageError, NotFoundError)):
        session.evaluate(text)


def test_arrays_have_a_limit(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neurontools.debugger.expressions._ELEMENTS", 128 * 64)
    assert session.evaluate("x * x") is not None
    with pytest.raises(UsageError, match="elements"):
        session.evaluate("x[:, None] * x")


TYPED = """
.target trn2
.input h float16 [4]
.input i8 int8 [4]
.input u8 uint8 [4]
.input i16 int16 [4]
.input u32 uint32 [4]
.engine sp
    NOP cycle=0
"""


@pytest.fixture(scope="module")
def typed() -> Session:
    """Return a session whose inputs are of narrow types."""
    given = {
        "h": np.array([60000, 60000, 0.5, -1], np.float16), "i8": np.array([-128, -1, 3, 127], np.int8),
        "u8": np.array([1, 2, 200, 255], np.uint8), "i16": np.array([-4000, -1, 3, 4000], np.int16),
        "u32": np.array([0, 1, 7, 0x3F80_0000], np.uint32),
    }  # fmt: skip
    return Session(to_neff(parse_program(TYPED, "typed.s")), given, timing=False)


@nki.jit
def halves(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf)
    part = nl.ds(4 * nl.program_id(0), 4)
    nisa.dma_copy(dst=t, src=x[0:128, part])
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out[0:128, part], src=t)
    return out


@pytest.fixture(scope="module")
def two_cores() -> Session:
    """Return a session at the end of a kernel of which each of two cores does one half."""
    given = np.arange(128 * 8, dtype=np.float32).reshape(128, 8)
    made = Session(build_neff(halves[2], (given,), {}), {"x": given}, timing=False)
    made.goto("end")
    made.focus(0)
    return made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sum(h)", 119999.5), ("h[0] * 100", 6e6), ("h[0] == 60000", True), ("(h @ h) > 7e9", True),
        ("u8[0] - u8[1]", -1), ("max(abs(u8[0:2] - u8[2:4]))", 253), ("-u8[3]", -255), ("~u8[0]", -2),
        ("u8[3] + 300", 555), ("u8[0] << 9", 512), ("i8[0] - 100", -228), ("abs(i8[0])", 128),
        ("i16[0] * i16[0]", 16_000_000), ("-u32[1]", -1), ("u32[0] - u32[2]", -7),
    ],
)  # fmt: skip
def test_narrow_types_do_not_wrap(typed: Session, text: str, expected: object) -> None:
    assert value(typed, text) == expected


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("p/x i16[0]", "i16[0] = 0xf060"), ("p/x i16[0:1]", "[0xf060]"), ("p/u i8[1]", "i8[1] = 255"),
        ("p/t i8[0]", "i8[0] = 0b10000000"), ("p/f u32[3]", "u32[3] = 1"), ("p/f i8[1]", "i8[1] = -1"),
        ("p/f i8[1:2]", "[-1]"), ("p/x -2 ** 70", "-2 ** 70 = 0xffffffffffffffc00000000000000000"),
        ("p/x 1e300", "1e300 = 0x7f800000"), ("p/x h[2]", "h[2] = 0x3800"),
    ],
)  # fmt: skip
def test_numbers_have_the_bits_of_their_type(typed: Session, line: str, shown: str) -> None:
    answer = carry_out(typed, line)
    assert answer.error is None and answer.lines[-1] == shown


def test_a_tensor_of_another_core_is_that_of_the_core(two_cores: Session) -> None:
    for name in ("nc1.t", 'nc1."t"', "nc1.'t'"):
        found = two_cores.evaluate(f"{name}[0, 1]")
        assert isinstance(found, TensorValue) and (found.space, found.array) == ("nc1 SBUF", 10)
        assert value(two_cores, f"{name}[0, 1] - nc0.t[0, 1]") == 8
        assert value(two_cores, f"{name}.T[1, 0]") == 10
    assert value(two_cores, "t[0, 1] + 0") == 2
    with pytest.raises(NotFoundError, match="no core 2"):
        two_cores.evaluate('nc2."t"')


def test_what_has_no_answer_in_numbers_is_refused(session: Session) -> None:
    for text in ("(-8) ** 0.5", "(-8) ** 0.5 < 1", "x == x[0:3]", "x[0:2] < x[0:3]", "True << 10 ** 10"):
        with pytest.raises(UsageError):
            session.evaluate(text)


def test_every_function_takes_an_array(session: Session) -> None:
    for name in FUNCTIONS:
        text = f"{name}(x)" if name not in ("int", "float") else f"{name}(x[0, 0])"
        assert session.evaluate(text).value is not None  # type: ignore[union-attr]
    assert Expression("1").text == "1"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("p/x S[6]", "S[6] = 0x1"),
        ("p/t 5", "5 = 0b101"),
        ("p/o 8", "8 = 0o10"),
        ("print/x -1", "-1 = 0xffffffff"),
        ("p/d 2.75", "2.75 = 2"),
        ("p/f 0x3f800000", "0x3f800000 = 1"),
        ("p/x 1.0", "1.0 = 0x3f800000"),
        ("p x[0, 0]", "-100."),
        ("p/x x[0, 0:2]", "[0xc2c80000, 0xc2c60000]"),
        ("p S[6] == 1", "S[6] == 1 = True"),
        ("p PE.R[3]", "PE.R[3] = 0"),
        ('p "x"[0, 1]', "-99."),
        ("p 1.5", "1.5 = 1.5"),
    ],
)
def test_print_shows(session: Session, line: str, shown: str) -> None:
    answer = carry_out(session, line)
    assert answer.error is None and answer.lines[-1] == shown


def test_print_refuses_formats_that_it_has_not(session: Session) -> None:
    for line in ("p/z 1", "p/xx 1", "p/", "p", "p/x"):
        assert isinstance(carry_out(session, line).error, UsageError)


def test_words_by_x(session: Session) -> None:
    answer = carry_out(session, "x/2i dve:2")
    assert answer.error is None and [row.pc for row in answer.value.rows] == [2, 3][: len(answer.value.rows)]
    assert "TENSOR_TENSOR" in "\n".join(answer.lines)
    assert isinstance(carry_out(session, "x/2i dve:x").error, NeuronError)


def test_no_alias_stands_for_a_command_with_lines(session: Session) -> None:
    for line in ("commands", "commands 1", "define two"):
        assert isinstance(carry_out(session, f"alias more = {line}").error, UsageError)
    assert session.scripting.names == ()


def test_displays_are_shown_at_stops(session: Session) -> None:
    session.goto("start")
    first = carry_out(session, "display/x S[6]")
    assert first.error is None and first.lines == ["1: /x S[6]", "S[6] = 0x0"]
    carry_out(session, "display max(y)")
    stop = carry_out(session, "continue")
    assert stop.lines[-2:] == ["S[6] = 0x1", f"max(y) = {2 * X.max():.9g}"]
    assert carry_out(session, "state").displays == ()
    assert carry_out(session, "undisplay 1").error is None and len(carry_out(session, "rc").displays) == 1
    assert isinstance(carry_out(session, "undisplay 9").error, NotFoundError)
    assert isinstance(carry_out(session, "display nothing_of_the_kind").error, NotFoundError)


def test_lists_from_one_line_to_another(session: Session, program_text: str, tmp_path: Path) -> None:
    (tmp_path / "double.s").write_text(program_text)
    session.folders.append(tmp_path)
    answer = carry_out(session, "list 3,5")
    assert [row.number for row in answer.value.rows] == [3, 4, 5]
    assert [row.number for row in carry_out(session, "list double.s:2,3").value.rows] == [2, 3]
    for bad in ("list 5,3", "list x,3", "list 3,y"):
        assert isinstance(carry_out(session, bad).error, NeuronError)


@pytest.mark.parametrize(
    ("line", "places"),
    [
        ("find x, -100", ["x[0, 0]"]),
        ("find x[1], -35", ["x[1][1]"]),
        ("find x, -100, -99", ["x[0, 0]"]),
        ("find x, 5000000", []),
        ("find /1 x, -100", ["x[0, 0]"]),
        ("find sbuf, -100.0, -99.0", ["nc0 sbuf:0:0x4000"]),
        ("find 0:0x4000, +8, -99.0", ["nc0 sbuf:0:0x4004"]),
    ],
)
def test_values_are_found(session: Session, line: str, places: list[str]) -> None:
    answer = carry_out(session, line)
    assert answer.error is None and list(answer.value.places)[: len(places)] == places
    assert bool(answer.value.places) == bool(places) and answer.lines


def test_what_is_found_is_examined(session: Session) -> None:
    (place,) = carry_out(session, "find 1:0x4000, +64, -36.0").value.places
    found = carry_out(session, f"x/f {place}")
    assert found.error is None and found.value.values[0] == -36.0
    (place,) = carry_out(session, "find /1 hbm, -36.0").value.places
    assert carry_out(session, f"x/f {place}").value.values[0] == -36.0


@pytest.mark.parametrize("line", ["find", "find x", "find sbuf", "find 0:0x4000, 3", "find 0:0x4000, +0, 3",
                                  "find x, x", "find nothing, 3", "find /b sbuf, 300000",
                                  "find 0:0x4000, +9999999, 3"])  # fmt: skip
def test_what_cannot_be_looked_for_is_refused(session: Session, line: str) -> None:
    assert isinstance(carry_out(session, line).error, NeuronError)


# --- commands of one's own --------------------------------------------------------------------------------------------


def test_names_and_commands_of_ones_own(session: Session) -> None:
    assert carry_out(session, "alias sem = print/x S[6]").lines == ["sem = print/x S[6]"]
    assert carry_out(session, "sem").lines == ["S[6] = 0x1"]
    carry_out(session, "define both\nsem\ncommands 1\nstate\nend\nprint $arg0\nend")
    answer = carry_out(session, "both 3+4")
    assert answer.follow == ("sem", "commands 1\nstate\nend", "print 3+4")
    assert isinstance(carry_out(session, "both").error, UsageError), "it needs a word"
    assert [one.name for one in carry_out(session, "alias").value] == ["both", "sem"]
    carry_out(session, "alias two = both")
    assert carry_out(session, "two 5").follow == ("sem", "commands 1\nstate\nend", "print 5")
    for bad in ("define step\nstate\nend", "alias c", "alias 1 = step", "alias continue = step", "alias t = fly"):
        assert isinstance(carry_out(session, bad).error, UsageError), bad
    carry_out(session, "alias a = step")
    carry_out(session, "alias b = a")
    carry_out(session, "alias a = b")
    assert isinstance(carry_out(session, "a").error, UsageError), "a name for itself"


def test_files_of_commands(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("# what to do\nstate\n\ndefine two\nstate\nstate\nend\ntwo\n")
    assert carry_out(session, f"source {file}").follow == ("state", "define two\nstate\nstate\nend", "two")
    assert "cannot be read" in str(carry_out(session, f"source {tmp_path}/none").error)
    file.write_bytes(b"\xff\xfe")
    assert "not text" in str(carry_out(session, f"source {file}").error)
    session.writing = session.writing._replace(folder=tmp_path / "below")
    assert "outside" in str(carry_out(session, f"source {file}").error)


def test_a_time_of_any_length_is_a_time() -> None:
    for text in ("9" * 5000 + "ps", "9" * 400 + ".5s", "9999999999s"):
        assert parse_time(text) == 1 << 62
        assert Expression(f"time < {text}").text
    assert parse_time("1.5us") == 1_500_000


NINES = "9" * 5000


@pytest.mark.parametrize(
    "line",
    [
        f"focus nc{NINES} pe", f"break kernel.py:{NINES}", f"print %dot{{{NINES}}}", f"x/{NINES}x 0", f"x {NINES}",
        f"print nc{NINES}.E[2]", f"print S[{NINES}]", f"info ops kernel.py:{NINES}", f"break S[{NINES}] > 1",
        f"delete {NINES}", f"goto #{NINES}", f"list {NINES}", f"last-write {NINES}:0", f"disassemble pe {NINES}",
        f"x/{NINES}i", f"find sbuf, {NINES}", f"set S[1] = {NINES}", f"step {NINES}x", f"info map sbuf {NINES}:1",
    ],
)  # fmt: skip
def test_numbers_of_any_length_are_mistakes(program_file: Path, line: str) -> None:
    session = Session(program_file)
    assert isinstance(carry_out(session, line).error, NeuronError)


def test_an_expression_may_begin_and_end_with_a_slice(session: Session) -> None:
    """Here no variable of a kernel stands for the name, as in a NEFF or a core dump."""
    shown = carry_out(session, "print x[0:4, 0:4] @ x[0:4, 0:4]")
    assert shown.error is None and (shown.value.value == X[0:4, 0:4] @ X[0:4, 0:4]).all()
    assert carry_out(session, "print x[0:2] - x[2:4]").value.value.shape == (2, 64)


def test_nan_and_infinities_are_numbers(session: Session) -> None:
    for text in ("nan", "-inf"):
        assert carry_out(session, f"set x[0, 1] = {text}").error is None
        assert carry_out(session, f"find x, {text}").value.places == ("x[0, 1]",)


def test_what_a_dump_lacks_is_in_no_expression(session: Session, tmp_path: Path) -> None:
    """Of a tensor that a light dump leaves out nothing is computed, neither as NaN nor as unwritten."""
    assert carry_out(session, f"save-core {tmp_path / 'light.core'} light").error is None
    dump = open_core_session(tmp_path / "light.core")
    for line in ("print x", "print mean(x)", "print x[0] + x[1]", "print x[0:2]", "info values x", "find x, 0"):
        answer = carry_out(dump, line)
        assert isinstance(answer.error, NotFoundError) and "of x are not in this light dump" in str(answer.error), line
    assert carry_out(session, f"save-core {tmp_path / 'full.core'}").error is None
    whole = open_core_session(tmp_path / "full.core")
    assert carry_out(whole, "print mean(x)").value.value == X.mean()
