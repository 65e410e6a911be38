"""Places in SBUF and PSUM for every tile, by the stretch of the program that it lives through."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from heapq import heappop, heappush

from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS
from neurontools.builder.chip import Chip
from neurontools.builder.errors import AllocationError
from neurontools.builder.trace import Allocation, Source, Space

__all__ = ["AreRead", "Life", "Policy", "Span", "allocate", "groups_of", "span_of", "tightest"]

# ours; 8 bytes hold the widest element type
_ALIGN_LARGE, _ALIGN_SMALL = 64, 8
_SHOWN = 24
_ON_CHIP = _SBUF, _PSUM = Space.SBUF, Space.PSUM


class Life(NamedTuple):
    """A tile and the numbers of the first and last operation that touch it."""

    allocation: Allocation
    first: int
    last: int
    source: Source


class Span(NamedTuple):
    """Bytes `low` to `high` - 1 of every partition."""

    low: int
    high: int


class _Held(NamedTuple):
    """Bytes at an address that the kernel chose, and the operations from which to which they are held."""

    span: Span
    first: int
    last: int


# What `Span(...)` does, without its function: every tile takes one.
_span_of: Callable[[tuple[int, int]], Span] = partial(tuple.__new__, Span)
# Return the first byte for a tile of `size` bytes among the taken spans (ascending), or None.
Policy = Callable[[int, Sequence[Span]], "int | None"]
# Return whether what lies in a span of a memory behind an operation may be read by tiles that come later.
AreRead = Callable[[Span, Space, int], bool]


class _NextFit:
    """Go round the memory, so that a byte is used again as late as possible and reuse orders nothing needlessly."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high, self.cursor = low, high, low

    def __call__(self, size: int, taken: Sequence[Span]) -> int | None:
        found = _first_gap(size, taken, self.cursor, self.high)
        if found is None:
            found = _first_gap(size, taken, self.low, self.high)
            if found is None:
                return None
        self.cursor = found + size
        return found


class _FirstFit:
    """Take the lowest place: packs tightly, reuses at once."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def __call__(self, size: int, taken: Sequence[Span]) -> int | None:
        return _first_gap(size, taken, self.low, self.high)


class _Banks:
    """PSUM: a tile stays inside a bank or starts at one; small tiles go round the banks."""

    def __init__(self, banks: int, bank: int, *, turning: bool) -> None:
        self.banks, self.bank, self.turning = banks, bank, turning
        self.next = 0
        self.cursors = [0] * banks

    def __call__(self, size: int, taken: Sequence[Span]) -> int | None:
        need = -(-size // self.bank)
        for turn in range(self.banks):
            number = (self.next + turn) % self.banks if self.turning else turn
            if number + need > self.banks:
                continue
            low = number * self.bank
            if size > self.bank:
                if any(span.low < low + size and span.high > low for span in taken):
                    continue
                found: int | None = low
            else:
                found = _first_gap(size, taken, low + self.cursors[number] * self.turning, low + self.bank)
                if found is None:
                    found = _first_gap(size, taken, low, low + self.bank)
                if found is None:
                    continue
                self.cursors[number] = found + size - low
            self.next = number + need
            return found
        return None


def _first_gap(size: int, taken: Sequence[Span], low: int, high: int) -> int | None:
    align = _ALIGN_LARGE if size >= _ALIGN_LARGE else _ALIGN_SMALL
    # rounded up: -(-a // b) is a / b towards the next whole number
    at = -(-low // align) * align
    for span in taken:
        # spans are in ascending order, so that nothing later lies in front of the gap
        if span[0] >= at + size:
            break
        if span[1] > at:
            at = -(-span[1] // align) * align
    return at if at + size <= high else None


def allocate(lives: Iterable[Life], chip: Chip, are_read: AreRead | None = None) -> dict[int, tuple[int, int]]:
    """Return (partition, byte) of every tile by allocation id; tiles with an address keep it.

    An address of the kernel is taken from the first tile there to the last, since a kernel may keep data there under
    another name; with `are_read` (`neurontools.builder.leftovers`) between two of them only where that is read.

    Raises AllocationError, listing what takes the bytes at the point that does not fit, when no order of placing finds
    room.
    """
    lives = list(lives)
    places: dict[int, tuple[int, int]] = {}
    for space in _ON_CHIP:
        mine = [life for life in lives if life.allocation.space is space]
        if not mine:
            continue
        chosen = [life for life in mine if life.allocation.address is not None]
        for life in chosen:
            _check_fixed(life, chip)
        fixed = _fixed(chosen, space, are_read) if chosen else []
        in_a_row = _in_a_row(mine, chip) if space is _SBUF and not chosen else None
        if in_a_row is not None:
            places.update(in_a_row)
            continue
        failed: Life | None = None
        for policy in _policies(space, chip):
            found, failed = _in_order(mine, fixed, policy)
            if failed is None:
                break
        else:
            by_size = sorted(mine, key=lambda life: (-life.allocation.partition_bytes, life.first, life.allocation.id))
            found, stuck = _offline(by_size, fixed, tightest(space, chip))
            if stuck is not None:
                capacity = chip.psum_bytes if space is Space.PSUM else chip.sbuf_end - chip.sbuf_first
                raise _overflow(failed or stuck, mine, fixed, space, capacity)
        places.update(found)
    return places


def _policies(space: Space, chip: Chip) -> list[Policy]:
    """Return the ways to place tiles, best first; the last packs tightest."""
    if space is _SBUF:
        return [_NextFit(chip.sbuf_first, chip.sbuf_end), _FirstFit(chip.sbuf_first, chip.sbuf_end)]
    banks = chip.psum_bytes // chip.psum_bank
    return [_Banks(banks, chip.psum_bank, turning=turning) for turning in (True, False)]


def tightest(space: Space, chip: Chip) -> Policy:
    """Return the way to place tiles that packs tightest; it depends on what is taken alone."""
    return _policies(space, chip)[-1]


def _in_a_row(lives: Sequence[Life], chip: Chip) -> dict[int, tuple[int, int]] | None:
    """Place tiles as `_NextFit` does as long as it does not come round; None where it would."""
    at, end = chip.sbuf_first, chip.sbuf_end
    if sum([life.allocation.partition_bytes for life in lives]) > end - at:
        return None
    places: dict[int, tuple[int, int]] = {}
    for _, number, size in sorted([(one.first, one.allocation.id, one.allocation.partition_bytes) for one in lives]):
        size = size or 1
        align = _ALIGN_LARGE if size >= _ALIGN_LARGE else _ALIGN_SMALL
        at = -(-at // align) * align
        places[number] = 0, at
        at += size
        if at > end:
            return None
    return places


def _in_order(
    lives: Sequence[Life], fixed: Sequence[_Held], policy: Policy
) -> tuple[dict[int, tuple[int, int]], Life | None]:
    """Place tiles as the program comes to them; return the tile that found no room, if any."""
    taken: list[Span] = []  # ascending
    ending: list[tuple[int, Span]] = []  # a heap: what is taken with the last operation that needs it
    places: dict[int, tuple[int, int]] = {}
    # by their first operations, and of those that begin at one by their numbers, no two of which are the same
    for start, _, life in sorted([(one.first, one.allocation.id, one) for one in lives]):
        allocation, last = life.allocation, life.last
        if allocation.address is not None:
            places[allocation.id] = allocation.address
            continue
        while ending and ending[0][0] < start:
            del taken[bisect_left(taken, heappop(ending)[1])]
        blocked = [one.span for one in fixed if one.first <= last and one.last >= start] if fixed else ()
        size = allocation.partition_bytes or 1
        at = policy(size, sorted([*taken, *blocked]) if blocked else taken)
        if at is None:
            return places, life
        places[allocation.id] = (0, at)
        span = _span_of((at, at + size))
        insort(taken, span)
        heappush(ending, (last, span))
    return places, None


def _offline(
    lives: Sequence[Life], fixed: Sequence[_Held], policy: Policy
) -> tuple[dict[int, tuple[int, int]], Life | None]:
    """Place tiles in the given order, each against all whose lives meet its own: slower, packs best."""
    placed: list[tuple[Span, int, int]] = [(one.span, one.first, one.last) for one in fixed]
    places: dict[int, tuple[int, int]] = {}
    for life in lives:
        allocation = life.allocation
        if allocation.address is not None:
            places[allocation.id] = allocation.address
            continue
        size = max(allocation.partition_bytes, 1)
        at = policy(size, sorted(span for span, first, last in placed if first <= life.last and last >= life.first))
        if at is None:
            return places, life
        places[allocation.id] = (0, at)
        placed.append((Span(at, at + size), life.first, life.last))
    return places, None


def _fixed(lives: Sequence[Life], space: Space, are_read: AreRead | None) -> list[_Held]:
    """Return the bytes that the kernel chose for tiles, each with the stretches over which they hold one or its data.

    Without `are_read` from the first tile to the last, whatever happens to lie in between.
    """
    spans: dict[Span, list[Life]] = {}
    for life in lives:
        spans.setdefault(span_of(life), []).append(life)
    found = []
    for span, mine in spans.items():
        mine.sort(key=lambda one: one.first)
        held = _Held(span, mine[0].first, mine[0].last)
        for life in mine[1:]:
            if life.first > held.last and are_read is not None and not are_read(span, space, held.last):
                found.append(held)
                held = _Held(span, life.first, life.last)
            else:
                held = held._replace(last=max(held.last, life.last))
        found.append(held)
    return found


def _check_fixed(life: Life, chip: Chip) -> None:
    allocation = life.allocation
    assert allocation.address is not None
    partition, byte = allocation.address
    limit = chip.psum_bytes if allocation.space is _PSUM else chip.sbuf_bytes
    if (
        byte < 0
        or byte + allocation.partition_bytes > limit
        or partition < 0
        or partition + allocation.partitions > PARTITIONS
    ):
        raise AllocationError(
            f"{allocation.name} at address=({partition}, {byte}) with {allocation.partitions} partitions of "
            f"{allocation.partition_bytes} bytes ({_at(life.source)}) lies outside {allocation.space.value.upper()}: "
            f"{PARTITIONS} partitions of {limit} bytes"
        )


def _overflow(
    failed: Life, lives: Sequence[Life], fixed: Sequence[_Held], space: Space, capacity: int
) -> AllocationError:
    alive = [life for life in lives if life.first <= failed.first <= life.last and life is not failed]
    alive.sort(key=lambda life: (-life.allocation.partition_bytes, life.allocation.id))
    total = sum(life.allocation.partition_bytes for life in alive)
    size = failed.allocation.partition_bytes
    shown = ", ".join(
        f"{life.allocation.name} {life.allocation.partition_bytes} ({_at(life.source)})" for life in alive[:_SHOWN]
    )
    more = f", and {len(alive) - _SHOWN} more" if len(alive) > _SHOWN else ""
    text = (
        f"{space.value.upper()} is full: {failed.allocation.name} needs {size} bytes per partition "
        f"({_at(failed.source)}), {total} of {capacity} are taken by {len(alive)} live tensors: {shown}{more}"
    )
    return AllocationError(text.removesuffix(": ") + _held_back(failed, lives, alive, fixed))


def _held_back(failed: Life, lives: Sequence[Life], alive: Sequence[Life], fixed: Sequence[_Held]) -> str:
    """Return what else keeps a tile out: addresses of the kernel at which none of its tiles lives at that point."""
    texts = []
    total = 0
    for held in fixed:
        mine = [life for life in lives if life.allocation.address is not None and span_of(life) == held.span]
        if not (held.first <= failed.last and held.last >= failed.first) or any(life in alive for life in mine):
            continue
        total += held.span.high - held.span.low
        before = max((life for life in mine if life.last < failed.first), key=lambda one: one.last, default=None)
        after = min((life for life in mine if life.first > failed.first), key=lambda one: one.first, default=None)
        names = [f"{life.allocation.name} ({_at(life.source)})" for life in (before, after) if life is not None]
        texts.append(f"{held.span.high - held.span.low} from byte {held.span.low} on for {' and '.join(names)}")
    if not texts:
        return ""
    more = f", and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return (
        f"; {total} more are held at addresses that the kernel chose, where a tile comes while this one lives or may "
        f"read what an earlier one left: {', '.join(texts[:_SHOWN])}{more}"
    )


def span_of(life: Life) -> Span:
    """Return the bytes of a tile at an address that the kernel chose."""
    _, low = life.allocation.address or (0, 0)
    return Span(low, low + max(life.allocation.partition_bytes, 1))


def _at(source: Source) -> str:
    return f"{source[0]}:{source[1]}"


def groups_of(lives: Iterable[Life]) -> dict[int, int]:
    """Return a group number per allocation id: tiles that share bytes while both live, by addresses of the kernel."""
    chosen = [
        (life.allocation.space.value, life.allocation.address[1], life)
        for life in lives
        if life.allocation.address is not None
    ]
    if not chosen:
        return {}
    fixed = sorted(chosen, key=lambda item: item[:2])
    parent = {life.allocation.id: life.allocation.id for _, _, life in fixed}

    def root(number: int) -> int:
        while parent[number] != number:
            # path halving: union-find stays flat
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    active: list[tuple[int, Life]] = []  # (byte behind the tile, tile)
    space = ""
    for kind, low, life in fixed:
        active = [one for one in active if one[0] > low] if kind == space else []
        space = kind
        for _, one in active:
            if one.first <= life.last and life.first <= one.last:
                parent[root(life.allocation.id)] = root(one.allocation.id)
        active.append((low + max(life.allocation.partition_bytes, 1), life))
    return {number: root(number) for number in parent}
