"""`neurontools doctor numa`."""

from __future__ import annotations

import pytest

from emulator.machine.hosts import HOSTS
from formats.nrt.environment import parse_cpus
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_the_documented_lists(cli: Cli) -> None:
    result = checked_json(cli("doctor", "numa", "--json"), "doctor numa")
    assert result["low_latency"] == "40-47,88-95,136-143,184-191" and result["provenance"] == "documented"
    assert result["taskset"] == "0-39,48-87,96-135,144-183"
    (row,) = checked_json(cli("doctor", "numa", "--nc", "17", "--json"), "doctor numa")["rows"]
    assert (row["device"], row["node"], row["cpus"], row["cores"]) == (4, 0, "0-47,96-143", [16, 17, 18, 19])
    ones = checked_json(cli("doctor", "numa", "--lnc", "1", "--json"), "doctor numa")["rows"]
    assert [core for row in ones for core in row["cores"]] == [*range(128)]


@pytest.mark.parametrize("instance", sorted(HOSTS))
def test_lists_are_balanced_and_whole(cli: Cli, instance: str) -> None:
    result = checked_json(cli("doctor", "numa", "--instance", instance, "--json"), "doctor numa")
    kept, others = parse_cpus(result["low_latency"]), parse_cpus(result["taskset"])
    assert kept and others and sorted(kept + others) == [*range(result["vcpus"])]
    nodes = {row["node"]: set(parse_cpus(row["cpus"]) or ()) for row in result["rows"]}
    assert len({len(cpus & set(kept)) for cpus in nodes.values()}) == 1


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("--nc", "64"), 4), (("--instance", "x"), 4), (("--instance", "trn1.2xlarge"), 6),
     (("--instance", "trn1.32xlarge", "--lnc", "2"), 6)],
)  # fmt: skip
def test_bad_options(cli: Cli, arguments: tuple[str, ...], status: int) -> None:
    assert cli("doctor", "numa", *arguments).status == status
