"""Kinds of findings that no fault of `tests/faults` plants, on one rank of two: found there, not on a clean twin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.runtime.ranks import Ranks, execute_ranks
from formats.neff import Neff
from neurontools.nki.launch import build_neff
from tests.checks import test_lint as lint
from tests.checks import test_rings as rings
from tests.checks.support import assembled
from tests.checks.test_kernels_refused import PIPES
from tests.cli.conftest import Cli, cli
from tests.faults.assembled import BASE, INPUTS, planted

__all__ = ["cli"]  # a fixture

ONES = np.ones((lint.P, lint.W), np.float32)
_WAITS = "    COPY S[5]>=1 S[6]++@complete"


class OnRank(NamedTuple):
    """A program with a fault, its twin without, what both take, the check and the kind of its finding."""

    fault: Callable[[], Neff]
    twin: Callable[[], Neff]
    inputs: dict[str, Any]
    tool: str
    kind: str


def infinite(x: Any, scale: float) -> Any:
    out, a = lint.shared(), lint.tile()
    nisa.dma_copy(dst=a, src=x)
    nisa.activation(dst=a, op=nl.exp, data=a, scale=scale)
    nisa.dma_copy(dst=out, src=a)
    return out


def built(kernel: Callable[..., Any], *arguments: Any) -> Neff:
    neff: Neff = build_neff(kernel, arguments, {}, target="trn2")
    return neff


CASES = {
    "inf": OnRank(lambda: built(infinite, ONES, 99.0), lambda: built(infinite, ONES, 1.0), {"x": ONES},
                  "nancheck", "inf"),
    "dead store": OnRank(lambda: built(lint.dead, ONES), lambda: built(lint.once, ONES), {"x": ONES},
                         "lint", "dead-store"),
    "reload": OnRank(lambda: built(lint.twice, ONES), lambda: built(lint.once, ONES), {"x": ONES}, "lint", "reload"),
    "redundant wait": OnRank(lambda: assembled(planted(((_WAITS, f"    NOP S[40]>=16 cycle=0\n{_WAITS}"),))),
                             lambda: assembled(BASE), dict(INPUTS), "lint", "redundant-wait"),
    "ring full": OnRank(lambda: rings.built(500), lambda: rings.built(60), {"x": rings.X}, "synccheck", "ring-full"),
}  # fmt: skip


@pytest.mark.parametrize("faulty", [0, 1])
@pytest.mark.parametrize("one", CASES.values(), ids=CASES)
def test_found_on_its_rank_alone(one: OnRank, faulty: int) -> None:
    neffs = [one.twin(), one.twin()]
    neffs[faulty] = one.fault()
    given = [dict(zip((each.name for each in neff.inputs), one.inputs.values(), strict=True)) for neff in neffs]
    found = execute_ranks(neffs, given, Ranks(2), checks=(one.tool,))
    kinds = [{finding.kind for finding in result.findings} for result in found.results]
    assert found.ok and kinds[faulty] == {one.kind} and kinds[1 - faulty] == set()


@pytest.mark.parametrize("bad", [True, False])
def test_pipes_that_do_not_meet_on_one_rank(cli: Cli, tmp_path: Path, bad: bool) -> None:
    """The front end says so before anything runs: `check` has it as a finding at the line, with ranks too."""
    file = tmp_path / "kernel.py"
    pipe = 'rank if os.environ["RANK"] == "1" else 7' if bad else "7"
    file.write_text("import os\n" + PIPES.format(pipe=pipe))
    ended = cli("check", file, "--ranks", 2, "--json")
    found = ended.json["result"]["findings"]
    assert ended.status == int(bad) and [(one["tool"], one["kind"]) for one in found] == [("synccheck", "pipe")] * bad
    line = next(number for number, text in enumerate(PIPES.splitlines(), 2) if "sendrecv" in text)
    assert all(one["site"]["source"]["line"] == line for one in found)
