"""What engines and DMA did in a capture, and in the emulator's run of the same NEFF.

Both sides are measured alike: only the compiler's words count; an engine is active while a word other than
EVENT_SEMAPHORE runs, which is the profiler's own measure; the program lasts from the first word's begin to the last
word's end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from formats.isa import EventSemaphore
from neurontools.ntff.capture import chosen_cores
from neurontools.ntff.rows import Activity, Comparison, CoreActivity, EngineActivity, EngineRatio, QueueActivity
from neurontools.profile.summary import union_ps

if TYPE_CHECKING:
    import numpy.typing as npt

    from emulator.timeline.measure import Measured
    from formats.neff import Neff
    from formats.ntff import DmaPacket, Ntff

    Spans = list[tuple[int, int]]

__all__ = ["captured", "compared", "emulated"]

_PS = 1000


def captured(ntff: Ntff, core: int | None) -> Activity:
    """Return the time by engine and queue of a capture."""
    cores = []
    for capture in chosen_cores(ntff, core):
        buffers = {buffer.engine: buffer for buffer in ntff.buffers(capture.core)}
        ran: dict[str, Spans] = {engine: [] for engine in buffers}
        active: dict[str, Spans] = {engine: [] for engine in buffers}
        for each in ntff.executed(capture.core):
            buffer = buffers[each.engine]
            if each.end_ps is None or buffer.compiler_pc(each.pc) is None:
                continue
            ran[each.engine].append((each.start_ps, each.end_ps))
            if not isinstance(buffer.words[each.pc], EventSemaphore):
                active[each.engine].append((each.start_ps, each.end_ps))
        begin = min((span[0] for spans in ran.values() for span in spans), default=0)
        end = max((span[1] for spans in ran.values() for span in spans), default=0)
        counts = {engine: len(spans) for engine, spans in ran.items()}
        queues = _packets(ntff, capture.core)
        cores.append(_core(capture.core, capture.name, begin, end, counts, active, queues))
    return _whole(cores)


def _packets(ntff: Ntff, core: int) -> list[QueueActivity]:
    queues: dict[str, list[DmaPacket]] = {}
    for packet in ntff.packets(core):
        queues.setdefault(ntff.queue_name(core, packet.engine, packet.ring), []).append(packet)
    return [
        QueueActivity(name, len(packets), sum(packet.nbytes for packet in packets),
                      _ns(union_ps((one.start_ps, one.end_ps) for one in packets if one.end_ps is not None)))
        for name, packets in queues.items()
    ]  # fmt: skip


def _core(
    number: int, name: str, begin: int, end: int, counts: Mapping[str, int], active: Mapping[str, Spans],
    queues: list[QueueActivity],
) -> CoreActivity:  # fmt: skip
    length = end - begin
    engines = []
    for engine, words in counts.items():
        busy = union_ps(active[engine])
        engines.append(EngineActivity(engine, words, _ns(busy), round(100 * busy / length, 2) if length else 0.0))
    return CoreActivity(number, name, begin, end, _ns(length), engines, queues)


def _whole(cores: list[CoreActivity]) -> Activity:
    ran = [one for one in cores if one.end_ps]
    length = max((one.end_ps for one in ran), default=0) - min((one.begin_ps for one in ran), default=0)
    return Activity(_ns(length), cores)


def emulated(measured: Measured) -> Activity:
    """Return the same of a run of the emulator."""
    from emulator.timeline.track import EngineTrack, QueueTrack  # deferred: start-up
    from formats.engines import ENGINES  # deferred: start-up

    recorder = measured.recorder
    cores = []
    for core in measured.device.cores:
        counts = dict.fromkeys(ENGINES, 0)
        active: dict[str, Spans] = {engine: [] for engine in ENGINES}
        queues = []
        end = 0
        for owner in recorder.owners:
            track = recorder.tracks[owner]
            if owner.core != core.index:
                continue
            if isinstance(track, EngineTrack):
                words = core.engines[owner.name].words
                counts[owner.name] = len(track)
                end = max(end, *track.completed[-1:], 0)
                active[owner.name] = [
                    (track.start[row], track.completed[row]) for row in range(len(track))
                    if not isinstance(words[track.position[row]].word, EventSemaphore)
                ]  # fmt: skip
            elif isinstance(track, QueueTrack):
                rows = len(track)
                busy = union_ps(zip(track.start, track.completed, strict=False))
                queues.append(QueueActivity(owner.name, sum(track.pieces[:rows]), sum(track.nbytes[:rows]), _ns(busy)))
        name = core.loaded.subgraph.name if core.loaded is not None else f"nc{core.index}"
        cores.append(_core(core.index, name, 0, end, counts, active, queues))
    return _whole(cores)


def compared(capture: Activity, neff: Neff, inputs: Mapping[str, npt.NDArray[Any]] | None) -> Comparison:
    """Return the emulator's run of a NEFF beside a capture."""
    from emulator.timeline.measure import data_decides, measure  # deferred: start-up

    with_data = inputs is not None or data_decides(neff)
    measured = measure(neff, inputs or {}, data=with_data)
    mine = emulated(measured)
    theirs = {(core.name, row.engine): row.active_ns for core in capture.cores for row in core.engines}
    engines = []
    for core in mine.cores:
        for row in core.engines:
            real = theirs.get((core.name, row.engine))
            if real is not None:
                engines.append(EngineRatio(core.name, row.engine, real, row.active_ns, _ratio(row.active_ns, real)))
    ratio = _ratio(mine.program_ns, capture.program_ns)
    return Comparison(measured.device.outcome, capture.program_ns, mine.program_ns, ratio, engines, mine.cores)


def _ratio(mine: float, real: float) -> float | None:
    """Return emulated over captured time, None where there is nothing to compare with."""
    return round(mine / real, 3) if real else None


def _ns(ps: float) -> float:
    return round(ps / _PS, 3)
