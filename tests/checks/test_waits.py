"""Dropping any wait of a built kernel gives a race, or the tool's own report says that the wait is redundant."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.checks.waits import judge_waits
from emulator.device import Device
from formats import isa
from formats.neff import open_neff
from neurontools.builder import build
from tests.builder.test_end_to_end import pair
from tests.checks.kernels import KERNELS, built
from tests.checks.support import checked, drop_wait, serious, waits_of


@pytest.mark.parametrize("name", ["softmax", "matmul", "pipeline"])
def test_every_dropped_wait_is_found_or_redundant(name: str) -> None:
    neff, inputs = built(name)
    found, device = checked(neff, inputs)
    assert serious(found) == [] and device.outcome == "finished"
    expected = {tensor: array.tobytes() for tensor, array in device.outputs().items()}
    verdicts = {verdict.place: verdict for verdict in judge_waits(neff, inputs)}
    fresh = Device(neff.target, len(neff.subgraphs))
    fresh.load(neff)
    places = list(waits_of(fresh))
    assert set(places) == set(verdicts) and any(verdict.needed for verdict in verdicts.values())
    for place in places:
        races, device = checked(neff, inputs, ("racecheck",), edit=drop_wait(place))
        assert bool(races) == verdicts[place].needed, (place, verdicts[place].condition)
        if not races:
            # Redundant: no schedule gives another result.
            for seed in range(2):
                _, device = checked(neff, inputs, ("racecheck",), edit=drop_wait(place), seed=seed)
                assert {t: a.tobytes() for t, a in device.outputs().items()} == expected, place


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_built_kernels_are_clean(name: str, target: str) -> None:
    neff, inputs = built(name, target)
    for seed in (None, 1):
        found, device = checked(neff, inputs, seed=seed)
        assert serious(found) == [], "\n".join(finding.text() for finding in serious(found))
        assert device.outcome == "finished"


def test_ragged_rows_are_a_note_and_undefined_rows_a_finding() -> None:
    """The last tile of 44 rows computes on 128 rows; only those that are stored matter."""
    neff, inputs = built("dead_rows")
    found, _ = checked(neff, inputs, ("initcheck",))
    assert {finding.kind for finding in found} == {"unwritten-read"} and serious(found) == []
    neff, inputs = built("stored_rows")
    found, device = checked(neff, inputs, ("initcheck",))
    (finding,) = serious(found)
    assert (finding.kind, finding.details["bytes"]) == ("undefined-output", 84 * 16 * 4)
    assert finding.site.owner == "Activation" or finding.site.owner == "DVE"
    assert np.isnan(next(iter(device.outputs().values()))[44:]).all()
    assert finding.tensor and finding.other is not None


def test_cores_that_do_not_meet() -> None:
    """Two programs pass tiles through HBM and to each other: in order with their barriers, a race without."""
    neff = open_neff(build(pair(), "pair").to_bytes())
    inputs = {"x": np.ones((256, 64), np.float32)}
    assert len(neff.subgraphs) == 2
    for seed in (None, 1, 2):
        assert serious(checked(neff, inputs, seed=seed)[0]) == []

    def drop_barriers(device: Device) -> None:
        for core in device.cores:
            for engine in core.engines.values():
                words = engine.words
                assert isinstance(words, list)
                for at, loaded in enumerate(words):
                    if isinstance(loaded.word, isa.CoreBarrier):
                        words[at] = loaded.with_word(
                            isa.Nop.from_raw(isa.Nop().raw[:4] + loaded.word.raw[4:12] + isa.Nop().raw[12:])
                        )

    found, _ = checked(neff, inputs, ("racecheck",), edit=drop_barriers)
    across = [finding for finding in found if finding.others and finding.site.core != finding.others[0].core]
    spaces = {finding.region.space for finding in across if finding.region is not None}
    assert spaces == {"HBM", "SBUF"}
