"""Advice: stores that nothing reads, loads of what is on chip, waits for what is known; and silence beside them."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.checks import Finding
from emulator.runtime import run
from neurontools.nki.launch import build_neff
from tests.checks.support import assembled
from tests.cli.conftest import Cli, cli
from tests.faults.assembled import BASE, INPUTS, planted

P, W = 128, 64
__all__ = ["cli"]  # a fixture

ROOT = Path(__file__).parents[2]


def tile(rows: int = P, dtype: Any = nl.float32) -> Any:
    return nl.ndarray((rows, W), dtype=dtype, buffer=nl.sbuf)


def shared() -> Any:
    return nl.ndarray((P, W), dtype=nl.float32, buffer=nl.shared_hbm)


def dead(x: Any) -> Any:
    out, part, other = shared(), tile(), tile()
    nisa.dma_copy(dst=part, src=x)
    nisa.tensor_copy(dst=other, src=part)  # dead-store
    nisa.dma_copy(dst=out, src=part)
    return out


def overwritten(x: Any) -> Any:
    out, part = shared(), tile()
    nisa.memset(dst=part, value=0.0)  # dead-store
    nisa.dma_copy(dst=part, src=x)
    nisa.dma_copy(dst=out, src=part)
    return out


def spilled(x: Any) -> Any:
    out, part = shared(), tile()
    spill = nl.ndarray((P, W), dtype=nl.float32, buffer=nl.hbm)
    nisa.dma_copy(dst=part, src=x)
    nisa.dma_copy(dst=spill, src=part)  # dead-store
    nisa.dma_copy(dst=out, src=part)
    return out


def spilled_and_read(x: Any) -> Any:
    out, part, back = shared(), tile(), tile()
    spill = nl.ndarray((P, W), dtype=nl.float32, buffer=nl.hbm)
    nisa.dma_copy(dst=part, src=x)
    nisa.dma_copy(dst=spill, src=part)
    nisa.dma_copy(dst=back, src=spill)
    nisa.dma_copy(dst=out, src=back)
    return out


def read_in_part(x: Any) -> Any:
    """A tile of which one element is read, and one of which half is overwritten first: neither is dead."""
    out, part, other = shared(), tile(), tile()
    nisa.dma_copy(dst=part, src=x)
    nisa.memset(dst=other, value=1.0)
    nisa.tensor_copy(dst=other[0:64], src=part[0:64])
    for row in (0, 64):
        one = slice(row, row + 1)
        nisa.tensor_tensor(dst=part[one, 0:1], data1=other[one, 3:4], data2=part[one, 0:1], op=nl.add)
    nisa.dma_copy(dst=out, src=part)
    return out


def twice(x: Any) -> Any:
    out, first, second = shared(), tile(), tile()
    nisa.dma_copy(dst=first, src=x)
    nisa.dma_copy(dst=second, src=x)  # reload
    nisa.tensor_tensor(dst=first, data1=first, data2=second, op=nl.add)
    nisa.dma_copy(dst=out, src=first)
    return out


def once(x: Any) -> Any:
    out, first = shared(), tile()
    nisa.dma_copy(dst=first, src=x)
    nisa.tensor_tensor(dst=first, data1=first, data2=first, op=nl.add)
    nisa.dma_copy(dst=out, src=first)
    return out


def same_tile(x: Any) -> Any:
    out, part, total = shared(), tile(), tile()
    nisa.memset(dst=total, value=0.0)
    for _ in range(3):
        nisa.dma_copy(dst=part, src=x)  # reload
        nisa.tensor_tensor(dst=total, data1=total, data2=part, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


def changed_between(x: Any) -> Any:
    """The earlier copy is gone when the bytes are wanted again."""
    out, first, second = shared(), tile(), tile()
    nisa.dma_copy(dst=first, src=x)
    nisa.activation(dst=first, op=nl.exp, data=first)
    nisa.dma_copy(dst=second, src=x)
    nisa.tensor_tensor(dst=first, data1=first, data2=second, op=nl.add)
    nisa.dma_copy(dst=out, src=first)
    return out


def changed_behind(x: Any) -> Any:
    """The earlier copy is there at the second load, and gone when that is read."""
    out, first, second = shared(), tile(), tile()
    nisa.dma_copy(dst=first, src=x)
    nisa.dma_copy(dst=second, src=x)
    nisa.activation(dst=first, op=nl.exp, data=first)
    nisa.tensor_tensor(dst=first, data1=first, data2=second, op=nl.add)
    nisa.dma_copy(dst=out, src=first)
    return out


def other_source(x: Any) -> Any:
    """The same addresses of device memory, with other bytes in between."""
    out, part, back, total = shared(), tile(), tile(), tile()
    spill = nl.ndarray((P, W), dtype=nl.float32, buffer=nl.hbm)
    nisa.dma_copy(dst=part, src=x)
    nisa.dma_copy(dst=spill, src=part)
    nisa.dma_copy(dst=back, src=spill)
    nisa.tensor_tensor(dst=total, data1=part, data2=back, op=nl.add)
    nisa.dma_copy(dst=spill, src=total)
    nisa.dma_copy(dst=part, src=spill)
    nisa.tensor_tensor(dst=total, data1=part, data2=back, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


def lines(kernel: Any) -> list[tuple[str, int]]:
    source, first = inspect.getsourcelines(kernel)
    return [(line.split("# ")[1].strip(), first + at) for at, line in enumerate(source) if "  # " in line]


def findings(kernel: Any) -> list[Finding]:
    x = np.ones((P, W), np.float32)
    neff = build_neff(kernel, (x,), {}, target="trn2")
    result = run(neff, {neff.inputs[0].name: x}, checks="lint")
    assert result.ok
    return list(result.findings)


def of_text(*changes: tuple[str, str]) -> list[Finding]:
    result = run(assembled(planted(changes)), INPUTS, checks="lint")
    assert result.ok
    return list(result.findings)


@pytest.mark.parametrize("kernel", [dead, overwritten, spilled, twice, same_tile])
def test_what_is_found_in_kernels(kernel: Any) -> None:
    found = findings(kernel)
    assert [(one.kind, getattr(one.site.source, "line", 0)) for one in found] == lines(kernel)
    assert all(one.severity == "note" and one.hint for one in found)


@pytest.mark.parametrize(
    "kernel", [spilled_and_read, read_in_part, once, changed_between, changed_behind, other_source]
)
def test_what_is_needed_gives_nothing(kernel: Any) -> None:
    assert findings(kernel) == []


def test_hints_of_reloads() -> None:
    (elsewhere,), (here,) = findings(twice), findings(same_tile)
    assert elsewhere.hint == "read the earlier tile instead" and elsewhere.details == {"bytes": P * W * 4}
    assert here.hint == "leave it out: the copy is there" and here.count == 2


@pytest.mark.parametrize(
    ("wait", "kind"),
    [
        # The word in front waits for both loads, and what DVE has raised S[6] twice for is known to Activation.
        ("    NOP S[40]>=16 cycle=0\n", "redundant-wait"),
        ("    NOP S[8]>=16 cycle=0\n", "redundant-wait"),
        ("    NOP S[8]>=1 cycle=0\n", "redundant-wait"),
        ("    NOP cycle=0\n", ""),
    ],
)
def test_waits(wait: str, kind: str) -> None:
    """DVE has waited for both loads; a wait for either tells it nothing."""
    before = "    COPY S[5]>=1 S[6]++@complete"
    found = of_text((before, wait + before))
    assert [one.kind for one in found] == [kind] * bool(kind)
    for one in found:
        assert one.site.engine == "DVE" and one.others[0].pc == 0 and "take out the wait for S[" in one.hint


def test_a_wait_that_another_engine_made_needless() -> None:
    """Activation knows from DVE, in S[6]>=2, that the first load is over."""
    trigger = "    NOP E[4]+@complete cycle=0\n    PSEUDO_DMA_TRIGGER qOut"
    (found,) = of_text((trigger, "    NOP S[8]>=16 cycle=0\n" + trigger))
    assert found.kind == "redundant-wait" and found.site.engine == "Activation"


def test_the_only_wait_is_needed() -> None:
    """Every wait of the clean program gives nothing: its own twin in the planted faults without one is a race."""
    assert of_text() == []


def test_waits_for_what_several_raise_are_left_alone() -> None:
    """Which of the two raises met the wait is the schedule's choice, and so is what it tells."""
    event = "    NOP E[3]+@complete cycle=0"
    waits = "    NOP S[100]++@complete cycle=0\n    NOP S[100]>=2 cycle=0\n    NOP S[40]>=16 cycle=0"
    text = BASE.replace(event, f"{event}\n{waits}")
    text = text.replace(".engine pe\n", "    NOP S[100]++@complete cycle=0\n.engine pe\n")
    result = run(assembled(text), INPUTS, checks="lint")
    assert result.ok and list(result.findings) == []


def test_of_the_command(cli: Cli, tmp_path: Path) -> None:
    """Shown without --notes, never a reason to fail by itself, and nobody's business where it is not asked for."""
    before = "    COPY S[5]>=1 S[6]++@complete"
    file = tmp_path / "program.s"
    file.write_text(planted(((before, "    NOP S[40]>=16 cycle=0\n" + before),)))
    asked = cli("check", file, "--tool", "lint")
    assert asked.status == 0 and "lint: note: DVE pc 3 waits for S[40]>=16" in asked.out and "--notes" not in asked.out
    assert cli("check", file, "--tool", "lint", "--fail-on", "note").status == 1
    assert "redundant-wait" not in cli("check", file, "--notes").out
    levels = cli("check", file, "--tool", "lint", "--format", "sarif").out
    assert '"lint/redundant-wait"' in levels.replace("lint:redundant-wait", "lint/redundant-wait")


@pytest.mark.parametrize("name", ["race.s", "softmax.py", "vector_add.py", "tiled_matmul.py"])
def test_examples_are_silent(cli: Cli, name: str) -> None:
    assert cli("check", ROOT / "examples" / name, "--tool", "lint", "--json").json["result"]["findings"] == []
