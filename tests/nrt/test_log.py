"""Log lines and information blocks: documented ones to fields, any others to an answer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from formats.nrt.infodump import FIELDS
from formats.nrt.log import parse_line
from formats.nrt.lookup import mentions
from formats.nrt.story import read_story
from tests.nrt.infodumps import parse_infodumps
from tests.nrt.logs import OOB, STATUS, infodump


def test_a_line_has_fields() -> None:
    line = parse_line(STATUS, 7)
    assert line is not None
    assert line.time == datetime(2025, 9, 19, 18, 57, 20, 805570, tzinfo=UTC)
    assert (line.number, line.pid, line.tid, line.level) == (7, 4444, 4444, "ERROR")
    assert (line.module, line.function) == ("NMGR", "dlr_infer")
    assert line.text.startswith("Inference completed with err: 1006")


@pytest.mark.parametrize(
    ("text", "micro"),
    [
        ("2021-Aug-11 18:38:27.0917 13713:13713 ERROR   NRT:nrt_init      text", 917_000),  # four digits: 0 and ms
        ("2024-08-12 18:34:56,116::ERROR: 2024-Aug-12 18:34:56.067150 1:2 ERROR  TDRV:f  text", 67_150),  # a prefix
        ("\x1b[31m2025-Oct-01 23:48:34.002205 516278:516289 ERROR  TDRV:f     text\x1b[0m\r\n", 2_205),  # colours
    ],
)
def test_older_and_wrapped_lines(text: str, micro: int) -> None:
    line = parse_line(text)
    assert line is not None and line.time.microsecond == micro and line.text == "text"


@pytest.mark.parametrize("text", ["", "hello", "2025-Foo-19 18:57:20.8  1:1  ERROR  A:b  x", "2025-Sep-39 25:57:20.8"])
def test_other_lines_have_none(text: str) -> None:
    assert parse_line(text) is None


def test_an_information_block_becomes_fields() -> None:
    (block,) = parse_infodumps(["noise", *infodump(), "noise"])
    assert set(block.fields) == set(FIELDS.values())
    assert block.fields["instance_id"] == "i-0b514eadc4fec7de6" and block.fields["visible_cores"] == "0, 1"
    assert (block.status, block.call) == ("NRT_EXEC_OOB", "nrt_execute")
    assert block.other == {"UltraServer topology": "none"}
    assert block.environment == {"NEURON_RT_LOG_LEVEL": "INFO", "NEURON_RT_ROOT_COMM_ID": "10.0.0.1:4000"}
    assert (block.line, block.pid, block.whole) == (2, 4444, True)


def test_blocks_of_two_processes_are_told_apart() -> None:
    first, second = infodump(1, "NRT_TIMEOUT in nrt_execute()"), infodump(2)
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    assert [(block.pid, block.status) for block in parse_infodumps(mixed)] == [(1, "NRT_TIMEOUT"), (2, "NRT_EXEC_OOB")]


def test_a_block_that_is_cut_off_is_told() -> None:
    (block,) = parse_infodumps(infodump(end=False))
    assert not block.whole and block.fields["lnc"] == "0"


def test_a_log_tells_what_came_first() -> None:
    later = OOB.replace("18:57:20", "18:57:30").replace("4444:4445", "9:9")
    story = read_story([later, OOB, STATUS, STATUS, *infodump()])
    assert story.first is not None
    assert (story.first.fact.name, story.first.pid, story.first.line) == ("oob-instruction", 4444, 2)
    assert story.first.values["instruction"] == "11"
    assert story.processes == {9, 4444}
    statuses = [event for event in story.events if event.fact.name == "NRT_EXEC_OOB"]
    assert [(event.line, event.count) for event in statuses] == [(3, 3)]  # two lines and the block's failure
    assert len(story.blocks) == 1


PIECES = st.sampled_from(
    [
        "2025-Sep-19 18:57:20.782962", " 4444:4444 ", " ERROR ", "NRT:nrt_infodump ", "[ cut here ]", "[ cut to here ]",
        "Failure: NRT_X in nrt_y()", "Environment:", "A=b", "status 1006", "err: 99999999", "NEURON_HW_ERR=", "=",
        "\x00", "[ND 0][NC 0]", "uncorrectable HBM memory error is detected", "NCC_EVRF036", "(", "\u0661", "\x1b[",
    ]
)  # fmt: skip
LINES = st.lists(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=8).map("".join)), max_size=12)


@given(LINES)
@example(infodump(end=False) * 2)
def test_any_lines_are_answered(lines: list[str]) -> None:
    story = read_story(lines)
    assert story.lines == len(lines)
    for line in lines:
        for mention in mentions(line):
            assert mention.fact.meaning


@given(st.integers(0, 10**6), st.text(max_size=3))
def test_mutated_blocks_are_answered(seed: int, text: str) -> None:
    whole = "\n".join(infodump())
    at = seed % len(whole)
    story = read_story((whole[:at] + text + whole[at + seed % 7 :]).splitlines())
    assert len(story.blocks) <= 2


def test_a_long_line_takes_no_time() -> None:
    assert read_story(["[ND 0][NC 0] " + "a b" * 200_000, "-" * 500_000]).events == []
