"""`neurontools arch diff`: what two chips or instances do not share."""

from __future__ import annotations

from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_inf2_is_not_trn1(cli: Cli) -> None:
    ended = cli("arch", "diff", "inf2", "trn1", "--json")
    rows = {row["name"]: row for row in checked_json(ended, "arch diff")["rows"] if row["part"] == "chip"}
    assert ended.status == 1
    assert {name for name, row in rows.items() if not row["same"]} == {"links", "link_bandwidth"}
    text = cli("arch", "diff", "inf2", "trn1").out
    assert "192 GiB/s per chip" in text and "384 GiB/s per chip" in text and "hbm_stacks" not in text
    assert "hbm_stacks" in cli("arch", "diff", "inf2", "trn1", "--all").out


def test_the_same_and_the_unknown(cli: Cli) -> None:
    assert cli("arch", "diff", "trn2", "trn2").status == 0
    assert cli("arch", "diff", "trn2", "trn9").status == 4
