"""The one table of what is in device memory: every allocation, whose it is, where it lies.

A session asks its `Ledger` for everything that it puts on a device; there is an allocator for each HBM stack. Every
view is made of its entries (`emulator.runtime.ledger_views`), so all of them sum to the same. Sources: runtime.md 3.1,
3.2.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from itertools import count
from typing import Any, TypeVar, cast

from emulator.addresses import address_map
from emulator.runtime.allocator import StackAllocator
from emulator.runtime.ledger_plan import PartPlan, Scratchpad, plan_of, scratchpad_of
from emulator.runtime.memory import Allocation, Category, OutOfMemoryError, Owner, Stack
from formats.named_tuple import NamedTuple
from formats.neff import Neff
from formats.neff.memory import Version, core_uses
from formats.nrt.memory import BY_KEY, USES

__all__ = ["Counter", "Entry", "Ledger", "LoadedModel", "NoRoomError"]

_ALIGN = 4096  # of what asks for nothing; ours
_RING_ALIGN = 256  # runtime.md 3.1
# Reversed, so that of several uses of a category the first one in the table stays.
_DEFAULT_USE = {BY_KEY[use.category].label: use.name for use in reversed(USES.values())}
_DEFAULT_USE |= {"model code": "pe", "tensors": "tensor", "scratchpad": "scratchpad", "runtime": "generic"}


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _alone(method: _Method) -> _Method:
    """Let one thread at a time into the methods of a ledger that change it."""

    @wraps(method)
    def locked(self: Ledger, *args: Any, **more: Any) -> Any:
        with self._lock:
            return method(self, *args, **more)

    return cast(_Method, locked)


class NoRoomError(OutOfMemoryError):
    """A stack without room in one piece: `largest` is its largest gap, `align` what was asked for."""

    def __init__(
        self, category: Category, size: int, stack: Stack, owner: Owner, free: int, largest: int, align: int
    ) -> None:
        super().__init__(category, size, stack, owner, free)
        self.largest, self.align = largest, align

    @property
    def fragmented(self) -> bool:
        """Return whether the bytes are there, but not in one piece, or not where they are needed."""
        return self.free >= self.size


class Entry(NamedTuple):
    """One row of the ledger: an allocation, what exactly it is for, which physical core of its logical one has it."""

    allocation: Allocation
    use: str
    part: int = 0

    @property
    def category(self) -> str:
        """Return the key of the entry's category."""
        return USES[self.use].category


class Counter(NamedTuple):
    """What the driver counts of one category on one core: bytes now, the last change, the most there ever was."""

    total: int = 0
    present: int = 0
    peak: int = 0

    def changed(self, nbytes: int) -> Counter:
        """Return the counter after an allocation, or with a negative number after one was given back."""
        total = self.total + nbytes
        return Counter(total, nbytes, max(self.peak, total))


class LoadedModel(NamedTuple):
    """A model in the ledger: whose it is, what it is called, one stack and one plan for each of its subgraphs."""

    owner: Owner
    name: str
    uuid: str
    stacks: tuple[Stack, ...]
    parts: tuple[PartPlan, ...]


class _Region:
    """The shared scratchpad of one physical core: what each model needs of it, and its pages in order."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.needs: dict[int, int] = {}
        self.pages: list[Entry] = []

    @property
    def need(self) -> int:
        return max(self.needs.values(), default=0)


class Ledger:
    """Device memory of an instance, allocation by allocation."""

    def __init__(
        self,
        generation: str,
        *,
        lnc: int = 1,
        runtime: Version | None = None,
        scratchpad: Scratchpad | None = None,
        changed: Callable[[], None] | None = None,
    ) -> None:
        self.generation, self.lnc, self.runtime = generation, lnc, runtime
        self.scratchpad = scratchpad or scratchpad_of(generation, lnc, runtime)
        self.entries: dict[int, Entry] = {}
        self.models: dict[Owner, LoadedModel] = {}
        self.counters: dict[tuple[Stack, int, int, str], Counter] = {}  # stack, logical core, part, name in sysfs
        self.changed = changed
        self._ranges = address_map(generation).hbm
        self._allocators: dict[Stack, StackAllocator] = {}
        self._regions: dict[tuple[int, int], _Region] = {}
        self._lock = threading.RLock()
        self._of: dict[Owner, dict[int, None]] = {}
        self._numbers = count(1)

    def allocator(self, stack: Stack) -> StackAllocator:
        """Return the allocator of a stack."""
        found = self._allocators.get(stack)
        if found is None:
            base, size = self._ranges[stack.hbm]
            found = self._allocators[stack] = StackAllocator(base, size)
        return found

    def restore(self, entry: Entry) -> None:
        """Enter an allocation as it was somewhere else; ValueError where its bytes, or its number, are taken."""
        allocation = entry.allocation
        if allocation.number in self.entries:
            raise ValueError(f"allocation {allocation.number} is there already")
        self.allocator(allocation.stack).take(allocation.address, allocation.size)
        self.entries[allocation.number] = entry
        self._of.setdefault(allocation.owner, {})[allocation.number] = None

    def entries_of(self, owner: Owner) -> list[Entry]:
        """Return what belongs to an owner."""
        with self._lock:
            return [self.entries[number] for number in self._of.get(owner, ())]

    def used(self, stack: Stack) -> int:
        """Return the bytes in use on a stack."""
        return self.allocator(stack).used

    def limit(self, stack: Stack) -> int:
        """Return the bytes that a stack has."""
        return self._ranges[stack.hbm][1]

    @_alone
    def allocate(
        self,
        category: Category,
        size: int,
        *,
        stack: Stack,
        owner: Owner,
        align: int = _ALIGN,
        name: str = "",
        use: str | None = None,
        part: int = 0,
    ) -> Allocation:
        """Reserve bytes on a stack, at the high end of what is free."""
        if size < 0 or align < 1:
            raise ValueError(f"{size} bytes aligned to {align}")
        allocator = self.allocator(stack)
        address = allocator.highest(max(size, 1), align)
        if address is None:
            raise NoRoomError(category, size, stack, owner, allocator.free, allocator.largest, align)
        return self._enter(category, use or _DEFAULT_USE[category], stack, address, max(size, 1), owner, part, name)

    @_alone
    def free(self, allocation: Allocation) -> None:
        """Give an allocation back; ValueError for one that is not there."""
        if self.entries.get(allocation.number, (None,))[0] != allocation:
            raise ValueError(f"allocation {allocation.number} is not there")
        self._remove(allocation.number)
        self._tell()

    @_alone
    def start_core(self, core: int, stacks: Sequence[Stack]) -> None:
        """Reserve what the physical cores of a logical one take before anything is loaded; all of it or nothing."""
        self._start(core, stacks, core_uses(self.generation, self.runtime), "core")

    @_alone
    def stop_core(self, core: int) -> None:
        """Give back what `start_core` reserved."""
        self._stop(core, "core")

    @_alone
    def start_profile(self, core: int, stacks: Sequence[Stack], nbytes: int) -> None:
        """Reserve the profiler buffers of a logical core, so many bytes on each physical one; all or nothing."""
        self._start(core, stacks, {"profiler buffers": nbytes}, "profile")

    @_alone
    def stop_profile(self, core: int) -> None:
        """Give back the profiler buffers of a core."""
        self._stop(core, "profile")

    def _start(self, core: int, stacks: Sequence[Stack], uses: Mapping[str, int], name: str) -> None:
        try:
            for part, stack in enumerate(stacks):
                for use, nbytes in uses.items():
                    self._take(use, nbytes, stack, Owner(core), part, name)
        except OutOfMemoryError:
            self._stop(core, name)
            raise
        self._tell()

    def _stop(self, core: int, name: str) -> None:
        # By name: models of the core, which belong to other owners, and its pages stay.
        self._remove_all(Owner(core), lambda one: one.allocation.name == name)
        self._tell()

    def load(self, neff: Neff, owner: Owner, stacks: Sequence[Stack]) -> None:
        """Reserve what a model takes, one stack per physical core; all of it, or OutOfMemoryError and nothing."""
        header = neff.header
        name = f"{header.neff_build_version}-{header.name}" if header.neff_build_version else header.name
        self.load_parts(name, plan_of(neff, self.scratchpad, self.runtime), owner, stacks, header.uuid.hex())

    @_alone
    def load_parts(
        self, name: str, parts: Sequence[PartPlan], owner: Owner, stacks: Sequence[Stack], uuid: str = ""
    ) -> None:
        """Reserve what the parts of a model ask for, as `load` does of a file's."""
        if owner in self.models:
            raise ValueError(f"model {owner.model} is loaded on core {owner.core} already")
        try:
            # Not strict: a file for fewer cores than a logical one has leaves the others empty.
            for part, (plan, stack) in enumerate(zip(parts, stacks, strict=False)):
                for use, what, nbytes in plan.takes:
                    self._take(use, nbytes, stack, owner, part, what)
                for what, nbytes in plan.crossing.items():
                    self._take("scratchpad", nbytes, stack, owner, part, what)
                region = self._regions.setdefault((owner.core, part), _Region(stack))
                if plan.need:
                    region.needs[owner.model] = plan.need
                    self._resize(owner.core, part, region)
        except OutOfMemoryError:
            self._forget(owner)
            raise
        self.models[owner] = LoadedModel(owner, name, uuid, tuple(stacks), tuple(parts))
        self._tell()

    @_alone
    def unload(self, owner: Owner) -> None:
        """Give back everything that belongs to a model; pages that no other model needs go with it."""
        self._forget(owner)
        self._tell()

    def _forget(self, owner: Owner) -> None:
        self._remove_all(owner, lambda _: True)
        self._of.pop(owner, None)
        for (core, part), region in list(self._regions.items()):
            if core == owner.core:
                region.needs.pop(owner.model, None)
                self._resize(core, part, region)
                if not region.pages:
                    del self._regions[core, part]
        self.models.pop(owner, None)

    def _resize(self, core: int, part: int, region: _Region) -> None:
        """Give the shared scratchpad of a core as many pages as its models need; those that stay never move."""
        wanted = self.scratchpad.pages(region.need)
        while len(region.pages) > wanted:
            self._remove(region.pages.pop().allocation.number)
        missing = wanted - len(region.pages)
        if missing <= 0:
            return
        page, allocator = self.scratchpad.page, self.allocator(region.stack)
        addresses = self._region_pages(region, missing) if self.scratchpad.contiguous else None
        for number in range(missing):
            address = addresses[number] if addresses else allocator.lowest(page, _ALIGN)
            if address is None or addresses == []:
                short = (missing if self.scratchpad.contiguous else 1) * page
                raise NoRoomError(Category.SHARED_SCRATCHPAD, short, region.stack, Owner(core), allocator.free,
                                  allocator.largest, 1)  # fmt: skip
            made = self._enter(Category.SHARED_SCRATCHPAD, "shared scratchpad", region.stack, address, page,
                               Owner(core), part, f"page {len(region.pages)}")  # fmt: skip
            region.pages.append(self.entries[made.number])

    def _region_pages(self, region: _Region, missing: int) -> list[int]:
        """Return where the next pages of one region go, which is right behind its last; none where that is taken."""
        page, allocator = self.scratchpad.page, self.allocator(region.stack)
        if region.pages:
            first = region.pages[-1].allocation.address + page
            return [first + page * each for each in range(missing)] if allocator.has(first, missing * page) else []
        # A region of its own begins some way behind the last one, so that both can grow; ours.
        ends = [other.pages[-1].allocation.address + page for other in self._regions.values()
                if other.stack == region.stack and other.pages]  # fmt: skip
        slack = self.limit(region.stack) // 8 // page * page
        start = None
        if ends:
            start = allocator.lowest(missing * page, page, max(ends) + slack)
        if start is None:
            start = allocator.lowest(missing * page, page)
        return [] if start is None else [start + page * each for each in range(missing)]

    def _take(self, use: str, nbytes: int, stack: Stack, owner: Owner, part: int, name: str) -> None:
        category = Category(BY_KEY[USES[use].category].label)
        align = _RING_ALIGN if use.startswith("dma rings") else 64
        self.allocate(category, nbytes, stack=stack, owner=owner, align=align, name=name, use=use, part=part)

    def _enter(
        self, category: Category, use: str, stack: Stack, address: int, size: int, owner: Owner, part: int, name: str
    ) -> Allocation:
        self.allocator(stack).take(address, size)
        made = Allocation(next(self._numbers), category, stack, address, size, owner, name)
        self.entries[made.number] = Entry(made, use, part)
        self._of.setdefault(owner, {})[made.number] = None
        key = stack, owner.core, part, BY_KEY[USES[use].category].sysfs
        self.counters[key] = self.counters.get(key, Counter()).changed(size)
        # What belongs to a model, to a core or to a region is reported once all of it is there, by the method that
        # takes it.
        if owner.model < 0 and name not in ("core", "profile") and use != "shared scratchpad":
            self._tell()
        return made

    def _remove(self, number: int) -> None:
        entry = self.entries.pop(number)
        allocation = entry.allocation
        self.allocator(allocation.stack).give(allocation.address, allocation.size)
        del self._of[allocation.owner][number]
        key = allocation.stack, allocation.owner.core, entry.part, BY_KEY[entry.category].sysfs
        self.counters[key] = self.counters[key].changed(-allocation.size)

    def _remove_all(self, owner: Owner, which: Callable[[Entry], bool]) -> None:
        for number in [number for number in self._of.get(owner, ()) if which(self.entries[number])]:
            self._remove(number)

    def _tell(self) -> None:
        if self.changed is not None:
            self.changed()
