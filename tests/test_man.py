"""Manual pages are what the command line says today, and every one is installed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from neurontools import man


def test_pages_are_fresh(root: Path) -> None:
    stale = [
        name
        for name, text in man.pages().items()
        if not (root / "man" / name).exists() or (root / "man" / name).read_text() != text
    ]
    assert not stale, f"run `python -m neurontools.man`: {', '.join(stale)}"


def test_no_page_of_a_command_that_is_gone(root: Path) -> None:
    assert {p.name for p in (root / "man").glob("neurontools*.1")} == set(man.pages())


def test_every_page_is_installed(root: Path) -> None:
    shared = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
        "shared-data"
    ]
    assert shared == {f"man/{p.name}": f"share/man/man{p.suffix[1:]}/{p.name}" for p in (root / "man").iterdir()}


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


def test_write_takes_pages_of_gone_commands_away(tmp_path: Path) -> None:
    (tmp_path / "neurontools-gone.1").write_text("old")
    (tmp_path / "neuron-isa.7").write_text("not ours")
    assert len(man.write(tmp_path)) == len(man.pages()) + 1
    assert not (tmp_path / "neurontools-gone.1").exists()
    assert (tmp_path / "neuron-isa.7").read_text() == "not ours"
    assert man.write(tmp_path) == []
