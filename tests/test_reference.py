"""Every cite leads to a section of docs/reference, and every cite that a person sees can be opened."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from formats.cites import PAGES, Key, how_to_open, keys, markdown
from formats.errors import NotFoundError
from neurontools.command.output import report
from neurontools.reference.pages import folder, page, section

PACKAGES = ("formats", "emulator", "neurontools", "tools")
_WRAPPED = re.compile(r"\n\s*(?:# ?)?")
_NUMBERED = re.compile(r"^(?:##|###(?= \d+\.)) (\d+(?:\.\d+)*) ", re.MULTILINE)


def _sections(name: str) -> set[str]:
    return {heading.number for heading in page(name).sections}


@pytest.mark.parametrize("package", [*PACKAGES, "tests", "docs"])
def test_every_cite_names_a_section_that_is_there(package: str, root: Path) -> None:
    known = {name: _sections(name) for name in PAGES}
    files = sorted(p for p in (root / package).rglob("*") if p.suffix in (".py", ".s", ".md", ".csv", ".json"))
    assert files
    lost = [
        f"{path.relative_to(root)}: {key.page} {key.number}"
        for path in files
        if path.name != "test_reference.py"
        for key in keys(_WRAPPED.sub(" ", path.read_text(encoding="utf-8")))
        if key.number and key.number not in known[key.page]
    ]
    assert not lost


def test_code_cites_no_page_that_nobody_can_open(root: Path) -> None:
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            for name in re.findall(r"\b(\w+\.md) \d", path.read_text(encoding="utf-8")):
                assert name in PAGES, f"{path.relative_to(root)} cites {name}"


@pytest.mark.parametrize("name", PAGES)
def test_every_section_has_its_anchor_and_a_text(name: str) -> None:
    text = (folder() / name).read_text(encoding="utf-8")
    assert _NUMBERED.findall(text) == [heading.number for heading in page(name).sections]
    for number in _sections(name):
        found = section(Key(name, number))
        assert found.path.endswith(f"{name}#{number.replace('.', '-')}")
        assert len(found.text.splitlines()) > 1 and "<a id=" not in found.text


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_its_public_sources(name: str) -> None:
    text = (folder() / name).read_text(encoding="utf-8")
    assert "aws-neuron/aws-neuron-sdk" in text or "aws-neuron-sdk" in text
    assert not re.search(r"decompil|leaked|\bTODO\b", text)


@pytest.mark.parametrize(
    ("cite", "expected"),
    [
        ("hardware.md 5.1", ["hardware.md 5.1"]),
        ("hardware.md 3.9, 8.1: A-1, A-2", ["hardware.md 3.9", "hardware.md 8.1"]),
        ("runtime.md 2, 3, 11, formats.md 2, 3, AWS", ["runtime.md 2", "runtime.md 3", "runtime.md 11", "formats.md 2",
                                                       "formats.md 3"]),
        ("isa.md 14: 328,305 words", ["isa.md 14"]),
        ("profiles of formats.md 1.1: 300", ["formats.md 1.1"]),
        ("hardware.md 2.1: 130.46 GB/s shown as 31.82 %", ["hardware.md 2.1"]),
        ("hardware.md 4.1; profiles: 158 ns", ["hardware.md 4.1"]),
        ("isa.md 7 (41)", ["isa.md 7"]),
        ("isa.md 12.", ["isa.md 12"]),
        ("hardware.md 5.1 to 5.3", ["hardware.md 5.1", "hardware.md 5.3"]),
        ("hardware.md 3.3 5.1", ["hardware.md 3.3", "hardware.md 5.1"]),
        ("isa.md, hardware.md 1", ["isa.md ", "hardware.md 1"]),
        ("nki-library, design-rmsnorm-quant.rst", []),
    ],
)  # fmt: skip
def test_keys_of_a_cite(cite: str, expected: list[str]) -> None:
    assert [f"{key.page} {key.number}" for key in keys(cite)] == expected


def test_a_cite_becomes_a_command_and_a_link() -> None:
    assert how_to_open("hardware.md 3.3, 5.1", "isa.md 2", "hardware.md 5.1: x") == (
        "neurontools reference hardware.md 3.3 5.1 isa.md 2"
    )
    assert how_to_open("public header nrt_status.h") == ""
    assert keys(how_to_open("hardware.md 3.3, 5.1", "isa.md 2").removeprefix("neurontools reference ")) == [
        Key("hardware.md", "3.3"),
        Key("hardware.md", "5.1"),
        Key("isa.md", "2"),
    ]
    assert markdown("see isa.md 2, 11 (a0); isa.md.", "reference") == (
        "see [isa.md 2](reference/isa.md#2), [11](reference/isa.md#11) (a0); [isa.md](reference/isa.md)."
    )


def test_a_section_that_is_not_there() -> None:
    with pytest.raises(NotFoundError, match=r"nki.md has no section 3; it has 0, 1, 2, 4"):
        section(Key("nki.md", "3"))


def test_a_report_that_cites_ends_with_the_command_that_opens_it(capsys: pytest.CaptureFixture[str]) -> None:
    with report("neff load-check") as out:
        out.lines = lambda: ["one  [hardware.md 3.3, 5.1]", "two  formats.md 2.4", "three"]
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "sources: neurontools reference hardware.md 3.3 5.1 formats.md 2.4"
    with report("neff load-check") as out:
        out.lines = lambda: ["README.md 5 bytes"]
    assert capsys.readouterr().out == "README.md 5 bytes\n"


def test_wheels_carry_the_pages(root: Path) -> None:
    import tomllib

    wheel = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"docs/reference": "neurontools/reference/pages"}
