"""Manual pages are what the command line says today, and every one is installed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tools import manual_pages as man


def test_pages_are_fresh(root: Path) -> None:
    here = {name: (root / name).read_text() if (root / name).exists() else None for name in man.files()}
    stale = [name for name, text in man.files().items() if here[name] != text]
    assert not stale, f"run `python -m tools`: {', '.join(stale)}"


def test_no_page_of_a_command_that_is_gone(root: Path) -> None:
    assert {str(path.relative_to(root)) for path in root.glob(man.OWNS)} == set(man.files())


def test_every_page_is_installed(root: Path) -> None:
    wheel = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["shared-data"] == {"man": "share/man"}
    for path in (root / "man").rglob("*"):
        assert path.is_dir() or path.parent == root / "man" / f"man{path.suffix[1:]}", path


@pytest.mark.parametrize("name", sorted(man.pages()))
def test_page_has_its_sections_and_every_option(name: str) -> None:
    text = man.pages()[name]
    for section in (".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH EXIT STATUS"):
        assert section in text
    words = name.removesuffix(".1").removeprefix("neurontools").removeprefix("-")
    command = {known.replace(" ", "-"): found for known, found in man.commands()}[words]
    for parameter in command.params:
        if parameter.param_type_name == "option":
            assert parameter.help, f"{name}: {parameter.opts} has no help"
            for flag in [*parameter.opts, *parameter.secondary_opts]:
                assert flag.replace("-", "\\-") in text
