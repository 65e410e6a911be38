"""Memories that keep their pages from one program to the next hold nothing of what the last one wrote."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator import workspace
from emulator.bound_words import BoundWord, BoundWords
from emulator.device import Device
from emulator.memory import FRESH, ChipMemory
from emulator.renewal import columns_of_runs, fill_columns
from formats.neff import Neff, open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program

GOLDEN = Path(__file__).parents[1] / "golden"
PROGRAMS = sorted((GOLDEN / "insns").glob("*.s"))
ADDS = GOLDEN / "insns" / "tensor_scalar_immediates.s"


@pytest.fixture(autouse=True)
def _nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "_waiting", [])


def program(path: Path) -> Neff:
    return open_neff(to_neff(parse_program(path.read_text(), path.name)))


def what_stays(memory: ChipMemory) -> list[str]:
    """Return which arrays of a memory are not those of a new one."""
    arrays = {"SBUF": FRESH, "PSUM": FRESH}
    stays = [space for space, byte in arrays.items() if not (memory.bound(space) == byte).all()]
    return stays + [f"plane of {space}" for space in arrays if memory.plane(space).any()]


def released(device: Device) -> ChipMemory:
    memory = device.cores[0].memory
    device.release()
    return memory


@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 9_000)), max_size=4))
def test_columns_are_filled_and_far_ones_are_not(pairs: list[tuple[int, int]]) -> None:
    array = np.zeros((2, 20_000), np.uint8)
    wanted = [(low, min(low + more, 20_000)) for low, more in pairs]
    fill_columns(array, wanted, 7)
    near = np.zeros(20_000, np.bool_)
    for low, high in wanted:
        assert (array[:, low:high] == 7).all()
        near[low & ~4095 : (high + 4095) & ~4095] = True
    assert not array[:, ~near].any()


@given(
    st.integers(0, 8 * 64 - 1),
    st.lists(st.tuples(st.sampled_from((-128, -64, -3, 0, 1, 4, 64, 65, 128)), st.integers(1, 4)), max_size=3),
    st.integers(1, 9),
)
def test_columns_of_runs_hold_every_byte(offset: int, dims: list[tuple[int, int]], run: int) -> None:
    starts = [offset]
    for step, count in dims:
        starts = [start + step * number for start in starts for number in range(count)]
    found = columns_of_runs(offset, tuple(dims), run, 64)
    if found is not None:
        assert all(found[0] <= (start + byte) % 64 < found[1] for start in starts for byte in range(run))
    elif all(step % 64 == 0 for step, _ in dims):
        assert offset % 64 + run > 64  # runs from partition to partition are clear where they stay in one


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_nothing_stays_of_any_instruction(path: Path) -> None:
    neff = program(path)
    for _ in range(2):  # bound in full, and found again
        device = Device(neff.target, len(neff.subgraphs))
        device.load(neff)
        device.run()
        memory = released(device)
        found = workspace.take_workspace(device.arch, 0)
        assert found.memory is memory and what_stays(memory) == []
        workspace.give_back(found)


def failing(error: BaseException) -> Any:
    """Return a binding of words that fail when they have written, before they say so."""
    known = BoundWords.bound

    def bound(words: BoundWords, loaded: Any) -> BoundWord:
        found = known(words, loaded)
        action = copy(found.action)  # the engine keeps the other
        effect = action.effect
        if effect is not None and action.writes:

            def wrong() -> None:
                effect()
                raise error

            action.effect = wrong
        return found.with_action(action)

    return bound


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), RuntimeError("a defect")], ids=lambda error: type(error).__name__
)
def test_nothing_stays_of_a_word_that_ends_half_way(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundWords, "bound", failing(error))
    monkeypatch.setattr(BoundWords, "_look_in", lambda words, kept: None)  # the engine asks for each word
    device = Device("trn2")
    device.load(program(ADDS))
    with pytest.raises(type(error)):
        device.run()
    memory = released(device)
    assert memory.unaccounted and not (memory.bound("SBUF") == FRESH).all()
    workspace.take_workspace(device.arch, 0)
    assert what_stays(memory) == []


def test_nothing_stays_of_what_somebody_wrote_by_hand() -> None:
    device = Device("trn2")
    device.cores[0].sbuf[7, 190_000] = 1
    device.write_device(device.addresses.sbuf(0, 3, 40), 4, 5)
    memory = released(device)
    workspace.take_workspace(device.arch, 0)
    assert what_stays(memory) == []


def test_what_no_extent_tells_of_would_be_seen() -> None:
    """The twin that is planted: bytes written behind the back of everybody stay, and the comparison finds them."""
    device = Device("trn2")
    device.cores[0].memory.bound("PSUM")[127, 5] = 1
    memory = released(device)
    workspace.take_workspace(device.arch, 0)
    assert what_stays(memory) == ["PSUM"]
    memory.renew()
    memory.bound("PSUM")[127, 5] = FRESH
