"""`neurontools memh show`: levels of every emulated chip."""

from __future__ import annotations

import pytest

from emulator.arch import ARCHS
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


@pytest.mark.parametrize("chip", ARCHS)
def test_levels(cli: Cli, chip: str) -> None:
    levels = {row["name"]: row for row in checked_json(cli("memh", "show", chip, "--json"), "memh show")["levels"]}
    assert list(levels) == ["PSUM", "SBUF", "HBM", "host"]
    assert levels["SBUF"]["size"]["value"] == 128 * ARCHS[chip].sbuf_bytes.value
    assert levels["HBM"]["size"]["value"] == ARCHS[chip].hbm_bytes.value


def test_a_chip_that_is_described_only(cli: Cli) -> None:
    assert cli("memh", "show", "inf1").status == 6
    assert cli("memh", "show", "gpu").status == 3
