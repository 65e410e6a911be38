"""neuron-core(5) is what the declarations say."""

from __future__ import annotations

from pathlib import Path

from formats.core import NOTES, fields_of
from tools import core_manual


def test_page_is_fresh(root: Path) -> None:
    assert (root / core_manual.PATH).read_text() == core_manual.page(), "run `python -m tools`"


def test_every_note_and_field_is_documented() -> None:
    text = core_manual.page().replace("\\-", "-")
    for kind in NOTES.values():
        assert f'.SS "{kind.name} ({kind.number:#x})"' in text and kind.record.__doc__
        fields = list(fields_of(kind.record))
        assert [field.name for field in fields] == list(kind.record._fields)  # type: ignore[attr-defined]
        for field in fields:
            assert field.doc.endswith(".") and f"\\fB{field.name}\\fR ({field.type})" in text, (kind.name, field)
    assert all(len(kind.record._field_defaults) == len(kind.record._fields) for kind in NOTES.values())  # type: ignore[attr-defined]
