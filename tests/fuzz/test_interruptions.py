"""Some kills, full disks and simultaneous writers; `python -m tests.fuzz.interruptions` does a thousand."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import typer

from neurontools.cli import app
from tests.fuzz.interruptions import Stage, disk_full, killed, many_at_once, mounted
from tests.fuzz.writers import ELSEWHERE, WRITERS, Writer

BY_OPTION = {writer.option: writer for writer in WRITERS}
SOME = ("asm --output", "neff unpack", "cc run --outputs", "compile model --output")
# What the help of an option that writes says; `--allow-writes`, `--raw` and the like only say how.
_WRITES = re.compile(r"^(Write|Save|Record|Where the (module|events) go|Have neuron-dump write)|(file|NEFF) to write")
_HOW = {"asm --raw", "sysfs mount --once", "shim --only", "arch topo --dot"}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(tmp_path_factory.mktemp("interrupted"))


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    context = click.Context(command)
    if not hasattr(command, "list_commands"):
        yield " ".join(path), command
        return
    for name in command.list_commands(context):
        yield from commands(command.get_command(context, name), (*path, name))


def test_every_option_that_writes_is_disturbed() -> None:
    found = {
        f"{name} {option.opts[0]}"
        for name, command in commands(typer.main.get_command(app))
        for option in command.params
        if option.param_type_name == "option" and _WRITES.search(option.help or "")
    }
    known = {option for option in (*BY_OPTION, *ELSEWHERE) if " --" in option}
    assert found - _HOW == known


@pytest.mark.parametrize("option", SOME)
def test_killed_between_two_operations_on_files(stage: Stage, option: str) -> None:
    assert killed(stage, BY_OPTION[option], random.Random(option), 3) == []


@pytest.mark.parametrize("option", SOME)
def test_a_full_disk_is_an_error_that_names_the_file(stage: Stage, option: str, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", 1) as folder:
        if folder is None:
            pytest.skip("this machine lets us mount no small file system")
    assert disk_full(stage, BY_OPTION[option], tmp_path / "disk", 0) == []


def test_many_writers_of_one_place(stage: Stage) -> None:
    assert many_at_once(stage, BY_OPTION["neff unpack"], 4) == []
    assert many_at_once(stage, BY_OPTION["asm --output"], 4) == []


def test_the_harness_sees_half_a_file(stage: Stage, tmp_path: Path) -> None:
    writer: Writer = BY_OPTION["asm --output"]
    data = stage.undisturbed(writer)[writer.out]
    for content, wrong in ((data, 0), (data[:-1], 1), (b"", 1), (b"what stood here before\n", 0)):
        (tmp_path / writer.out).write_bytes(content)
        assert len(stage.wrong(writer, tmp_path)) == wrong
    (tmp_path / "left").write_bytes(b"x")
    assert len(stage.wrong(writer, tmp_path)) == 1
