"""Reports of device memory: the documented ones read and printed again, damage, sums that do not add up."""

from __future__ import annotations

import random

import pytest

from formats.errors import FormatError
from formats.nrt.memory import BY_KEY, CATEGORIES, HOST_USES, MONITOR_KEYS, USES
from formats.nrt.memory_sizes import parse_size, size_text
from formats.nrt.oom import TABLE_FILE, OomRow, OomTable, model_block, table_file, table_lines
from formats.nrt.oom_reading import read_memory_report
from tests.nrt.memory_reports import DOCUMENTED_BLOCK, DOCUMENTED_EXCERPT, DOCUMENTED_LIST, DOCUMENTED_TABLE


def test_the_documented_table_prints_again_to_the_byte() -> None:
    lines = DOCUMENTED_TABLE.splitlines()
    report = read_memory_report(lines)
    assert table_lines(report.table) == lines[5:]
    assert report.problems == () and (report.lnc, report.sharing) == (1, (4, 5))
    (failure,) = report.failures
    assert failure[1:] == (4 << 30, "none", "tensors", 0, 4)
    models = {row.number: row.total for row in report.table.rows if row.kind == "model"}
    assert abs(models[1001] - 270_240) <= 2  # each printed size is good to half of its last digit


def test_the_documented_excerpt() -> None:
    """Its row is cut, and two of its cells are one blank off what the rule gives: shortened by hand."""
    lines = DOCUMENTED_EXCERPT.splitlines()
    report = read_memory_report(lines)
    (row,) = report.table.rows
    assert (row.label, row.values["shared_scratchpad"], row.values["scratchpad"]) == ("ND 0 HBM 0", 9 << 30, 8749922124)
    assert "rings_spill" not in row.values and report.problems == ()
    again = table_lines(report.table)[2]
    shown = lines[5].removesuffix(" ...").rstrip("|")
    assert [cell.strip() for cell in again.split("|")][:9] == [cell.strip() for cell in shown.split("|")]
    moved = [n for n, (a, b) in enumerate(zip(again.split("|"), shown.split("|"), strict=False)) if a != b]
    assert moved == [5, 6]


def test_the_documented_list_and_block() -> None:
    (found,) = read_memory_report(DOCUMENTED_LIST.splitlines()).lists
    assert found.values == {"shared_scratchpad": 9 << 30, "scratchpad": 8749922124} and found.name is None
    report = read_memory_report(DOCUMENTED_BLOCK.splitlines())
    (block,) = report.blocks
    assert (block.name, block.total, block.device, block.core) == ("out-test0_meta_concat3", 236_095, 0, 0)
    assert model_block("out-test0_meta_concat3", block.values) == DOCUMENTED_BLOCK.splitlines()[3:]
    assert report.problems == ()


@pytest.mark.parametrize("nbytes", [0, 1, 1023, 1024, 29_248, (1 << 20) - 1, 1 << 20, 100_669_644, 20 << 30, 1 << 45])
def test_sizes_print_as_they_are_read(nbytes: int) -> None:
    text = size_text(nbytes)
    assert size_text(parse_size(text)) == text
    assert abs(parse_size(text) - nbytes) <= max(1, nbytes / 1000)


@pytest.mark.parametrize("text", ["", "1.0", "-1.000KB", "1.000TB", "x", "1e3KB", "9" * 13 + "B", "1.000kb"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(FormatError):
        parse_size(text)


def random_values(rng: random.Random, *, model: bool = False) -> dict[str, int | None]:
    def number() -> int:
        return rng.choice((0, rng.randrange(1 << 12), rng.randrange(1 << 22), rng.randrange(1 << 34)))

    return {one.key: None if model and not one.by_model else number() for one in CATEGORIES}


def test_random_tables_print_as_they_are_read() -> None:
    rng = random.Random(7)
    for _ in range(60):
        rows = [OomRow("device", rng.randrange(16), random_values(rng), rng.choice((None, 1)))]
        rows += [OomRow("core", rng.randrange(9999), random_values(rng))]
        rows += [OomRow("model", rng.randrange(9999), random_values(rng, model=True)) for _ in range(2)]
        lines = table_lines(OomTable(tuple(rows), {5: 'a "quoted" name'}))
        again = read_memory_report(lines)
        assert table_lines(again.table) == lines
        assert not [problem for problem in again.problems if problem.startswith("line")]


def test_numbers_that_contradict_each_other_are_named() -> None:
    bad = DOCUMENTED_TABLE.replace(" 34.344KB |   n/a", " 94.344KB |   n/a")
    (problem,) = read_memory_report(bad.splitlines()).problems
    assert "NEFF 1001" in problem and "line 10" in problem
    bad = DOCUMENTED_TABLE.replace("ND 0 Overall  | 20.188GB", "ND 0 Overall  | 21.188GB")
    assert any("its cores have" in one for one in read_memory_report(bad.splitlines()).problems)
    bad = DOCUMENTED_BLOCK.replace("runtime: 95", "runtime: 75")
    assert len(read_memory_report(bad.splitlines()).problems) == 1


def test_damaged_rows() -> None:
    for old, new in (("28.562KB", "28,562KB"), ("| 28.562KB ", ""), ("57.000KB", "57.000QB")):
        with pytest.raises(FormatError):
            read_memory_report(DOCUMENTED_TABLE.replace(old, new).splitlines(), "oom.log")
    with pytest.raises(FormatError, match="unknown category"):
        read_memory_report(["Overall HBM usage", " * wonders: 1.000KB"])


def test_columns_in_another_order_are_read_by_their_heading() -> None:
    lines = DOCUMENTED_TABLE.splitlines()
    swapped = ["|".join(p[i] for i in (0, 1, 3, 2, *range(4, len(p)))) if len(p := line.split("|")) > 3 else line
               for line in lines]  # fmt: skip
    assert read_memory_report(swapped).table == read_memory_report(lines).table


def test_names_are_whole() -> None:
    """Every use has a category, every category the names of every tool."""
    assert {use.category for use in USES.values()} == set(BY_KEY)
    assert {one.monitor for one in CATEGORIES} <= set(MONITOR_KEYS) >= set()
    assert set(HOST_USES.values()) == {"application_memory", "constants", "dma_buffers", "tensors"}
    assert TABLE_FILE.fullmatch(table_file(3, 1)).groups() == ("3", "1")  # type: ignore[union-attr]
    assert OomRow("core", 1, {}).total == 0
