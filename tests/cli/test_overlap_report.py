"""`neurontools overlap report`: shares, packet sizes, the trace, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import neurontools
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.emulator.machine.test_overlap import X, backlog


@pytest.fixture(scope="module")
def neff(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("overlap") / "b.neff"
    neurontools.build(backlog, X, target="trn1", lnc=1).save(path)
    return path


def test_shares_and_the_trace(cli: Cli, neff: Path, tmp_path: Path) -> None:
    trace = tmp_path / "t.json"
    ended = cli("overlap", "report", neff, "--ranks", 2, "--trace", trace)
    assert ended.status == 0, ended.err
    assert "of the time of collectives is hidden behind compute" in ended.out and "share of compute" in ended.out
    assert json.loads(trace.read_text())["traceEvents"]


def test_json_and_packet_sizes(cli: Cli, neff: Path) -> None:
    ended = cli("overlap", "report", neff, "--ranks", 2, "--dma-packet", 65536, "--cc-packet", 4096, "--json")
    (launch,) = checked_json(ended, "overlap report")["launches"]
    assert launch["compute_packet"] == 65536 and launch["collective_packets"] == [4096] * 4
    (met,) = launch["collectives"]
    assert met["source"].split("/")[-1].startswith("test_overlap.py:") and len(met["ranks"]) == 2
    for row in met["ranks"]:
        assert row["hidden_ps"] + row["exposed_ps"] == row["time_ps"] and row["trigger_ps"] == 1_000_000


def test_what_does_not_fit_is_refused(cli: Cli, neff: Path, tmp_path: Path) -> None:
    ended = cli("overlap", "report", neff, "--ranks", 2, "--cc-packet", "1MiB")
    assert ended.status == 6 and "may only shrink" in ended.error_line
    assert cli("overlap", "report", tmp_path / "no.neff", "--ranks", 2).status == 4
    assert cli("overlap", "report", neff).status == 2
