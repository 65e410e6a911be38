"""`neurontools arch show`: figures of instances and chips, what is only described, what is not there."""

from __future__ import annotations

import pytest

from emulator.machine.instances import INSTANCES
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_every_instance_is_listed_and_shown(cli: Cli) -> None:
    listed = checked_json(cli("arch", "show", "--json"), "arch show")["instances"]
    assert [one["name"] for one in listed] == list(INSTANCES)
    for one in listed:
        shown = checked_json(cli("arch", "show", one["name"], "--json"), "arch show")
        assert (shown["name"], shown["chips"], shown["emulated"]) == (one["name"], one["chips"], one["emulated"])
        assert len(shown["devices"]) == one["chips"]


@pytest.mark.parametrize(("lnc", "cores", "last"), [(1, 128, "120-127"), (2, 64, "60-63")])
def test_visible_cores_go_by_lnc(cli: Cli, lnc: int, cores: int, last: str) -> None:
    shown = checked_json(cli("arch", "show", "trn2.48xlarge", "--lnc", lnc, "--json"), "arch show")
    assert shown["cores"] == cores and shown["devices"][15]["core_ids"] == last
    assert shown["devices"][0]["connected"] == [12, 3, 4, 1] and shown["devices"][0]["bdf"] == "0000:cc:00.0"
    assert [row["hbm"] for row in shown["core_table"]] == ([0, 0, 1, 1, 2, 2, 3, 3] if lnc == 1 else [0, 1, 2, 3])


def test_text_says_how_numbers_are_known(cli: Cli) -> None:
    text = cli("arch", "show", "trn2.48xlarge").out
    assert "hbm_bytes" in text and "24 GiB per stack" in text and "documented" in text and "inferred" in text
    assert text.splitlines()[-1].startswith("sources: neurontools reference machine.md")
    assert "described only: programs for it are refused" in cli("arch", "show", "inf1").out
    assert "not published" in cli("arch", "show", "inf1.24xlarge").out


def test_what_is_not_there(cli: Cli) -> None:
    ended = cli("arch", "show", "trn2.47xlarge")
    assert ended.status == 4 and "did you mean trn2.48xlarge" in ended.error_line
    ended = cli("arch", "show", "inf2.48xlarge", "--lnc", 2)
    assert ended.status == 6 and "NCC_EARG001" in ended.error_line
