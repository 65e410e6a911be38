"""What engines hold between words: the Scalar engine's function table, the Tensor engine's groups in PSUM.

Findings are told to a function of `Memcheck`: kind, place, message, hint, region.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Protocol

from emulator.checks.kept import kept_of
from emulator.checks.place import Names
from emulator.device import Device
from emulator.events import Event, Touches
from formats import isa
from formats.isa.activation import EVERY_SET
from formats.isa.pe import FIRST_OF_GROUP, LAST_OF_GROUP
from formats.neff.compilers import how_checked
from formats.neuron_core import PSUM_BANK_BYTES
from formats.regions import Region, RegionParts

__all__ = ["Groups", "Tables"]

_made = tuple.__new__
_NUMBER = attrgetter("number")
_NONE = -1
_FEW = 8  # groups of a bank that are looked at one by one, since to look for some of them takes longer
_READS = 256  # of PSUM, the latest
_FILLED = 16  # places in a group


class Tell(Protocol):
    """Report a finding about an event."""

    def __call__(self, kind: str, event: Event, message: str, hint: str, region: Region | None = None,
                 other: Event | None = None) -> object: ...  # fmt: skip


class Tables:
    """Which set of functions each Scalar engine has loaded, beside the functions that its words name."""

    def __init__(self, device: Device, tell: Tell) -> None:
        self._tell = tell
        self._device = device
        self._loaded = [_NONE] * len(device.cores)
        self._names = [core.activation for core in device.cores]
        self._sets: dict[int, list[tuple[str, frozenset[int]]]] = {}
        self._known: list[set[tuple[int, int]]] = [set() for _ in device.cores]  # functions with a set that has them

    def _sets_of(self, core: int) -> list[tuple[str, frozenset[int]]]:
        """Return the sets of functions that the file of a core has."""
        found = self._sets.get(core)
        if found is None:
            loaded = self._device.cores[core].loaded
            sets = () if loaded is None else loaded.subgraph.activation_sets
            found = [(one.name, frozenset([each.func_id for each in one.functions])) for one in sets]
            self._sets[core] = found
        return found

    def is_known(self, core: int, word: isa.Instruction) -> bool:
        """Return whether a word asks for nothing of its Scalar engine's table that is not known to be there."""
        field = word.FIELDS.get("function")
        if field is None:
            return not isinstance(word, isa.ActTableLoad)
        return (field.peek(word.raw), self._loaded[core]) in self._known[core]

    def on_event(self, event: Event) -> None:
        """Take a word of a Scalar engine."""
        word, core = event.instruction, event.core
        if isinstance(word, isa.ActTableLoad):
            self._load(event, word)
            return
        function = getattr(word, "function", None)
        if function is None:
            return
        code = int(function)
        sets, loaded = self._sets_of(core), self._loaded[core]
        if (code, loaded) in self._known[core]:
            return
        name = str(self._names[core].get(code, getattr(function, "name", code))).lower()
        if name in EVERY_SET or (0 <= loaded < len(sets) and code in sets[loaded][1]):
            self._known[core].add((code, loaded))
            return
        holders = [number for number, (_, codes) in enumerate(sets) if code in codes]
        which = f"ACT_TABLE_LOAD table_sel={holders[0]}" if holders else "an ACT_TABLE_LOAD of a set that holds it"
        if loaded == _NONE:
            self._tell("table", event, f"{name} is asked for, and no function table was loaded",
                       f"put {which} in front of this word")  # fmt: skip
        elif loaded < len(sets):
            self._tell("table", event,
                       f"{name} is asked for, and the loaded table {loaded} ({sets[loaded][0]}) does not hold it",
                       f"put {which} in front of this word")  # fmt: skip

    def _load(self, event: Event, word: isa.ActTableLoad) -> None:
        sets = self._sets_of(event.core)
        self._loaded[event.core] = word.table_select
        if sets and word.table_select >= len(sets):
            self._tell("table", event, f"table {word.table_select} is loaded; the file has {len(sets)}",
                       f"load one of 0 to {len(sets) - 1}")  # fmt: skip


class _Group:
    """A group of products in PSUM: what it covers, the word that began it, whether it is over, whether it was read.

    `filled` are the latest places, within it, that other words than products have written since; `number` counts
    groups. One that is `alone` shares no byte with any other.
    """

    __slots__ = (
        "_begun", "_region", "alone", "behind", "ended", "filled", "first", "high", "low", "number", "parts", "read"
    )  # fmt: skip

    def __init__(self, region: RegionParts, begun: Event | Callable[[], Event]) -> None:
        self.parts = region
        self._region: Region | None = None
        _, _, first, partitions, low, nbytes, _ = region
        self.low, self.high, self.first, self.behind = low, low + nbytes, first, first + partitions
        self._begun, self.ended, self.read, self.number = begun, False, False, 0
        self.filled: Sequence[Region] = ()

    def begin(self, begun: Event | Callable[[], Event]) -> None:
        """Begin with a word, as if it were new."""
        self._begun, self.ended, self.read, self.number = begun, False, False, 0
        self.filled = ()

    @property
    def region(self) -> Region:
        """Return what it covers."""
        found = self._region
        if found is None:
            found = self._region = _made(Region, self.parts)
        return found

    @property
    def begun(self) -> Event:
        """Return the word that began it."""
        begun = self._begun
        if not isinstance(begun, Event):
            begun = self._begun = begun()
        return begun

    def fill(self, region: Region) -> None:
        """Take a place that something else than a product has written."""
        self.filled = (*self.filled, region)[-_FILLED:]

    def holds(self, region: Region) -> bool:
        """Return whether bytes of a region are this group's still: what was filled anew begins without it."""
        return self.region.overlaps(region) and not (self.filled and any(each.covers(region) for each in self.filled))


class _Read:
    """A place in PSUM that was read: by which word, and what makes the event of that."""

    __slots__ = ("_by", "_region", "_tile")

    def __init__(self, region: Region, by: Event | Callable[[], Event]) -> None:
        self._region, self._by = region, by
        self._tile: tuple[int, str] | None = None

    def tile(self, names: Names) -> tuple[int, str]:
        """Return the core of the word and the tile that it read."""
        found = self._tile
        if found is None:
            by = self._by if isinstance(self._by, Event) else self._by()
            found = self._tile = by.core, names.name(self._region, by.engine, by.pc)
        return found


class _Bank:
    """The groups that have bytes in a PSUM bank, by their first bytes.

    None of them has more than `widest`, nor any byte from `top` on.
    """

    __slots__ = ("groups", "lows", "top", "widest")

    def __init__(self) -> None:
        self.groups: list[_Group] = []
        self.lows: list[int] = []
        self.top = self.widest = 0

    def near(self, low: int, high: int) -> list[_Group]:
        """Return groups, those that have bytes from one to in front of another among them."""
        if low >= self.top:
            return []
        lows = self.lows
        if len(lows) <= _FEW:
            return self.groups
        return self.groups[bisect_right(lows, low - self.widest) : bisect_left(lows, high)]

    def add(self, group: _Group) -> None:
        """Take a group."""
        low, high, lows = group.low, group.high, self.lows
        if low >= self.top:  # as those that fill a bank one behind the other
            lows.append(low)
            self.groups.append(group)
        else:
            place = bisect_right(lows, low)
            lows.insert(place, low)
            self.groups.insert(place, group)
        if high > self.top:
            self.top = high
        wide = high - low
        if wide > self.widest:
            self.widest = wide

    def leave(self, group: _Group) -> None:
        """Forget a group."""
        place = self.groups.index(group)
        del self.lows[place], self.groups[place]


class _Live:
    """The groups of a core that nothing has overwritten whole, by PSUM bank: products see those of their own bank."""

    __slots__ = ("_alone", "_banks", "_begun", "_count")

    def __init__(self) -> None:
        self._banks: dict[int, _Bank] = {}
        self._alone: dict[RegionParts, _Group] = {}  # by what they cover
        self._count = self._begun = 0

    def __len__(self) -> int:
        """Return how many there are."""
        return self._count

    def __iter__(self) -> Iterator[_Group]:
        """Yield them in the order in which they began."""
        found = {one.number: one for bank in self._banks.values() for one in bank.groups}
        return iter([found[number] for number in sorted(found)])

    def near(self, region: RegionParts) -> list[_Group]:
        """Return the groups that may share bytes with a region, by what lies around them, in the order they began."""
        _, _, first, partitions, low, nbytes, _ = region
        high, behind = low + nbytes, first + partitions
        number, last = low // PSUM_BANK_BYTES, (high - 1) // PSUM_BANK_BYTES
        if number == last:  # nearly all
            bank = self._banks.get(number)
            if bank is None:
                return []
            groups: Iterable[_Group] = bank.near(low, high)
            if not groups:
                return []
        else:
            banks = [self._banks[each] for each in range(number, last + 1) if each in self._banks]
            groups = {one.number: one for bank in banks for one in bank.near(low, high)}.values()
        found = [
            one for one in groups if one.low < high and low < one.high and one.first < behind and first < one.behind
        ]
        if len(found) > 1:
            found.sort(key=_NUMBER)
        return found

    def alone(self, region: RegionParts) -> _Group | None:
        """Return a group of a region where no other one may share bytes with it, as of most."""
        return self._alone.get(region)

    def renew(self, group: _Group, begun: Callable[[], Event]) -> None:
        """Take one that is alone, and is overwritten whole, as a group that begins."""
        group.begin(begun)
        self._begun = group.number = self._begun + 1

    def add(self, group: _Group, near: Iterable[_Group] | None = None) -> None:
        """Take a group that begins; `near` are those that may share bytes with it, where that is known."""
        self._begun = group.number = self._begun + 1
        self._count += 1
        others = self.near(group.parts) if near is None else near
        if not others:
            self._alone[group.parts] = group
        for other in others:
            self._alone.pop(other.parts, None)
        for number in range(group.low // PSUM_BANK_BYTES, (group.high - 1) // PSUM_BANK_BYTES + 1):
            bank = self._banks.get(number)
            if bank is None:
                bank = self._banks[number] = _Bank()
            bank.add(group)

    def leave(self, gone: Iterable[_Group]) -> None:
        """Forget groups that are overwritten."""
        for group in gone:
            self._count -= 1
            self._alone.pop(group.parts, None)
            for number in range(group.low // PSUM_BANK_BYTES, (group.high - 1) // PSUM_BANK_BYTES + 1):
                self._banks[number].leave(group)


def _marks_ends(device: Device) -> bool:
    """Return whether a program marks the last product of half or more of the groups of several that it begins."""
    groups = [
        one.word.acc_flags & (FIRST_OF_GROUP | LAST_OF_GROUP)
        for core in device.cores
        for one in core.engines["PE"].words
        if isinstance(one.word, isa.MatMul)
    ]
    ends = groups.count(LAST_OF_GROUP)
    return bool(ends) and 2 * ends >= groups.count(FIRST_OF_GROUP)


def _fills(mine: list[_Group], region: Region) -> bool:
    """Return whether a product is added to all of the one group that it meets, as nearly all are."""
    return len(mine) == 1 and mine[0].region == region


def _beside(groups: list[Region], region: Region) -> bool:
    """Return whether a region that meets groups goes beyond them and takes in none of them whole, as byte ranges."""
    box = region._replace(pattern=None)
    boxes = [one._replace(pattern=None) for one in groups]
    met = sum(box.common(one).size for one in boxes)
    return met < box.size and not any(box.covers(one) for one in boxes)


def _straddles(one: Region, other: Region) -> bool:
    """Return whether two overlapping regions both go beyond the other, as byte ranges: neither is a part."""
    one, other = one._replace(pattern=None), other._replace(pattern=None)
    return not one.covers(other) and not other.covers(one)


class Groups:
    """The groups of PSUM: begun by a product that overwrites, over with the one that is marked as the last."""

    def __init__(self, device: Device, tell: Tell, names: Names) -> None:
        self._tell, self._names = tell, names
        self._reads: deque[_Read] = deque(maxlen=_READS)  # what was read of PSUM
        self._device = device
        self._groups = [_Live() for _ in device.cores]

    @cached_property
    def _marked(self) -> bool:
        """Return whether a product that ends its group has to be marked as the last."""
        # Compilers either mark the last product of every group or of none, and then nothing shows (isa.md 11); the
        # builder sets it at the last product of a tile's life, which may be read before. So it is asked for where words
        # are hand-written, and in files that mark them.
        device = self._device
        graphs = [core.loaded.subgraph for core in device.cores if core.loaded is not None]
        return (
            device.model is not None
            and not any(graph.has("tiles.json") for graph in graphs)
            and (how_checked(device.model.neff) == "own" or kept_of(device, "ends", lambda: _marks_ends(device)))
        )

    def is_plain(
        self, core: int, word: isa.Instruction, touches: Touches, begun: Callable[[], Event] | None = None
    ) -> bool:
        """Return whether a word leaves groups alone: it touches nothing in PSUM, or is added to all of its group.

        Where `begun` makes its event, a product that begins a group away from all others is taken, too, and a word that
        reads groups that are over.
        """
        groups = self._groups[core]
        if type(word) is isa.MatMul:
            return self._goes_on(groups, word, touches, begun)
        if groups:
            for place in touches.write_places:
                if place[0] == "PSUM" and (begun is None or groups.near(place)):
                    return False
            for place in touches.read_places:
                if place[0] == "PSUM" and (begun is None or not self._is_read(groups, place)):
                    return False
            if begun is not None:
                self._reads += [
                    _Read(_made(Region, place), begun) for place in touches.read_places if place[0] == "PSUM"
                ]
        return True

    @staticmethod
    def _is_read(groups: _Live, place: RegionParts) -> bool:
        """Take a place that is read where there is nothing to tell, nor to look at more closely."""
        mine = groups.alone(place)
        near = groups.near(place) if mine is None else [mine]
        for one in near:
            # Boxes that meet share bytes.
            if not one.ended or one.parts[6] is not None or place[6] is not None or one.parts[1] != place[1]:
                return False
            one.read = True
        return True

    def _goes_on(self, groups: _Live, word: isa.MatMul, touches: Touches, begun: Callable[[], Event] | None) -> bool:
        """Take a product that is added to all of a group that it meets, as most are; return whether it is one.

        Or, where `begun` makes its event, one that begins a group and meets none but what was read.
        """
        places = touches.write_places
        if self._marked or not places:
            return False
        first = word.acc_flags & FIRST_OF_GROUP
        if first and begun is None:
            return False
        region = places[0]
        mine = groups.alone(region)
        if first and begun is not None:
            if mine is not None:
                if not (mine.ended and mine.read):
                    return False  # there may be something to tell
                groups.renew(mine, begun)
                mine.ended = True  # where nothing marks ends
                return True
            near = groups.near(region)
            if near:
                for one in near:
                    if not (one.ended and one.read):
                        return False
                whole = _made(Region, region)
                gone = [one for one in near if whole.covers(one.region)]
                groups.leave(gone)
                near = [one for one in near if one not in gone]
            group = _Group(region, begun)
            group.ended = True
            groups.add(group, near)
            return True
        near = groups.near(region) if mine is None else [mine]
        if len(near) == 1:
            (mine,) = near
            if mine.filled or mine.parts != region:
                return False
        else:
            # Beside the group that it fills, others that it lies in, or that lie in it.
            is_one = False
            for one in near:
                if one.filled or one.parts[6] is not None:
                    return False
                is_one = is_one or one.parts == region
            if not is_one:
                return False
        for one in near:
            one.ended, one.read = True, False  # where nothing marks ends
        return True

    def on_event(self, event: Event) -> None:
        """Take a word: a product, or one that reads or writes PSUM."""
        groups = self._groups[event.core]
        word = event.instruction
        if isinstance(word, isa.MatMul):
            self._product(event, word, groups)
            return
        if not groups:
            return
        for region in event.reads:
            if region.space == "PSUM":
                self._read(event, region, groups)
        for region in event.writes:
            if region.space == "PSUM":
                gone = []
                for one in groups.near(region):
                    if region.covers(one.region):
                        gone.append(one)
                    elif one.region.overlaps(region):
                        one.fill(region)
                groups.leave(gone)

    def _product(self, event: Event, word: isa.MatMul, groups: _Live) -> None:
        (region, *_) = event.writes or (None,)
        if region is None:
            return
        flags = word.acc_flags
        first = bool(flags & FIRST_OF_GROUP)
        near = groups.near(region)
        mine = [one for one in near if (one.region.overlaps(region) if first else one.holds(region))]
        if first:
            for old in mine:
                self._overwritten(event, region, old)
            groups.leave([one for one in mine if region.covers(one.region)])
            for old in mine:
                old.read = old.ended = True  # told already, or another half of the bank
            mine = [_Group(region, event)]
            groups.add(mine[0])
        elif mine and not _fills(mine, region) and _beside([one.region for one in mine], region):
            old = mine[0]
            self._tell("psum-group", event,
                       f"a product is added to a part of the group of pc {old.begun.pc}, and to bytes beside it",
                       "add to the bytes that the first product of the group wrote", region, old.begun)  # fmt: skip
        elif self._marked:
            for old in mine:
                if old.ended and old.read and region.covers(old.region):
                    self._tell("psum-group", event,
                               f"a product is added to the group of pc {old.begun.pc}, which was ended and read",
                               "begin a group of its own (acc_flags bit 0), or end that one with its last product",
                               region.common(old.region), old.begun)  # fmt: skip
        for one in mine:
            one.ended = bool(flags & LAST_OF_GROUP) or not self._marked or (one.ended and not region.covers(one.region))
            one.read = False

    def _overwritten(self, event: Event, region: Region, old: _Group) -> None:
        if not old.ended:
            self._tell("psum-group", event,
                       f"a group begins on bytes of the one that pc {old.begun.pc} began and nothing ended",
                       "add to the group (acc_flags bit 0 clear), or end it first (bit 1)",
                       region.common(old.region), old.begun)  # fmt: skip
        elif not old.read and region.covers(old.region) and not self._beside(old):
            self._tell("psum-unread", event,
                       f"a group overwrites the one that pc {old.begun.pc} began, and nothing read that",
                       "copy the result out of PSUM first, or use another bank", old.region, old.begun)  # fmt: skip
        elif not old.read and self._marked and _straddles(region, old.region):
            self._tell("psum-unread", event,
                       f"a group begins on a part of the one that pc {old.begun.pc} began, unread, and goes beyond it",
                       "copy the result out of PSUM first, or let the two lie beside each other",
                       region.common(old.region), old.begun)  # fmt: skip

    def _beside(self, old: _Group) -> bool:
        """Return whether the tile of a group was read elsewhere: not all of it is needed."""
        begun = old.begun
        tile = self._names.name(old.region, begun.engine, begun.pc)
        return bool(tile) and (begun.core, tile) in [each.tile(self._names) for each in self._reads]

    def _read(self, event: Event, region: Region, groups: _Live) -> None:
        self._reads.append(_Read(region, event))
        for one in groups.near(region):
            mine = one.region
            is_box = mine.pattern is None and region.pattern is None and mine.core == region.core
            if is_box or mine.overlaps(region):  # boxes that meet share bytes
                one.read = True
                if not one.ended:
                    one.ended = True  # once is enough
                    self._tell("psum-group", event,
                               f"a result is read from PSUM whose group, begun by pc {one.begun.pc}, nothing has ended",
                               "let the last product of the group say so (acc_flags bit 1)",
                               region.common(one.region), one.begun)  # fmt: skip

    def finish(self) -> None:
        """Report groups that are still open at the end of the program."""
        for groups in self._groups:
            for one in groups:
                if not one.ended:
                    self._tell("psum-group", one.begun, "a group of products is begun and never ended",
                               "let its last product say so (acc_flags bit 1)", one.region)  # fmt: skip
