"""What every finding says: each field that applies is filled in, and the command it names shows it again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neurontools.check.rows import finding_row
from neurontools.command.results import plain
from tests.cli.conftest import Cli, cli
from tests.faults.assembled import FAULTS, INPUTS, planted
from tests.faults.model import Planted, fits
from tests.faults.test_faults import IDS, PLANTED

__all__ = ["cli"]  # a fixture

# What does not apply, and why.
NO_BYTES = {"synccheck"}  # it is about counters, not about memory: `details` has them
NO_RANGE = {"memcheck:operand", "memcheck:access", "memcheck:semaphore", "memcheck:branch", "memcheck:rule",
            "memcheck:table", "initcheck:undefined-register"}  # fmt: skip
# Words that name device addresses, and words that an engine does not have.
NO_OPERAND = {"initcheck:undefined-register", "memcheck:oob", "memcheck:access", "memcheck:semaphore",
              "memcheck:operand"}  # fmt: skip
ONE_SIDE = {"memcheck", "initcheck:undefined-register", "initcheck:unwritten-read", "initcheck:undefined-fault",
            "racecheck:output-not-awaited", "racecheck:overlap", "racecheck:in-place",
            "racecheck:duplicate-index", "memcheck:table", "synccheck:never-triggered",
            "synccheck:count-mismatch", "synccheck:never-signalled", "synccheck:event-left",
            "synccheck:leftover"}  # fmt: skip
OFF_CHIP = {"host"}  # has no words, lines and operands


@pytest.mark.parametrize("one", PLANTED, ids=IDS)
def test_every_field_that_applies_is_there(one: Planted) -> None:
    program, wanted = one.fault()
    found = next(finding for finding in program.findings() if fits(finding, wanted))
    found.reproduce = "again"
    data = json.loads(json.dumps(plain(finding_row(found))))
    name = f"{found.tool}:{found.kind}"
    for key in ("id", "tool", "kind", "severity", "message", "hint", "reproduce"):
        assert data[key], key
    assert data["count"] >= 1
    if found.tool not in NO_BYTES and name not in NO_RANGE and not (name == "memcheck:oob" and data["range"] is None):
        place = data["range"]
        assert place["space"] in ("SBUF", "PSUM", "HBM") and place["bytes"] > 0 and place["partitions"] > 0
        assert place["partition"] >= 0 and place["byte"] >= 0
        if place["space"] == "HBM":
            assert data["tensor"]
    if found.tool in NO_BYTES and found.kind not in ("count-mismatch", "livelock"):
        assert data["details"]
    own_store = found.kind == "undefined-output" and found.site.engine != found.site.owner
    assert data["others"] or {name, found.tool} & ONE_SIDE or own_store
    for number, site in enumerate((data["site"], *data["others"])):
        if site["owner"] in OFF_CHIP or site["pc"] is None:
            continue
        assert site["instruction"] and site["engine"] and site["core"] >= 0
        if site["source"] is None:  # only words that the builder adds have no line
            assert number and found.kind == "barrier"
            continue
        assert site["source"]["file"] and site["source"]["line"] > 0
        if site["source"]["file"].endswith(".py"):
            assert site["code"] and site["code"] in [line["text"].strip() for line in site["context"]]
            assert len(site["context"]) == 3
        if number == 0 and found.tool != "synccheck" and name not in NO_OPERAND:
            assert site["operand"]
        if found.tool == "racecheck" and found.kind != "in-place":  # which the word shows without a run
            assert site["clock"] > 0 and site["time_ps"] > 0 and site["access"]


CHOSEN = ["the sum is not awaited", "half of the output", "an event set twice", "an operand behind SBUF",
          "two engines wait for each other", "a semaphore beyond 32 bits"]  # fmt: skip


@pytest.mark.parametrize("name", CHOSEN)
def test_the_command_shows_it_again(cli: Cli, tmp_path: Path, name: str) -> None:
    file, inputs = tmp_path / "planted.s", tmp_path / "inputs.npz"
    file.write_text(planted(FAULTS[name].changes))
    np.savez(inputs, **INPUTS)
    first = cli("check", file, "--inputs", inputs, "--seed", 3, "--json")
    wanted = {one["id"]: one for one in first.json["result"]["findings"]}
    assert first.status == 1 and wanted
    for one in wanted.values():
        command = shlex.split(one["reproduce"])
        assert command[0] == "neurontools"
        again: dict[str, Any] = {f["id"]: f for f in cli(*command[1:], "--json").json["result"]["findings"]}
        assert one["message"] == again[one["id"]]["message"]
