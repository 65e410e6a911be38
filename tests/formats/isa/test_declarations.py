"""A declaration that is wrong is refused when its class is made; a right one describes itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from formats import isa
from formats.dtypes import Dtype
from formats.isa.enums import AluOp
from formats.isa.field import BitFlag, Enumeration, Immediate, Integer
from formats.isa.operand import Pattern, Pointer
from formats.isa.syntax import Key

GOOD: dict[str, Any] = {
    "__slots__": (),
    "__doc__": "Try something.",
    "NAME": "TRIAL",
    "OPCODE": 0x70,
    "ENGINES": ("DVE",),
    "CITE": "nowhere 1",
}
CHANNELS = {"channels": Integer(41, 1, "partitions")}


def declare(**changes: Any) -> type[isa.Instruction]:
    """Return a new class as GOOD says, with changes; None takes an attribute away."""
    return type("Trial", (isa.Instruction,), {k: v for k, v in {**GOOD, **changes}.items() if v is not None})


def pattern(offset: int = 16, **facts: Any) -> Pattern:
    return Pattern(offset, 3, "input", **{"role": "read", "dtype": "dtype", "partitions": "channels", **facts})


def pointer(**facts: Any) -> Pointer:
    return Pointer(16, "address", **{"dtype": Dtype.FLOAT32, "partitions": "channels", **facts})


def test_a_good_declaration_works_at_once() -> None:
    cls = declare(amount=Integer(12, 4, "how much", unit="bytes", default=7), SYNTAX=(Key("amount"),))
    assert cls().text == "TRIAL amount=7" and cls.parse("amount=9").fields["amount"] == 9
    assert cls.synopsis() == "TRIAL [WAIT] [UPDATE] amount=N"
    assert cls not in isa.CLASSES and isinstance(isa.decode(cls().raw), isa.Unknown)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"a": Integer(12, 4, "a"), "b": Integer(15, 1, "b")}, "overlaps"),
        ({"a": BitFlag(12, 3, "a"), "b": Integer(12, 1, "b")}, "overlaps"),
        ({"a": Integer(4, 4, "a")}, "overlaps"),
        ({"a": Integer(62, 4, "a")}, "ends after the word"),
        ({"a": Integer(12, 4, "")}, "no doc"),
        ({"a": Integer(12, 4, "a"), "CITE": ""}, "no cite"),
        ({"a": Integer(12, 4, "a", provenance="rumoured")}, "provenance"),
        ({"PROVENANCE": "rumoured"}, "provenance"),
        ({"NAME": "trial"}, "capitals"),
        ({"__doc__": " "}, "docstring"),
        ({"ENGINES": ()}, "ENGINES"),
        ({"ENGINES": ("GPU",)}, "ENGINES"),
        ({"GENERATIONS": ("gen9",)}, "GENERATIONS"),
        ({"SIZE": 128}, "128 bytes"),
        ({"SIZE": 100, "CODE": 77}, "100 bytes"),
        ({"a": Integer(12, 4, "a"), "CODE": 77}, "extension header"),
        ({"src": pattern()}, "needs field dtype"),
        ({"src": pattern(role="look"), "dtype": Enumeration(40, Dtype, "d"), **CHANNELS}, "role 'look'"),
        ({"p": pointer(alias=True), **CHANNELS}, "alias of bits"),
        ({"p": pointer(flag=BitFlag(20, 0, "f")), **CHANNELS}, "its flag"),
        ({"a": Immediate(16, "a", integer=BitFlag(20, 0, "f"))}, "integer flag"),
        ({"a": Integer(12, 4, "a"), "SYNTAX": (Key("a"), Key("a"))}, "twice in the syntax"),
        ({"FILL": "nothing"}, "needs a field nothing"),
        ({"DATAFLOW": isa.Dataflow.CHOICE}, "needs a field predicate"),
        ({"STATE": isa.EngineState.OPTIONAL}, "needs a field reduce_command"),
        ({"COST": isa.Passes()}, "needs a field src"),
        ({"src": pattern(lanes="nowhere"), "dtype": Enumeration(40, Dtype, "d"), **CHANNELS}, "no field nowhere"),
        ({"a": Integer(12, 4, "a", default=3), "SYNTAX": (Key("a", optional=True),)}, "default must be zero"),
    ],
)
def test_a_bad_declaration_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        declare(**changes)


def test_syntax_of_a_missing_field_is_refused() -> None:
    with pytest.raises((TypeError, KeyError)):
        declare(SYNTAX=(Key("nothing"),))


@pytest.mark.parametrize("cls", isa.CLASSES, ids=lambda c: c.NAME)
def test_every_class_describes_every_field(cls: type[isa.Instruction]) -> None:
    facts = json.loads(json.dumps(cls.describe()))
    assert [row["name"] for row in facts["fields"]] == list(cls.FIELDS)
    assert all(row["doc"] and row["cite"] and row["provenance"] for row in facts["fields"])
    assert facts["dialect"] == ("extended" if cls.CODE >= 0 else "neuron") == cls.DIALECT
    assert facts["summary"] and facts["syntax"].startswith(cls.NAME)
    for name, field in cls.FIELDS.items():
        assert getattr(cls, name) is field and field.name == name


@pytest.mark.parametrize("cls", [c for c in isa.CLASSES if c.CODE < 0], ids=lambda c: c.NAME)
def test_what_is_ours_in_real_words_is_unknown_to_the_neuron_dialect(cls: type[isa.Instruction]) -> None:
    assert not isinstance(isa.decode(cls().raw, "gen3", "neuron"), isa.Unknown)
    for name, field in cls.FIELDS.items():
        if field.provenance == "ours" and not field.alias:
            word = bytearray(cls.defaults())
            field.poke(word, 1)
            assert isinstance(isa.decode(bytes(word), "gen3", "neuron"), isa.Unknown), name
            assert isinstance(isa.decode(bytes(word), "gen3", "extended"), cls), name


def test_codes_of_ours_need_the_extended_dialect() -> None:
    line = isa.TensorTensor(op=AluOp.SUBTRACT).text
    with pytest.raises(Exception, match="TENSOR_TENSOR as written is an extension"):
        isa.assemble(line, "gen3", "neuron")
    assert isa.decode(isa.assemble(line, "gen3", "extended")).op is AluOp.SUBTRACT
    for function, real in (("COPY", True), (130, True), (0xBF, True), (0xC0, False), ("GELU", False)):
        word = isa.decode(isa.Activate(function=function).raw, "gen3", "neuron")
        assert isinstance(word, isa.Activate) is real


def test_matmul_says_what_psum_really_holds() -> None:
    dst = isa.AccessPattern(isa.PSUM_BASE, (1, 0, 0), (8, 1, 1))
    assert [
        isa.MatMul(dst=dst, dtype=7, **more).writes[0].dtype
        for more in ({}, {"transpose_mode": 1}, {"dst_dtype": 6}, {"transpose_mode": 1, "dst_dtype": 10})
    ] == [10, 7, 6, 10]


def test_fields_of_our_words_inherit_their_provenance() -> None:
    for cls in isa.CLASSES:
        if cls.DIALECT == "extended":
            assert {f.provenance for n, f in cls.FIELDS.items() if n not in cls.HEADER} <= {"ours"}, cls
    assert declare(a=Integer(12, 4, "a")).FIELDS["a"].provenance == "observed"
    assert declare(a=Integer(12, 4, "a"), PROVENANCE="ours").FIELDS["a"].provenance == "ours"


def test_nobody_goes_by_the_name_of_a_word(root: Path) -> None:
    """Names are text: what a word does stands in its declaration."""
    asks = re.compile(r"\.NAME (?:not in|in|==|!=) |\.NAME\.(?:starts|ends)with|\"[A-Z_]+\" in \w+\.NAME")
    parts = ("builder", "debugger", "nki", "profile")
    for package in ("emulator", *(f"neurontools/{part}" for part in parts)):
        for path in (root / package).rglob("*.py"):
            assert not asks.search(path.read_text(encoding="utf-8")), path


def test_only_executor_and_cost_name_a_word_in_the_emulator(root: Path) -> None:
    """Whoever else needs to know what a word of an engine does reads its declaration."""
    names = [cls.__name__ for cls in isa.CLASSES if cls.DIALECT == "extended" and not cls.CARRIED_OUT and not cls.MEETS]
    named = re.compile(rf"\bisa\.(?:{'|'.join(names)})\b")
    for path in (root / "emulator").rglob("*.py"):
        if path.parent.name not in ("engines", "cost"):
            assert not named.search(path.read_text(encoding="utf-8")), path
