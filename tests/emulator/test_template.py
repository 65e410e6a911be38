"""Words bound by their kind do what words bound in full do, wherever their operands lie."""

from __future__ import annotations

import gc
import struct
from collections import Counter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

from emulator import kind, workspace
from emulator.access import plan_of
from emulator.action import Action, WordPort, make_action, operands_of, regions_of_word
from emulator.arch import arch_of
from emulator.bound_words import BoundWords
from emulator.core import Core
from emulator.cost.contention import Claim
from emulator.device import Device
from emulator.engines.recipe import recipe_of
from emulator.pace import at_pace
from emulator.sequencer import Sequencer
from emulator.template import Template, template_of
from emulator.timeline.measure import measure
from formats.errors import NeuronError
from formats.neff import open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.profile.what_if import parse_change

PROGRAMS = sorted((Path(__file__).parents[1] / "golden" / "insns").glob("*.s"))
COLUMNS = 1 << 14  # bytes of each partition that are filled and compared
SHIFTS = (0, 64, 4, 1, 1 << 18, 31 << 18, 1 << 30)


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "_SEEN", set())
    monkeypatch.setattr(kind, "_FOUND", {})


def shifted(word: Any, shifts: list[int]) -> Any:
    """Return the word with its operands elsewhere, in the same memories."""
    raw = bytearray(word.raw)
    for plan, shift in zip(plan_of(type(word)), shifts, strict=False):
        if plan.field.enabled(word.raw):
            at = plan.field.offset
            (address,) = struct.unpack_from("<I", raw, at)
            struct.pack_into("<I", raw, at, (address + shift) & 0xFFFFFFFF)
    return type(word).from_raw(bytes(raw))


def template(engine: Any, word: Any) -> Template | None:
    key = word.without_addresses()
    assert template_of(engine, word, key) is None  # the first of its kind
    return template_of(engine, word, key)


def state_after(engine: Any, action: Action, fill: np.ndarray) -> list[Any]:
    """Return what the word's engine and the memories hold after the effect, and whether it raised."""
    core = engine.core
    core.sbuf[:, :COLUMNS], core.psum[:, :] = fill, fill[:, : core.psum.shape[1]]
    engine.accumulators[:] = np.arange(128)
    engine.registers[:] = range(256)
    core.pe.restore(FRESH[id(core)])
    core.generators.restore(GENERATORS[id(core)])
    raised = None
    try:
        with at_pace():
            if action.effect is not None:
                action.effect()
    except NeuronError as error:
        raised = str(error)
    held = engine.accumulators.copy(), engine.registers[:], core.pe.fingerprint()
    return [core.sbuf[:, :COLUMNS].copy(), core.psum.copy(), *held, raised]


FRESH: dict[int, Any] = {}
GENERATORS: dict[int, Any] = {}


def same(one: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in zip(one, other, strict=True))


def fields(value: Any) -> Any:
    """Return what a claim says, which is an object; other values are as they are."""
    return {name: getattr(value, name) for name in Claim.__slots__} if isinstance(value, Claim) else value


def compared(engine: Any, made: Template, word: Any, fill: np.ndarray) -> bool:
    """Compare both bindings of a word; return whether it could be bound."""
    try:
        full = make_action(engine, word, False)
    except NeuronError as error:
        try:
            assert made.bind(engine, word) is None
        except NeuronError as again:
            assert str(again) == str(error)
        return False
    bound = made.bind(engine, word)
    assert bound is not None
    for slot in Action.__slots__:
        name = slot.removeprefix("_")  # regions are kept from when somebody asks
        if name not in ("effect", "template"):
            assert fields(getattr(bound, name)) == fields(getattr(full, name)), name
    assert (bound.read_regions, bound.write_regions) == (full.read_regions, full.write_regions)
    asked = operands_of(engine, word, bound)
    assert asked is operands_of(engine, word, bound)
    # Those that the template gives are those that are read from the word.
    for name, operand in operands_of(engine, word, full).items():
        mine = asked[name]
        assert (mine.name, mine.regions, mine.extents) == (operand.name, operand.regions, operand.extents)
        assert mine.view.__array_interface__ == operand.view.__array_interface__
    assert list(asked) == list(operands_of(engine, word, full))
    assert {region for one in asked.values() for region in one.regions} == {*bound.read_regions, *bound.write_regions}
    # An action that others share, whatever their addresses, keeps none.
    shared = Action(None, 1, 1)
    for other in (word, shifted(word, [64] * len(asked)), word):
        try:
            regions = {*sum(regions_of_word(engine, other), ())}
        except NeuronError:
            continue
        assert {each for one in operands_of(engine, other, shared).values() for each in one.regions} == regions
    assert same(state_after(engine, full, fill), state_after(engine, bound, fill)), word.text
    return True


def test_every_kind_does_the_same_at_other_places() -> None:
    random = np.random.default_rng(0)
    fill = random.standard_normal((128, COLUMNS // 4)).astype(np.float32).view(np.uint8)
    seen: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    for path in PROGRAMS:
        neff = open_neff(to_neff(parse_program(path.read_text(), path.name)))
        device = Device(neff.target, len(neff.subgraphs))
        device.load(neff)
        for core in device.cores:
            FRESH[id(core)], GENERATORS[id(core)] = core.pe.snapshot(), core.generators.snapshot()
            for engine in core.engines.values():
                for loaded in engine.words:
                    word = loaded.word
                    if loaded.transfer is not None or not kind.is_worth_asking(type(word)) or word.NAME in seen:
                        continue
                    if not word.OPERANDS or type(word).BRANCHES:
                        continue
                    made = template(engine, word)
                    if made is None:
                        continue
                    seen[word.NAME] += 1
                    count = len(plan_of(type(word)))
                    for _ in range(6):
                        shifts = [int(random.choice(SHIFTS)) for _ in range(count)]
                        moved[word.NAME] += compared(engine, made, shifted(word, shifts), fill)
        device.release()
    assert len(seen) > 30
    assert sum(moved[name] > 0 for name in seen) > 0.9 * len(seen), seen - moved


def test_steps_that_hide_what_they_work_on_are_not_moved() -> None:
    hidden = np.zeros(4)

    def step() -> None:
        hidden[0] = 1

    assert recipe_of(step, ()) is None


def _ran(name: str, **options: Any) -> Device:
    path = Path(__file__).parents[1] / "golden" / "insns" / name
    neff = open_neff(to_neff(parse_program(path.read_text(), path.name)))
    device = Device(neff.target, len(neff.subgraphs), **options)
    device.load(neff)
    device.run()
    return device


@pytest.mark.parametrize("name", ["fault_tensor_reads_psum.s", "fault_oob.s", "fault_alignment.s", "fault_psum_bank.s"])
def test_what_a_word_may_not_do_is_refused_every_time(name: str) -> None:
    """The second word of a kind in a process is bound by the kind, which knows no rules but those of addresses."""
    told = [str(_ran(name).fault) for _ in range(4)]
    assert told[0] != "None" and told == [told[0]] * 4


def test_a_device_with_other_figures_has_other_times() -> None:
    neff = open_neff(to_neff(parse_program((PROGRAMS[0].parents[3] / "examples" / "race.s").read_text(), "race.s")))
    usual = [measure(neff).end_ps for _ in range(3)]
    changed = measure(neff, None, parse_change("dve=4x", arch_of(neff.target))).end_ps
    assert len(set(usual)) == 1 and changed < usual[0]


def _holds(root: Any, kinds: tuple[type, ...]) -> list[Any]:
    """Return what of some types can be reached from an object, types and modules left out."""
    found, seen, todo = [], set(), [root]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type | ModuleType):
            continue
        seen.add(id(one))
        if isinstance(one, kinds):
            found.append(one)
            continue
        # Names of a function's module are no part of what it was made for.
        if isinstance(one, FunctionType):
            todo += [one.__closure__, one.__defaults__, one.__kwdefaults__]
        else:
            todo += gc.get_referents(one)
    return found


def test_what_lasts_holds_on_to_no_device() -> None:
    """Another device on the same memories finds these words bound: nothing in them may lead to the first."""
    lasting: Counter[str] = Counter()
    for path in PROGRAMS:
        neff = open_neff(to_neff(parse_program(path.read_text(), path.name)))
        device = Device(neff.target, len(neff.subgraphs))
        device.load(neff)
        for engine in (engine for core in device.cores for engine in core.engines.values()):
            for loaded in engine.words:
                try:
                    action = engine.bound.bound(loaded).action
                except NeuronError:
                    continue
                if action.lasting:
                    lasting[loaded.word.NAME] += 1
                    assert not _holds(action, (Device, Core, Sequencer, WordPort)), loaded.word.text
        device.release()
    assert len(lasting) > 40, lasting


@pytest.mark.parametrize(
    "name", ["matmul_fp32_low_high.s", "activation_extended_accumulate.s", "rng_state.s", "fault_oob.s"]
)
def test_a_released_device_leaves_its_words_to_the_next(name: str) -> None:
    """The next run finds words bound, and memory, tiles and accumulators as fresh as the first did."""
    states = []
    for _ in range(3):
        device = _ran(name)
        (core,) = device.cores
        states.append((device.state_hash(), device.now_ps, str(device.fault), device.warnings))
        left = core.workspace
        device.release()
        device.release()  # once is all it does
    assert states == [states[0]] * 3
    again = Device("trn2")
    assert again.cores[0].workspace is left
    other = Device("trn2")
    assert other.cores[0].workspace is not left
    assert again.state_hash() == other.state_hash()


def test_conditions_have_words_of_their_own() -> None:
    """What a word costs is bound with it: without timing, or with other figures, none is taken over."""
    name = "matmul_fp32_low_high.s"
    ends = []
    for options in ({}, {"timing": False}, {}, {"without": ("ports",)}, {}):
        device = _ran(name, **options)
        ends.append(device.now_ps)
        device.release()
    assert ends[0] == ends[2] == ends[4] != ends[1]


def test_a_workspace_that_knows_too_much_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    device = _ran("matmul_fp32_low_high.s")
    one = device.cores[0].workspace
    device.release()
    device = _ran("matmul_fp32_low_high.s")
    assert device.cores[0].workspace is one
    monkeypatch.setattr(workspace, "_REGIONS", 2)
    device.release()
    device = _ran("matmul_fp32_low_high.s")
    assert device.cores[0].workspace is not one
    monkeypatch.undo()
    device.release()


def test_a_long_program_finds_all_of_its_words_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of words in other places each are bound by the first run, and by no other."""
    words = [f"MEMSET dst=fp32@{4 * at:#x}[1,1,1,1][1,1,1,1] count=1 channels=1" for at in range(3000)]
    neff = open_neff(to_neff(parse_program("\n".join([".target trn2", ".engine dve", *words, ""]), "long.s")))
    asked: list[Any] = []
    bound = BoundWords._by_what_it_does

    def counted(*given: Any) -> Action:
        asked.append(given)
        return bound(*given)

    monkeypatch.setattr(BoundWords, "_by_what_it_does", counted)
    counts = []
    for _ in range(2):
        device = Device("trn2")
        device.replays = False
        device.load(neff)
        assert device.run() == "finished"
        counts.append(len(asked))
        device.release()
    assert counts[0] >= 3000
    assert counts[1] - counts[0] < 10  # what the assembler puts around them belongs to one device
