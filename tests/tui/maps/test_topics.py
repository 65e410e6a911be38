"""The same values at the prompt: `info map`, `info values`, `info variables`, `info timeline`, as text and as data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from neurontools.debugger.json_values import plain
from neurontools.tui.carry_out import carry_out
from neurontools.tui.maps import HbmVariables, PsumMap, SbufMap, TileInspector
from neurontools.tui.timeline import Timeline


def value_of(session: Any, line: str) -> Any:
    """Return a command's result as JSON gives it."""
    done = carry_out(session, line)
    assert not done.error, done.error
    assert done.lines, "something to read"
    return json.loads(json.dumps(plain(done.value), allow_nan=False))


def test_maps_cover_what_they_say(attention: Any) -> None:
    found = value_of(attention, "info map")
    window = found["window"]
    assert (window["space"], window["byte"], found["mode"]) == ("SBUF", 0x4000, "tensor")
    assert found["cells"]["shape"] == [window["rows"], window["columns"]]
    assert "queries" in found["names"] and found["names"][found["cells"]["values"][0][0]] == "queries"
    part = value_of(attention, "info map psum age 0:4 0:0x800")
    assert part["window"] == {"space": "PSUM", "core": 0, "partition": 0, "byte": 0, "rows": 4, "columns": 64,
                              "row_step": 1, "byte_step": 32}  # fmt: skip
    assert max(map(max, part["cells"]["values"])) <= 40
    values = value_of(attention, "info map nc0 bfloat16 mean 0:1 0x4000:0x4100")
    assert values["mode"] == "value" and values["cells"]["dtype"] == "float32"
    assert value_of(attention, "info map unwritten")["cells"]["values"][0][0] == 0


def test_values_and_variables(attention: Any) -> None:
    found = value_of(attention, "info values queries[0:2] as bfloat16")
    assert (found["name"], found["selection"], found["dtype"], found["shape"]) == (
        "queries", "[0:2]", "bfloat16", [2, 512])  # fmt: skip
    assert sum(found["statistics"]["bins"]) + found["statistics"]["nan"] == 1024
    variables = value_of(attention, "info variables")
    assert [item["name"] for item in variables][:2] == ["identity_float32", "k_t"]
    assert len(variables[0]["strip"]) == 12


def test_the_timeline_of_a_range(attention: Any) -> None:
    whole = value_of(attention, "info timeline")
    assert whole["now_ps"] == attention.time_ps and [owner["name"] for owner in whole["owners"]][:2] == [
        "PE", "Activation"]  # fmt: skip
    part = value_of(attention, "info timeline 0ps 20ps")
    assert (part["start_ps"], part["step_ps"], part["busy"]["shape"]) == (0, 1, [7, 20])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("info map sideways", "info map [ncN]"),
        ("info map 5:3", "not a range"),
        ("info map 0:200", "not a range"),
        ("info map nc7", "no SBUF of core 7"),
        ("info map 0:x", "not the end of a range"),
        ("info values", "info values TENSOR"),
        ("info values queries as marble", "info values TENSOR"),
        ("info values nothing", "no tensor 'nothing'"),
        ("info variables all", "takes no argument"),
        ("info timeline 5us", "info timeline [FROM TO]"),
        ("info timeline 5us 2us", "info timeline [FROM TO]"),
        ("info timeline yesterday today", "info timeline [FROM TO]"),
    ],
)
def test_what_is_no_topic(attention: Any, line: str, says: str) -> None:
    assert says in carry_out(attention, line).error


@pytest.mark.parametrize("pane", [SbufMap, PsumMap, HbmVariables, TileInspector, Timeline])
def test_every_pane_names_a_twin_that_works(attention: Any, pane: Any) -> None:
    value_of(attention, pane.TWIN.replace("NAME", "queries"))
    assert pane.TITLE and pane.HELP
