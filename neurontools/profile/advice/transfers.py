"""Rules about DMA: transfers and descriptors that are too small to be worth their fixed cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from emulator.timeline.change import Change
from formats.neuron_core import PARTITIONS
from neurontools.profile.advice.context import Candidate, Context, Row, pricing

if TYPE_CHECKING:
    from emulator.cost.dma import DmaCosts
    from emulator.dma.transfer import Transfer

__all__ = ["small_descriptors", "small_transfers"]

# Bytes per partition below which a transfer is bound by its fixed cost: hardware.md 4.2, guidance.
_ENOUGH = 2048
_SMALL = 512  # bytes of a descriptor below which it costs more than its data
_SOURCE = "hardware.md 4.2: at least 2 KiB per partition"


def _facts(context: Context, row: Row) -> tuple[int, int]:
    """Return bytes and bytes per descriptor of a transfer."""
    track = context.timeline.queue(row[0])
    return track.nbytes[row[1]], track.nbytes[row[1]] // max(1, track.pieces[row[1]])


def _stores(context: Context, row: Row) -> bool:
    track = context.timeline.queue(row[0])
    return bool(track.flags[row[1]] & 1)


def _number(context: Context, row: Row) -> int:
    track = context.timeline.queue(row[0])
    return int(track.transfer[row[1]])


def small_transfers(context: Context) -> Iterator[Candidate]:
    """Several small transfers of one line pay several times what one large one pays once."""
    causes = context.timeline.causes
    rows = [(track.owner, row) for track in context.timeline.queues for row in range(len(track))]
    for line, group in context.by_line(rows).items():
        small = [row for row in group if _facts(context, row)[0] < _ENOUGH * PARTITIONS]
        if len(small) < 2 or line is None:
            continue
        total = sum(_facts(context, row)[0] for row in small)
        every = max(2, min(len(small), _ENOUGH * PARTITIONS * len(small) // max(1, total)))
        # One load brings everything when the first is due; one store takes everything when the last is ready.
        merged = [
            row
            for index, row in enumerate(small)
            if ((index + 1) % every and index + 1 < len(small) if _stores(context, row) else index % every)
        ]
        words = {context.key(causes.trigger(*row)) for row in merged}
        numbers = {_number(context, row) for row in merged}
        yield Candidate(
            "small-transfers",
            line,
            f"{len(small)} transfers of {total // len(small):,} bytes: one for "
            f"every {every} of them moves the same bytes",
            Change(word=pricing(dict.fromkeys(words, (0.0, 0))), transfer=_merged(numbers)),
            f"the schedule was run again with triggers and descriptors for {len(small) - len(merged)}",
            _SOURCE,
            sum(
                context.timeline.recorder.tracks[owner].completed[row]
                - context.timeline.recorder.tracks[owner].start[row]
                for owner, row in merged
            ),
        )


def _merged(numbers: set[int]) -> Any:
    def cost(transfer: Transfer, costs: DmaCosts) -> DmaCosts:
        # Its bytes come with those of another transfer, and need the way from the memory as before.
        return costs._replace(generate_ps=0) if transfer.number in numbers else costs

    return cost


def small_descriptors(context: Context) -> Iterator[Candidate]:
    """Descriptors of few bytes keep a DMA engine longer than their data does."""
    rows = [
        (track.owner, row)
        for track in context.timeline.queues
        for row in range(len(track))
        if track.pieces[row] > 1 and track.nbytes[row] < _SMALL * track.pieces[row]
    ]
    for line, group in context.by_line(rows).items():
        sizes = sorted(_facts(context, row)[1] for row in group)
        numbers = {_number(context, row): _facts(context, row)[1] for row in group}
        shown = f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
        yield Candidate(
            "small-descriptors",
            line,
            f"{len(group)} transfers in pieces of {shown} bytes: rows of 512 "
            "bytes and more that lie together in memory move with fewer descriptors",
            Change(transfer=_longer(numbers)),
            "the schedule was run again with descriptors of 2 KiB for the same bytes",
            "hardware.md 4.1, 4.2",
            sum(
                context.timeline.recorder.tracks[owner].completed[row]
                - context.timeline.recorder.tracks[owner].start[row]
                for owner, row in group
            ),
        )


def _longer(sizes: dict[int, int]) -> Any:
    def cost(transfer: Transfer, costs: DmaCosts) -> DmaCosts:
        size = sizes.get(transfer.number)
        if size is None:
            return costs
        # Longer ones are above what a short one takes at least.
        changed: dict[str, Any] = {"descriptor_fixed_ps": costs.descriptor_fixed_ps * size // _ENOUGH, "short_run": 0,
                                   "short_read_ps": 0}  # fmt: skip
        if "short_row" in costs._fields:
            changed["short_row"] = 0
        return costs._replace(**changed)

    return cost
