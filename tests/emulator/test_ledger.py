"""The ledger: the documented examples, and laws that hold for any order of loads, unloads and allocations."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from emulator.errors import InputError
from emulator.runtime.ledger import Ledger, NoRoomError
from emulator.runtime.ledger_plan import PartPlan, Scratchpad, plan_of, scratchpad_of
from emulator.runtime.ledger_views import (
    by_category,
    device_counters,
    model_lines,
    monitor_memory,
    oom_lines,
    oom_table,
    slots,
)
from emulator.runtime.memory import Category, OutOfMemoryError, Owner, Stack
from formats.neff import open_neff
from formats.neff.memory import device_memory
from formats.nrt.memory import CATEGORIES, USES
from formats.nrt.memory_sizes import size_text
from formats.nrt.oom import model_block, table_lines
from formats.nrt.oom_reading import read_memory_report
from tests.formats.neff.support import fixture
from tests.nrt.memory_reports import DOCUMENTED_LIST, DOCUMENTED_TABLE

MIB, GIB = 1 << 20, 1 << 30
STACK = Stack(0, 2)


def scratch(page: Scratchpad, *variables: tuple[int, int]) -> PartPlan:
    """Return a part that has only scratchpad variables, given as (offset, size)."""
    crossing = {f"v{at}": size for at, size in variables if not page.contiguous and at % page.page + size > page.page}
    return PartPlan((), max((at + size for at, size in variables), default=0), crossing)


def documented() -> Ledger:
    """Return the ledger that the documentation's table is of: what its NEFFs take is printed there."""

    def part(code: int, constants: int, io: int, spill: int) -> PartPlan:
        return PartPlan((("pe", "", code), ("weight", "", constants), ("generic", "", 108 * 1024),
                         ("dma rings io", "", io * 1024), ("dma rings spill", "", spill * 1024),
                         ("dma rings runtime", "", 4096)))  # fmt: skip

    ledger = Ledger("gen3", lnc=1, runtime=(2, 25, 57))
    for core in (4, 5):
        ledger.start_core(core, [STACK])
    dense, concat = (f"1.0.41235.0+df4a714bb-/local/out-test0_meta_{name}" for name in ("dense", "concat3"))
    ledger.load_parts(dense, [part(29_248, 35_168, 57, 32)], Owner(4, 1001), [STACK])
    ledger.load_parts(concat, [part(32_640, 24_576, 61, 16)], Owner(4, 1002), [STACK])
    ledger.load_parts(concat, [part(32_640, 24_576, 61, 16)], Owner(5, 1003), [STACK])
    ledger.allocate(Category.TENSORS, 20 * GIB, stack=STACK, owner=Owner(4))
    return ledger


def test_the_documented_report_to_the_byte() -> None:
    """Cores without models are the emulator's figures, models the documented ones; every byte of text is the page's."""
    ledger = documented()
    with pytest.raises(OutOfMemoryError) as caught:
        ledger.allocate(Category.TENSORS, 4 * GIB, stack=STACK, owner=Owner(4))
    said = [text for _, text in oom_lines(ledger, caught.value, overall=True)]
    page = DOCUMENTED_TABLE.splitlines()
    assert [line.split("  ")[-1].strip() for line in page[:3]] == said[:3]
    assert page[3:] == said[3:]


@pytest.mark.parametrize(
    ("page", "shared", "private"),
    [
        (scratchpad_of("gen3", 1), 2048 * MIB, 2560 * MIB),
        (scratchpad_of("gen3", 1, page=2048 * MIB), 2048 * MIB, 0),
        (scratchpad_of("gen3", 2), 1664 * MIB, 0),
    ],
)
def test_the_documented_scratchpads(page: Scratchpad, shared: int, private: int) -> None:
    ledger = Ledger("gen3", scratchpad=page)
    first = scratch(page, (0, 512 * MIB), (512 * MIB, GIB))
    second = scratch(page, (0, 100 * MIB), (100 * MIB, GIB + 512 * MIB))
    ledger.load_parts("A", [first], Owner(0, 1), [STACK])
    ledger.load_parts("B", [second], Owner(0, 2), [STACK])
    found = by_category(ledger.entries.values())
    assert (found["shared_scratchpad"], found["scratchpad"]) == (shared, private)
    ledger.unload(Owner(0, 2))
    left = by_category(ledger.entries.values())
    assert left["shared_scratchpad"] == -(-1536 * MIB // page.page) * page.page
    ledger.unload(Owner(0, 1))
    assert not ledger.entries and len(ledger.allocator(STACK).gaps) == 1


def check_laws(ledger: Ledger) -> None:
    """Every view sums to the ledger, and the ledger to what its allocators have given out."""
    total = sum(one.allocation.size for one in ledger.entries.values())
    stacks = {one.allocation.stack for one in ledger.entries.values()}
    assert total == sum(ledger.used(stack) for stack in stacks)
    spans = sorted((one.allocation.address, one.allocation.size) for one in ledger.entries.values())
    assert all(a + n <= b for (a, n), (b, _) in pairwise(spans))
    tables = [oom_table(ledger, stack) for stack in stacks]
    assert total == sum(row.total for table in tables for row in table.rows if row.kind == "device")
    assert total == sum(row.total for table in tables for row in table.rows if row.kind == "core")
    assert total == sum(counter.total for place in device_counters(ledger).values() for counter in place.values())
    assert all(0 <= c.total <= c.peak for place in device_counters(ledger).values() for c in place.values())
    devices = {stack.device for stack in stacks}
    assert total == sum(sum(slots(ledger, each).values()) for each in devices)
    assert total == monitor_memory(ledger)["neuron_runtime_used_bytes"]["neuron_device"]
    for table in tables:
        printed = table_lines(table)
        report = read_memory_report(printed)
        assert report.problems == () and table_lines(report.table) == printed
    for owner, model in ledger.models.items():
        printed = model_lines(ledger, owner)[2:]
        (block,) = read_memory_report(printed).blocks
        assert model_block(model.name, block.values, total=block.total) == printed
    for region in {(one.allocation.owner.core, one.part) for one in ledger.entries.values()}:
        pages = [one for one in ledger.entries.values() if one.use == "shared scratchpad"
                 and (one.allocation.owner.core, one.part) == region]  # fmt: skip
        needs = [model.parts[region[1]].need for model in ledger.models.values()
                 if model.owner.core == region[0] and region[1] < len(model.parts)]  # fmt: skip
        # The most that any one needs, never the sum; to whole pages.
        assert len(pages) == ledger.scratchpad.pages(max(needs, default=0))
        if ledger.scratchpad.contiguous and pages:
            places = sorted(one.allocation.address for one in pages)
            assert places == [places[0] + ledger.scratchpad.page * each for each in range(len(places))]


def random_part(rng: random.Random, page: Scratchpad) -> PartPlan:
    takes = tuple((rng.choice([use for use in USES if "scratchpad" not in use]), str(n), rng.randint(1, 1 << 24))
                  for n in range(rng.randint(0, 6)))  # fmt: skip
    variables = [(rng.randrange(0, 2 * GIB, 4096), rng.randint(1, GIB)) for _ in range(rng.randint(0, 3))]
    return scratch(page, *variables)._replace(takes=takes)


@pytest.mark.parametrize("seed", range(10))
def test_laws_of_random_use(seed: int) -> None:
    rng = random.Random(seed)
    lnc = rng.choice((1, 2))
    page = scratchpad_of("gen3", lnc, page=512 * MIB * rng.randint(1, 7), contiguous=rng.choice((None, False)))
    ledger = Ledger("gen3", lnc=lnc, scratchpad=page)
    per_stack = 2 // lnc
    live: list[object] = []
    models, failures = 0, 0
    for step in range(120):
        core = rng.randrange(3)
        stacks = [Stack(0, core // per_stack)] * lnc
        before = dict(ledger.entries)
        try:
            kind = rng.random()
            if live and kind < 0.4:
                one = live.pop(rng.randrange(len(live)))
                ledger.unload(one) if isinstance(one, Owner) else ledger.free(one)  # type: ignore[arg-type]
            elif kind < 0.75:
                models += 1
                owner = Owner(core, models)
                ledger.load_parts(f"m{models}", [random_part(rng, page) for _ in stacks], owner, stacks)
                live.append(owner)
            else:
                size = rng.choice((1, 4096, 3 * GIB, 9 * GIB, 14 * GIB))
                live.append(ledger.allocate(Category.TENSORS, size, stack=stacks[0], owner=Owner(core),
                                            align=rng.choice((1, 64, 4096, 1 << 20))))  # fmt: skip
        except NoRoomError as error:
            failures += 1
            assert ledger.entries == before, "a load that failed left something"
            assert error.largest < error.size or error.align > 1 or page.contiguous
        if step % 10 == 0:
            check_laws(ledger)
    check_laws(ledger)
    assert failures
    if not page.contiguous:
        assert not any(one.use == "shared scratchpad" and one.allocation.size != page.page
                       for one in ledger.entries.values())  # fmt: skip
    for one in live:
        ledger.unload(one) if isinstance(one, Owner) else ledger.free(one)  # type: ignore[arg-type]
    assert not ledger.entries and not ledger.models
    assert all(len(ledger.allocator(Stack(0, hbm)).gaps) == 1 for hbm in range(3))
    assert all(counter.total == 0 for place in device_counters(ledger).values() for counter in place.values())


def test_unloading_restores_exactly() -> None:
    page = scratchpad_of("gen3", 2)
    ledger = Ledger("gen3", lnc=2, scratchpad=page)
    stacks = [Stack(0, 0)] * 2
    ledger.start_core(0, stacks)
    ledger.load_parts("stays", [scratch(page, (0, 100 * MIB))] * 2, Owner(0, 1), stacks)
    before, gaps = dict(ledger.entries), ledger.allocator(stacks[0]).gaps
    for model in range(2, 2000):
        big = scratch(page, (0, 700 * MIB))._replace(takes=(("pe", "", 5000), ("weight", "", 123)))
        ledger.load_parts("goes", [big] * 2, Owner(0, model), stacks)
        ledger.unload(Owner(0, model))
    assert ledger.entries == before and ledger.allocator(stacks[0]).gaps == gaps


def test_fragmentation_makes_a_contiguous_scratchpad_fail_though_bytes_are_free() -> None:
    """As documented: the region cannot grow; pages apart still find room in the same stack."""
    stack, owner = Stack(0, 0), Owner(0)

    def crowded(page: Scratchpad) -> Ledger:
        ledger = Ledger("gen3", lnc=2, scratchpad=page)
        ledger.load_parts("first", [scratch(page, (0, 64 * MIB))], Owner(0, 1), [stack])
        # Tensors of a GiB from top to bottom, then every second one goes.
        made = []
        while ledger.allocator(stack).largest >= GIB:
            made.append(ledger.allocate(Category.TENSORS, GIB, stack=stack, owner=owner))
        ledger.allocate(Category.TENSORS, ledger.allocator(stack).largest, stack=stack, owner=owner, align=1)
        for one in made[::2]:
            ledger.free(one)
        return ledger

    region = crowded(scratchpad_of("gen3", 2))
    before = dict(region.entries)
    assert region.allocator(stack).free > 10 * GIB
    with pytest.raises(NoRoomError) as caught:
        region.load_parts("second", [scratch(region.scratchpad, (0, 128 * MIB))], Owner(0, 2), [stack])
    assert caught.value.fragmented and caught.value.category is Category.SHARED_SCRATCHPAD
    assert region.entries == before
    pages = crowded(scratchpad_of("gen3", 2, contiguous=False))
    pages.load_parts("second", [scratch(pages.scratchpad, (0, 1024 * MIB))], Owner(0, 2), [stack])
    assert by_category(pages.entries.values())["shared_scratchpad"] == 1024 * MIB


def test_pages_of_loaded_models_never_move() -> None:
    page = scratchpad_of("gen3", 1)
    ledger = Ledger("gen3", scratchpad=page)
    places = []
    for model, size in enumerate((100, 1500, 700, 2000), 1):
        ledger.load_parts("m", [scratch(page, (0, size * MIB))], Owner(0, model), [STACK])
        now = [one.allocation.address for one in ledger.entries.values() if one.use == "shared scratchpad"]
        assert now[: len(places)] == places
        places = now


def test_a_file_is_in_the_ledger_what_load_check_counts() -> None:
    neff = open_neff(fixture())
    ledger = Ledger(neff.target.generation, scratchpad=Scratchpad(False, 512 * MIB))
    ledger.start_core(0, [Stack(0, 0)])
    ledger.load(neff, Owner(0, 1), [Stack(0, 0)])
    found = by_category(ledger.entries.values())
    for row in device_memory(neff):
        key = next(one.key for one in CATEGORIES if one.name == row.name)
        if key != "tensors":
            assert found[key] == row.bytes, row.name
    lines = model_lines(ledger, Owner(0, 1))
    assert lines[0] == f"[ND 0:NC 0] Current Usage Total: {size_text(sum(found.values()))}"
    assert ledger.models[Owner(0, 1)].uuid == neff.header.uuid.hex()


def test_the_list_form() -> None:
    """Older runtimes printed one number a line; what it reads as is what the table holds."""
    (found,) = read_memory_report(DOCUMENTED_LIST.splitlines()).lists
    assert set(found.values) <= {one.key for one in CATEGORIES}
    assert size_text(found.total) in DOCUMENTED_LIST and found.total >= sum(found.values.values())
    assert table_lines(oom_table(documented(), STACK))[2].startswith("ND 0 HBM 2    |")


@pytest.mark.parametrize("page", [100 * MIB, 4096 * MIB, 0, 768 * MIB])
def test_page_sizes_that_are_none(page: int) -> None:
    with pytest.raises(InputError, match="steps of 512"):
        scratchpad_of("gen3", 1, page=page)


def test_when_scratchpad_is_one_region() -> None:
    assert scratchpad_of("gen2", 1).contiguous and scratchpad_of("gen3", 2).contiguous
    assert not scratchpad_of("gen3", 1).contiguous and not scratchpad_of("gen4", 1, contiguous=True).contiguous
    assert not scratchpad_of("gen3", 2, (2, 30)).contiguous
    assert scratchpad_of("gen3", 2, (2, 33), page=2048 * MIB).page == 64 * MIB


def test_mistakes_are_refused() -> None:
    ledger = Ledger("gen2")
    owner, stack = Owner(0), Stack(0, 0)
    made = ledger.allocate(Category.TENSORS, 10, stack=stack, owner=owner)
    ledger.free(made)
    with pytest.raises(ValueError, match="is not there"):
        ledger.free(made)
    with pytest.raises(ValueError, match="aligned to"):
        ledger.allocate(Category.TENSORS, -1, stack=stack, owner=owner)
    ledger.load_parts("m", [PartPlan(())], Owner(0, 1), [stack])
    with pytest.raises(ValueError, match="loaded"):
        ledger.load_parts("m", [PartPlan(())], Owner(0, 1), [stack])
    plan = plan_of(open_neff(fixture()), ledger.scratchpad)
    assert len(plan) == 1 and plan[0].by_category()["code"] > 0
