"""`neurontools arch topo`: drawings hold every chip and every link."""

from __future__ import annotations

import re

import pytest

from emulator.machine.instances import INSTANCES
from tests.cli.check import checked_json
from tests.cli.conftest import Cli

WIRED = [name for name, one in INSTANCES.items() if one.wiring != "unpublished"]


@pytest.mark.parametrize("name", WIRED)
def test_drawings_are_whole(cli: Cli, name: str) -> None:
    found = checked_json(cli("arch", "topo", name, "--json"), "arch topo")
    chips = INSTANCES[name].chips
    drawn = {int(number) for line in found["text"] for number in re.findall(r"nd(\d+)", line)}
    assert drawn == set(range(chips))
    dot = cli("arch", "topo", name, "--dot").out
    edges = {tuple(map(int, pair)) for pair in re.findall(r"nd(\d+) -- nd(\d+)", dot)}
    assert edges == {(link["a"], link["b"]) for link in found["links"]}
    assert dot.startswith(f'graph "{name}" {{') and dot.endswith("}\n")


def test_labels_of_the_torus(cli: Cli) -> None:
    text = cli("arch", "topo", "trn2.48xlarge").out
    assert "nd10 1111" in text and "~" in text
    assert "(nd0)" in cli("arch", "topo", "inf2.48xlarge").out


def test_what_has_not_been_published(cli: Cli) -> None:
    ended = cli("arch", "topo", "inf1.6xlarge")
    assert ended.status == 6 and "has not been published" in ended.error_line
