"""Faults over ranks, beside the same programs without: collectives nobody comes to, and races with CC-cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import neurontools
import neurontools.nki.collectives as ncc
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.checks import Finding, make_checks
from emulator.machine.machine import Machine
from emulator.machine.ranks.machine import RankedMachine
from formats import isa
from formats.neff import Neff
from tests.checks.support import checked

X = np.ones((32, 8), np.float32)
BOTH = [[0, 1]]


def hbm() -> Any:
    return nl.ndarray(X.shape, nl.float32, nl.shared_hbm)


def collective(x: Any) -> Any:
    """Fold over two ranks; then overwrite what was given, and use what came."""
    tile, mine, total, out = nl.ndarray(X.shape, nl.float32), hbm(), hbm(), hbm()
    nisa.dma_copy(tile, x)
    nisa.dma_copy(mine, tile)
    ncc.all_reduce([mine], [total], BOTH, nl.add)
    nisa.tensor_tensor(tile, tile, tile, nl.add)
    nisa.dma_copy(mine, tile)
    nisa.dma_copy(out, total)
    return out


def twice(x: Any) -> Any:
    first, second = hbm(), hbm()
    ncc.all_reduce([x], [first], BOTH, nl.add)
    ncc.all_reduce([first], [second], BOTH, nl.add)
    return second


def once(x: Any) -> Any:
    first = hbm()
    ncc.all_reduce([x], [first], BOTH, nl.add)
    return first


def other(x: Any) -> Any:
    first, second = hbm(), hbm()
    ncc.all_to_all([x], [first], BOTH, 0)
    ncc.all_reduce([first], [second], BOTH, nl.add)
    return second


def built(kernel: Callable[[Any], Any]) -> Neff:
    return neurontools.build(kernel, X, target="trn2", lnc=1)


def findings(*neffs: Neff, edit: Callable[[RankedMachine], None] | None = None,
             tools: tuple[str, ...] = ("all",)) -> list[list[Finding]]:  # fmt: skip
    """Run programs on a rank each under all checks; return what was found at each."""
    machine = RankedMachine(Machine("trn2.48xlarge", lnc=1), len(neffs))
    machine.load(neffs)
    checks = [make_checks(tools) for _ in neffs]
    if edit is not None:
        edit(machine)
    for device, mine, neff in zip(machine.devices, checks, neffs, strict=True):
        device.set_inputs({neff.inputs[0].name: X})
        device.observers.extend(mine)
        for one in mine:
            one.attach(device)
    machine.run()
    for mine in checks:
        for one in mine:
            if hasattr(one, "finish"):
                one.finish()
    return [[finding for one in mine for finding in getattr(one, "findings", ())] for mine in checks]


def line_of(text: str, kernel: Callable[..., Any]) -> int:
    import inspect

    lines, first = inspect.getsourcelines(kernel)
    return first + next(number for number, line in enumerate(lines) if text in line)


def without_the_wait(machine: RankedMachine) -> None:
    """Drop every wait of rank 0 for the collective."""
    for engine in machine.devices[0].cores[0].engines.values():
        words = engine.words
        assert isinstance(words, list)
        for at, loaded in enumerate(words):
            if any(wait.index == 107 for wait in loaded.word.waits):
                raw = bytearray(loaded.word.raw)
                for mode, index in ((4, 5), (32, 33)):
                    if raw[mode] and raw[index] == 107 and (mode == 4 or isinstance(loaded.word, isa.EventSemaphore)):
                        raw[mode] = 0
                words[at] = loaded.with_word(type(loaded.word).from_raw(bytes(raw)))


@pytest.mark.parametrize("partner", [once, other], ids=["does not come", "calls another one"])
def test_a_collective_that_the_others_do_not_come_to_is_found(partner: Callable[[Any], Any]) -> None:
    mine = findings(built(twice), built(partner))[0]
    (found,) = [finding for finding in mine if finding.severity == "error"]
    assert (found.tool, found.kind) == ("synccheck", "ranks")
    assert "once the other ranks are through" in found.message and "look at the other ranks" in found.hint
    given = "first" if partner is once else "x"
    assert getattr(found.others[0].source, "line", 0) == line_of(f"ncc.all_reduce([{given}]", twice)


def test_its_clean_twin_is_silent() -> None:
    assert findings(built(twice), built(twice)) == [[], []]


def test_a_collective_that_ends_the_run_of_one_rank_is_behind_what_its_word_waits_for() -> None:
    found, device = checked(built(collective), {"x": X}, ("racecheck",))
    assert device.fault is not None and device.fault.kind == "unsupported" and not found


def test_races_between_a_rank_and_its_cc_cores_are_found() -> None:
    """Without the wait, bytes that CC-cores read are overwritten, and bytes that they write are read too early."""
    mine, theirs = findings(built(collective), built(collective), edit=without_the_wait)
    assert theirs == []
    kinds = {finding.kind for finding in mine if finding.tool == "racecheck"}
    assert {"read-write", "write-read"} <= kinds
    sides = {site.engine for finding in mine if finding.tool == "racecheck" for site in (finding.site, *finding.others)}
    assert "qCollective0" in sides
    line = line_of("ncc.all_reduce", collective)
    assert any(getattr(site.source, "line", 0) == line for finding in mine for site in (finding.site, *finding.others))


def test_the_race_s_clean_twin_is_silent() -> None:
    assert findings(built(collective), built(collective)) == [[], []]


def undefined(x: Any) -> Any:
    """Give half of a tensor that nothing wrote to the others."""
    tile, mine, total = nl.ndarray(X.shape, nl.float32), hbm(), hbm()
    nisa.dma_copy(tile, x)
    nisa.dma_copy(mine[0:16], tile[0:16])
    ncc.all_reduce([mine], [total], BOTH, nl.add)
    return total


def defined(x: Any) -> Any:
    tile, mine, total = nl.ndarray(X.shape, nl.float32), hbm(), hbm()
    nisa.dma_copy(tile, x)
    nisa.dma_copy(mine, tile)
    ncc.all_reduce([mine], [total], BOTH, nl.add)
    return total


def logarithm(x: Any) -> Any:
    """Put a NaN into what the others get."""
    tile, mine, total = nl.ndarray(X.shape, nl.float32), hbm(), hbm()
    nisa.dma_copy(tile, x)
    nisa.tensor_scalar(tile, tile, nl.multiply, -1.0)
    nisa.activation(tile, nl.log, tile)
    nisa.dma_copy(mine, tile)
    ncc.all_reduce([mine], [total], BOTH, nl.add)
    return total


def test_undefined_bytes_that_a_rank_gives_are_found_there() -> None:
    clean, faulty = findings(built(defined), built(undefined))
    assert clean == []
    (found,) = [finding for finding in faulty if finding.severity == "error"]
    assert (found.tool, found.kind) == ("initcheck", "undefined-output") and "mine" in found.message
    assert getattr(found.site.source, "line", 0) == line_of("ncc.all_reduce", undefined)


def test_a_nan_begins_at_the_rank_that_makes_it_and_is_brought_to_the_others() -> None:
    other, maker = findings(built(defined), built(logarithm), tools=("nancheck",))
    (made,), (brought,) = maker, other
    assert made.site.engine == "Activation" and "makes NaN of finite operands" in made.message
    assert getattr(made.site.source, "line", 0) == line_of("nisa.activation", logarithm)
    assert brought.site.engine == "qCollective0" and "brings NaN that this rank did not put in" in brought.message
    assert "look at the other ranks" in brought.hint


def test_their_clean_twin_is_silent() -> None:
    assert findings(built(defined), built(defined)) == [[], []]
    assert findings(built(defined), built(defined), tools=("nancheck",)) == [[], []]
