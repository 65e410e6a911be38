"""docs/isa-provenance.md is what declarations and counts say today, and the counts are of these declarations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from formats import isa
from tools import isa_counts, isa_provenance

REAL = [cls for cls in isa.CLASSES if cls.DIALECT == "neuron"]


@pytest.fixture(scope="module")
def text() -> str:
    return isa_provenance.page()


def test_the_page_is_fresh(root: Path, text: str) -> None:
    assert (root / isa_provenance.PATH).read_text(encoding="utf-8") == text, "run `python -m tools`"


def test_every_field_of_every_real_word_is_told(text: str) -> None:
    for cls in REAL:
        part = text.split(f"\n## {cls.NAME}\n")[1].split("\n## ")[0]
        rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| (\w+) \|", part, re.MULTILINE))
        own = {name: field.provenance for name, field in cls.FIELDS.items() if name not in isa.Instruction.HEADER}
        assert rows == own
    for cls in isa.CLASSES:
        assert f"| {cls.NAME} |" in text or f"[{cls.NAME}]" in text


def test_tables_have_as_many_cells_as_heads(text: str) -> None:
    table: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            table.append(line)
        else:
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table}) <= 1, table[:2]
            table = []


def test_counts_are_of_these_declarations() -> None:
    found = isa_counts.load()
    assert found["unknown"] == 0 and len(found["files"]) == 12
    names = {cls.NAME: cls for cls in REAL}
    total = 0
    for name, row in found["classes"].items():
        assert set(row["fields"]) == set(names[name].FIELDS), "run `python -m tools.isa_counts` on the corpus"
        here = row["words"] or row["loaded"]
        assert all(field["set"] <= here and 1 <= field["values"] <= here for field in row["fields"].values())
        assert row["text"] <= row["words"] and row["loaded_text"] <= row["loaded"]
        total += row["words"]
    assert total == sum(one["words"] for one in found["files"])


def test_a_field_that_files_set_is_not_ours() -> None:
    """What is ours has its fresh value in every real word; anything else would be a discovery."""
    for name, row in isa_counts.load()["classes"].items():
        for field, counted in row["fields"].items():
            if isa.BY_NAME[name].FIELDS[field].provenance == "ours":
                assert counted["set"] == 0, f"{name}.{field}"


def test_counts_renew_from_the_corpus(corpus: Path) -> None:
    folders = [corpus / "trainium-kernel-fusion"]
    if not folders[0].is_dir():
        pytest.skip("corpus has no trainium-kernel-fusion")
    kept, found = isa_counts.load(), isa_counts.counts(folders)
    known = {one["sha256"] for one in kept["files"]}
    assert {one["sha256"] for one in found["files"]} <= known
    for name, row in found["classes"].items():
        # Captures and profiles lie beside these files only.
        for key in ("loaded", "text", "loaded_text"):
            assert row[key] == kept["classes"][name][key], (name, key)
        assert row["words"] <= kept["classes"][name]["words"]
