"""Typed results: what JSON they become, and the schema that this JSON fits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath
from typing import Annotated, Literal, NamedTuple

import pytest

from formats.neff import Header, Queue, Variable
from formats.neff.debuginfo import DebugStep
from formats.ntff.records import Layout
from neurontools.command.results import LEFT_OUT, field_names, plain, schema_of
from neurontools.neff.chains import StepRow
from neurontools.neff.info import HeaderRow
from neurontools.neff.rows import QueueRow, VariableRow
from neurontools.ntff.info import LayoutRow
from tests.cli.schema import problems


class Colour(Enum):
    """An enumeration by value."""

    RED = "red"
    BLUE = "blue"


class Inner(NamedTuple):
    """A record in a record."""

    number: Annotated[int, "how many"]
    hint: Annotated[str | None, LEFT_OUT, "there only where something is said"] = None


@dataclass
class Base:
    """A record that another one extends."""

    colour: Colour
    kind: Literal["a", "b"]


@dataclass
class Whole(Base):
    """A result with all that results have."""

    inner: list[Inner]
    by_name: dict[str, tuple[int, float | None]]
    raw: bytes
    place: PurePosixPath | None


WHOLE = Whole(Colour.BLUE, "a", [Inner(1), Inner(2, "x")], {"n": (1, None)}, b"\x01\xff", PurePosixPath("/a"))


def test_a_result_becomes_json_that_its_schema_takes() -> None:
    found = plain(WHOLE)
    assert found == {
        "colour": "blue", "kind": "a", "inner": [{"number": 1}, {"number": 2, "hint": "x"}],
        "by_name": {"n": [1, None]}, "raw": "01ff", "place": "/a",
    }  # fmt: skip
    assert problems(found, schema_of(Whole)) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"colour": "green"}, "'green' is not one of"),
        ({"kind": "c"}, "'c' is not one of"),
        ({"inner": [{"number": 1, "hint": None}]}, "NoneType is not string"),
        ({"inner": [{"hint": "x"}]}, "'number' is missing"),
        ({"inner": [{"number": True}]}, "bool is not integer"),
        ({"by_name": {"n": ["1", 2]}}, "fits none of 2 alternatives"),
        ({"raw": None}, "NoneType is not string"),
        ({"more": 1}, "'more' is not in the schema"),
    ],
)
def test_other_json_does_not_fit(change: dict[str, object], says: str) -> None:
    (problem,) = problems({**plain(WHOLE), **change}, schema_of(Whole))
    assert says in problem


def test_descriptions_are_kept_and_strange_types_refused() -> None:
    inner = schema_of(Inner)
    assert inner["required"] == ["number"] and inner["properties"]["number"]["description"] == "how many"
    assert inner["properties"]["hint"] == {"type": "string", "description": "there only where something is said"}
    for strange in (complex, Base.__init__, type("Plain", (), {})):
        with pytest.raises(TypeError, match="no JSON Schema"):
            schema_of(strange)


@pytest.mark.parametrize(
    ("row", "shown", "names"),
    [
        (VariableRow, Variable, Variable._fields),
        (QueueRow, Queue, Queue._fields),
        (StepRow, DebugStep, DebugStep._fields),
        (LayoutRow, Layout, Layout._fields),
        (HeaderRow, Header, (*Header._fields[:-1], "features")),
    ],
)
def test_rows_have_the_fields_of_what_they_show(row: type, shown: type, names: tuple[str, ...]) -> None:
    """Rows are made from records by position; the reader's types are too slow to import where commands are declared."""
    assert field_names(row) == names, shown
