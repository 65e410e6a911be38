"""Work that both cores do in full gives notes, in every schedule; races where one of them does less, or other work."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.checks import Finding
from neurontools.nki.launch import build_neff
from tests.checks.support import checked, serious

P, W = 128, 16
SEEDS = (None, 1, 2, 3)


def shared() -> Any:
    return nl.ndarray((P, W), dtype=nl.float32, buffer=nl.shared_hbm)


def tile() -> Any:
    return nl.ndarray((P, W), dtype=nl.float32, buffer=nl.sbuf)


def filled_first(x: Any, wrong: bool) -> Any:
    """Zeros over all of the output, then a part of it; the second core stops at the zeros."""
    out, part, zeros = shared(), tile(), tile()
    nisa.dma_copy(dst=part, src=x)
    nisa.memset(dst=zeros, value=0.0)
    nisa.dma_copy(dst=out, src=zeros)
    if not (wrong and nl.program_id(0) == 1):
        nisa.dma_copy(dst=out[0:64], src=part[0:64])  # fault
    return out


def read_again(x: Any, wrong: bool) -> Any:
    """A store of all and a copy of it onto itself; the second core stores something else."""
    out, part = shared(), tile()
    nisa.dma_copy(dst=part, src=x)
    if wrong:
        nisa.tensor_scalar(dst=part, data=part, op0=nl.add, operand0=float(nl.program_id(0)))
    nisa.dma_copy(dst=out, src=part)  # fault
    nisa.dma_copy(dst=out, src=out)
    return out


def fenced_columns(x: Any, wrong: bool) -> Any:
    """Two stores of half the columns each, then a copy of all onto itself; the second core stores something else."""
    out, part = shared(), tile()
    nisa.dma_copy(dst=part, src=x)
    if wrong:
        nisa.tensor_scalar(dst=part, data=part, op0=nl.add, operand0=float(nl.program_id(0)))
    nisa.dma_copy(dst=out[0:P, 0:8], src=part[0:P, 0:8])  # fault
    nisa.dma_copy(dst=out[0:P, 8:W], src=part[0:P, 8:W])
    nisa.dma_copy(dst=out, src=out)
    return out


def refreshed(x: Any, wrong: bool) -> Any:
    """One core stores what lies there already, beside a core that reads it; wrong: it stores something else."""
    out, there, part = shared(), nl.ndarray((P, W), dtype=nl.float32, buffer=nl.shared_hbm), tile()
    nisa.dma_copy(dst=part, src=x)
    if nl.program_id(0) == 0:
        nisa.dma_copy(dst=there, src=part)
    nisa.core_barrier(there, (0, 1))
    if nl.program_id(0) == 0:
        if wrong:
            nisa.tensor_scalar(dst=part, data=part, op0=nl.add, operand0=1.0)
        nisa.dma_copy(dst=there, src=part)  # fault
    else:
        nisa.dma_copy(dst=out, src=there)
    return out


def findings(kernel: Any, wrong: bool, seed: int | None) -> list[Finding]:
    x = np.random.default_rng(0).random((P, W)).astype(np.float32)
    neff = build_neff(kernel, (x, wrong), {}, target="trn2", lnc=2)
    return checked(neff, {neff.inputs[0].name: x}, seed=seed)[0]


@pytest.mark.parametrize("kernel", [filled_first, read_again, fenced_columns, refreshed])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_work_on_both_cores_gives_notes(kernel: Any, seed: int | None) -> None:
    found = findings(kernel, False, seed)
    assert found and {one.kind for one in found} == {"same-bytes"} and serious(found) == []


@pytest.mark.parametrize("kernel", [filled_first, read_again, fenced_columns, refreshed])
@pytest.mark.parametrize("seed", SEEDS)
def test_other_work_is_a_race_in_every_schedule(kernel: Any, seed: int | None) -> None:
    lines, first = inspect.getsourcelines(kernel)
    (fault,) = [first + at for at, line in enumerate(lines) if "# fault" in line]
    found = serious(findings(kernel, True, seed))
    races = [one for one in found if one.kind in ("write-write", "write-read", "read-write")]
    assert fault in {getattr(site.source, "line", 0) for one in races for site in (one.site, *one.others)}
