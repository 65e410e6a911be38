"""`neurontools arch path`: ways between chips and ranks."""

from __future__ import annotations

from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def way(cli: Cli, *words: object) -> dict[str, object]:
    return dict(checked_json(cli("arch", "path", *words, "--json"), "arch path"))


def test_between_chips(cli: Cli) -> None:
    found = way(cli, "trn2.48xlarge", "--from", "nd0", "--to", "nd10")
    assert found["chips"] == [0, 1, 2, 6, 10] and found["latency_ns"] == 2100 and found["gigabytes_per_s"] == 128
    assert way(cli, "trn2.48xlarge", "--from", "r0", "--to", "r40") == found


def test_between_nodes_inside_a_chip_and_nowhere(cli: Cli) -> None:
    found = way(cli, "trn2.48xlarge", "--nodes", 2, "--from", "r0", "--to", "r64")
    assert found["chips"] == [] and found["latency_ns"] == 15000 and found["gigabytes_per_s"] == 6.25
    assert [hop["kind"] for hop in way(cli, "trn2.48xlarge", "--from", "0", "--to", "3")["hops"]] == ["chip"]  # type: ignore[attr-defined]
    assert "nothing to pass" in cli("arch", "path", "inf2.48xlarge", "--from", "nd1", "--to", "nd1").out


def test_what_makes_no_sense(cli: Cli) -> None:
    ended = cli("arch", "path", "trn2.48xlarge", "--from", "nd0", "--to", "nd16")
    assert ended.status == 4 and "no chip nd16: 1 x trn2.48xlarge have nd0 to nd15" in ended.error_line
    assert cli("arch", "path", "trn2.48xlarge", "--from", "here", "--to", "nd1").status == 2
    ended = cli("arch", "path", "inf1.xlarge", "--from", "nd0", "--to", "nd0")
    assert ended.status == 6 and "described, not executed" in ended.error_line
    assert cli("arch", "path", "inf2.48xlarge", "--nodes", 2, "--from", "nd0", "--to", "nd1").status == 6
