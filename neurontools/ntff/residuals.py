"""A capture beside the emulator's run of the same NEFF: word by word, transfer by transfer.

A word is matched by engine, compiler's pc and how often it ran before; a transfer by its queue and its place in the
queue's order. A transfer ends on a ring where its bytes are through and the four (of some, eight) of its signal, which
some packets hold together with the last data; a queue where nothing comes out even on every ring is left out.
Elsewhere packets like the last one of the ring tell transfers apart, or packets that repeat themselves as often.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from neurontools.ntff.capture import chosen_cores, subgraph_of

if TYPE_CHECKING:
    from emulator.core import Core
    from emulator.timeline.measure import Measured
    from formats.isa import Instruction
    from formats.neff import Neff, Subgraph
    from formats.ntff import CoreCapture, DmaPacket, Ntff

__all__ = ["Matched", "Residual", "matched"]

_SIGNAL_BYTES, _SIGNAL_MOST = 4, 8
_WAITS = "EVENT_SEMAPHORE"  # lasts as long as it waits, which says nothing of its own cost

_TRANSLATED = ("WRITE", "DMA_DIRECT2D")

Span = tuple[int, int]


class Residual(NamedTuple):
    """One word or transfer on both sides; `owner` is an engine or a queue, `shape` what its time depends on.

    Starts count from the first word of each side. A transfer's time is that from its first data to its signal.
    """

    kind: str
    core: str
    owner: str
    pc: int
    execution: int
    name: str
    shape: str
    captured_start_ps: int
    captured_ps: int
    emulated_start_ps: int
    emulated_ps: int


class Matched(NamedTuple):
    """What was found on both sides, and how many were on one side only."""

    rows: list[Residual]
    waits: int
    captured_only: int
    emulated_only: int


class _Mine(NamedTuple):
    """One word or transfer of the emulator's run."""

    span: Span
    pc: int
    name: str
    shape: str
    nbytes: tuple[int, ...] = ()  # of a transfer, on each ring


Key = tuple[str, int, int]  # engine, pc, execution; or queue, number of the transfer, 0


def matched(ntff: Ntff, core: int | None, neff: Neff, measured: Measured) -> Matched:
    """Return every word and transfer of the chosen cores that both sides have, in the order of the capture."""
    rows: list[Residual] = []
    waits = captured_only = emulated_only = 0
    by_name = {one.loaded.subgraph.name: one for one in measured.device.cores if one.loaded is not None}
    for capture in chosen_cores(ntff, core):
        _check_words(ntff, capture, subgraph_of(neff, capture))
        device = by_name[capture.name]
        transfers = dict(_emulated_transfers(measured, device))
        sides = (
            ("word", _captured_words(ntff, capture), dict(_emulated_words(measured, device))),
            ("transfer", dict(_captured_transfers(ntff, capture.core, transfers)), transfers),
        )
        zero = min((span[0] for span in sides[0][1].values()), default=0)
        origin = min((one.span[0] for one in sides[0][2].values()), default=0)
        for kind, real, emulated in sides:
            emulated_only += len(emulated.keys() - real.keys())
            for key, (start, end) in real.items():
                mine = emulated.get(key)
                if mine is None:
                    captured_only += 1
                elif mine.name == _WAITS:
                    waits += 1
                else:
                    begin, stop = mine.span
                    execution = key[2] if kind == "word" else key[1]
                    rows.append(Residual(kind, capture.name, key[0], mine.pc, execution, mine.name, mine.shape,
                                         start - zero, end - start, begin - origin, stop - begin))  # fmt: skip
    return Matched(rows, waits, captured_only, emulated_only)


def _check_words(ntff: Ntff, capture: CoreCapture, subgraph: Subgraph | None) -> None:
    """Raise FormatError where what was loaded is not the file's; words that start transfers are translated."""
    for buffer in ntff.buffers(capture.core):
        stream = () if subgraph is None else subgraph.streams.get(buffer.engine, ())
        for pc, word in enumerate(buffer.words):
            to = buffer.compiler_pc(pc)
            if to is None or word.name in _TRANSLATED:
                continue
            mine = stream[to] if to < len(stream) else None
            if mine is None or mine.raw != word.raw:
                field, expected = f"{buffer.engine} pc {to}", mine.text if mine else "no word"
                raise FormatError("the capture is of another program", path=ntff.where, field=field, expected=expected,
                                  got=word.text)  # fmt: skip


# --- the capture ------------------------------------------------------------------------------------------------------


def _captured_words(ntff: Ntff, capture: CoreCapture) -> dict[Key, Span]:
    buffers = {buffer.engine: buffer for buffer in ntff.buffers(capture.core)}
    times: Counter[tuple[str, int]] = Counter()
    words: dict[Key, Span] = {}
    for each in ntff.executed(capture.core):
        pc = buffers[each.engine].compiler_pc(each.pc)
        if pc is not None and each.end_ps is not None:
            words[each.engine, pc, times[each.engine, pc]] = each.start_ps, each.end_ps
            times[each.engine, pc] += 1
    return words


def _captured_transfers(ntff: Ntff, core: int, mine: Mapping[Key, _Mine]) -> Iterator[tuple[Key, Span]]:
    """Yield the transfers of each queue with the first start and the last end of their packets."""
    expected: defaultdict[str, list[tuple[int, ...]]] = defaultdict(list)
    for (queue, _, _), transfer in sorted(mine.items()):
        expected[queue].append(transfer.nbytes)
    queues: defaultdict[str, dict[tuple[int, int], list[DmaPacket]]] = defaultdict(dict)
    for packet in ntff.packets(core):
        rings = queues[ntff.queue_name(core, packet.engine, packet.ring)]
        rings.setdefault((packet.engine, packet.ring), []).append(packet)
    for queue, rings in queues.items():
        wanted = expected[queue]
        groups = _groups([rings[key] for key in sorted(rings)], wanted)
        at = [0] * len(groups)
        for number, one in enumerate(wanted):
            spans = []
            for ring in range(min(len(one), len(groups))):
                spans.append(groups[ring][at[ring]])
                at[ring] += 1
            if spans:
                yield (queue, number, 0), (min(span[0] for span in spans), max(span[1] for span in spans))


def _groups(rings: list[list[DmaPacket]], wanted: list[tuple[int, ...]]) -> list[list[Span]]:
    """Return the spans of a queue's transfers on each ring, none where nothing tells them apart."""
    groups = [_by_bytes(each, [one[at] for one in wanted if at < len(one)]) for at, each in enumerate(rings)]
    if all(groups):
        return groups
    groups = [_by_signals(each) for each in rings]
    if {len(one) for one in groups} == {len(wanted)}:
        return groups
    groups = [_by_repetition(each, len(wanted)) for each in rings]
    # Transposes move more than their data; transfers of one size can be counted off all the same.
    return groups if len({sum(one) for one in wanted}) == 1 and all(groups) else []


def _by_bytes(packets: list[DmaPacket], wanted: list[int]) -> list[Span]:
    """Return the span of each transfer on one ring; none where bytes and packets do not come out even."""
    found: list[Span] = []
    number = moved = 0
    start: int | None = None
    for packet in packets:
        if packet.end_ps is None or number == len(wanted):
            return []
        start = packet.start_ps if start is None else start
        moved += packet.nbytes
        if moved >= wanted[number] + _SIGNAL_BYTES:
            if moved > wanted[number] + _SIGNAL_MOST:
                return []
            found.append((start, packet.end_ps))
            start, moved, number = None, 0, number + 1
    return found if number == len(wanted) and start is None else []


def _by_signals(packets: list[DmaPacket]) -> list[Span]:
    """Return the span of each transfer on one ring; each ends with a packet like the last one."""
    last = packets[-1]
    found: list[Span] = []
    start: int | None = None
    for packet in packets:
        start = packet.start_ps if start is None else start
        if packet.nbytes == _SIGNAL_BYTES and packet.checksum == last.checksum and packet.end_ps is not None:
            found.append((start, packet.end_ps))
            start = None
    return found


def _by_repetition(packets: list[DmaPacket], times: int) -> list[Span]:
    """Return the span of each transfer on one ring where its packets repeat themselves so often; none elsewhere."""
    each, rest = divmod(len(packets), times) if times else (0, 1)
    sizes = [packet.nbytes for packet in packets]
    if rest or not each or sizes != sizes[:each] * times:
        return []
    ends = [packets[at + each - 1].end_ps for at in range(0, len(packets), each)]
    starts = [packets[at].start_ps for at in range(0, len(packets), each)]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if end is not None]


# --- the emulator -----------------------------------------------------------------------------------------------------


def _emulated_words(measured: Measured, core: Core) -> Iterator[tuple[Key, _Mine]]:
    from emulator.cost.instructions import shown_ps  # deferred: start-up
    from emulator.timeline.track import EngineTrack  # deferred: start-up

    for owner, track in measured.recorder.tracks.items():
        if owner.core != core.index or not isinstance(track, EngineTrack):
            continue
        loaded, times = core.engines[owner.name].words, Counter[int]()
        for row in range(len(track)):
            one = loaded[track.position[row]]
            start = track.start[row]
            shown = shown_ps(one.word, owner.name, measured.device.arch)
            end = track.shown_end(row, shown)
            yield ((owner.name, one.slot, times[one.slot]),
                   _Mine((start, end), one.slot, one.word.name, _shape(one.word)))  # fmt: skip
            times[one.slot] += 1


def _emulated_transfers(measured: Measured, core: Core) -> Iterator[tuple[Key, _Mine]]:
    from emulator.dma.rings import share_out  # deferred: start-up
    from emulator.timeline.track import QueueTrack  # deferred: start-up

    device = measured.device
    for owner, track in measured.recorder.tracks.items():
        if owner.core != core.index or not isinstance(track, QueueTrack):
            continue
        rings = device.dma.queue(core.index, owner.name).num_queues
        for number, row in enumerate(sorted(range(len(track)), key=track.transfer.__getitem__)):
            pieces, nbytes = track.pieces[row], track.nbytes[row]
            each = nbytes // pieces if pieces else 0
            places = ("HBM to HBM" if track.hbm_bytes[row] > nbytes else "to HBM" if track.flags[row] & 1
                      else "from HBM" if track.hbm_bytes[row] else "on chip")  # fmt: skip
            shares = share_out(pieces, device.costs.dma.rows_per_engine, rings)
            yield (
                (owner.name, number, 0),
                _Mine(
                    (track.start[row], track.completed[row]),
                    track.pc[row],
                    "DMA",
                    f"{places}, {pieces} x {each} bytes",
                    tuple((high - low) * each for low, high in shares),
                ),
            )


def _shape(word: Instruction) -> str:
    """Return what the time of a word depends on: of each operand type, place, elements a partition, and step."""
    from emulator.cost.tiles import tile  # deferred: start-up
    from formats.dtypes import Dtype  # deferred: start-up
    from formats.isa import Pattern  # deferred: start-up

    parts = []
    for name, operand in type(word).OPERANDS.items():
        one = tile(word, name) if isinstance(operand, Pattern) else None
        if one is not None:
            known = one.dtype in Dtype.__members__.values()
            dtype = Dtype(one.dtype).spelling if known else f"type {one.dtype}"
            step = "" if one.step == 1 else f"/{one.step}"
            parts.append(f"{name} {dtype} {'PSUM' if one.in_psum else 'SBUF'} {one.elements}{step}")
    return ", ".join(parts)
