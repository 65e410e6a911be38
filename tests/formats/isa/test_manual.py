"""neuron-isa(7) is what the declarations say today, complete, and clean roff."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from formats import isa
from formats.isa import enums
from tools import isa_manual


@pytest.fixture(scope="module")
def text() -> str:
    return isa_manual.page()


def test_the_page_is_fresh(root: Path, text: str) -> None:
    assert (root / isa_manual.PATH).read_text(encoding="utf-8") == text, "run `python -m tools`"


def test_every_class_and_field_is_told_with_its_provenance(text: str) -> None:
    for cls in isa.CLASSES:
        part = text.split(f'.SS "{cls.NAME} (')[1].split("\n.SS ")[0]
        assert f"Word: {cls.PROVENANCE}" in part and cls.synopsis().replace("-", "\\-") in part
        rows = [line.split("|")[1] for line in part.split("\n") if line.endswith("|T{")]
        assert sorted(rows) == sorted(set(cls.FIELDS) - set(cls.HEADER))
    header = text.split(".SH WORD HEADER")[1].split(".SH ")[0]
    assert all(f"|{name}|" in header for name in isa.Instruction.HEADER)


def test_every_enumeration_is_told(text: str) -> None:
    for name in enums.__all__:
        part = text.split(f'.SS "{name}"')[1].split("\n.SS ")[0]
        for member in getattr(enums, name):
            assert f"0x{int(member):02x}|{member.name}|T{{" in part
    for word in ("SUBTRACT|T{\nours", "GELU|T{\nours", "ADD|T{\n\nT}"):
        assert word in text


def test_chapters(text: str) -> None:
    chapters = [line[4:] for line in text.split("\n") if line.startswith(".SH ")]
    assert chapters == [
        "NAME",
        "DESCRIPTION",
        "WORD HEADER",
        "TEXT",
        "ADDRESSES",
        "RULES",
        "INSTRUCTIONS",
        "EXTENSION WORDS",
        "ENUMERATIONS",
        "SEE ALSO",
    ]
    before, behind = text.split(".SH EXTENSION WORDS")
    assert "MATMUL (0x02)" in before and "TENSOR_TENSOR_SCAN (code 1" in behind and "(code" not in before


LINTERS = [["mandoc", "-Tlint", "-W", "warning"], ["groff", "-t", "-man", "-Tutf8", "-ww", "-z"]]


@pytest.mark.parametrize("command", LINTERS, ids=lambda c: c[0])
def test_the_roff_is_clean(command: list[str], tmp_path: Path, text: str) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    path = tmp_path / Path(isa_manual.PATH).name
    path.write_text(text, encoding="utf-8")
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    assert (done.stdout + done.stderr).splitlines() == []
