"""The words of the engines as a dump keeps them: raw words by slot, where they come from, source lines around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from formats.core.records import ProgramNote, Source, SourceLine, Stream
from formats.engines import ENGINES
from formats.errors import FormatError, NotFoundError
from formats.isa import Instruction
from formats.named_tuple import NamedTuple
from formats.neff.visits import cut_visits, read_visits
from formats.neuron_core import WORD
from formats.source_files import read_source

if TYPE_CHECKING:
    from emulator.core import Core
    from emulator.device import Device
    from emulator.loaded import LoadedWord
    from emulator.sequencer import Sequencer

__all__ = ["INSTRUCTIONS", "StoredWords", "instruction_base", "program_note", "source_of", "word_at", "word_text"]

# Where instruction segments lie among the addresses of a dump: 0x4E54 is "NT", above every device address. Ours: the
# emulator keeps no instructions in HBM.
INSTRUCTIONS = 0x4E54 << 48
_CORE, _ENGINE = 1 << 40, 1 << 36
_AROUND = 32  # words before and behind where an engine stands that a light dump keeps
_LINES = 3  # source lines before and behind each
_MOST_LINES = 4000


class StoredWords(NamedTuple):
    """Words to store at an address."""

    address: int
    data: bytes


def instruction_base(core: int, engine: str) -> int:
    """Return the address at which an engine's words begin in a dump."""
    return INSTRUCTIONS + core * _CORE + ENGINES.index(engine) * _ENGINE


def source_of(found: object | None) -> Source | None:
    """Return a source location as a dump keeps it."""
    if found is None:
        return None
    return Source(
        getattr(found, "file", None),
        getattr(found, "line", None),
        str(getattr(found, "name", "") or ""),
        getattr(found, "tensor", None),
        getattr(found, "kernel", None),
    )


def word_at(device: Device, core: int, engine: str, pc: int) -> Instruction | None:
    """Return the word that the file has at a pc, None where it has none."""
    if not 0 <= core < len(device.cores) or engine not in ENGINES:
        return None
    loaded = device.cores[core].loaded
    if loaded is None:
        return next((each.word for each in device.cores[core].engines[engine].words if each.pc == pc), None)
    stream = loaded.subgraph.streams[engine]
    return stream[pc] if 0 <= pc < len(stream) else None


def word_text(device: Device, core: int, engine: str, pc: int) -> str:
    """Return the text of the word that the file has at a pc, "" where it has none."""
    found = word_at(device, core, engine, pc)
    return "" if found is None else str(found.text)


def program_note(device: Device, full: bool, folders: Iterable[Path]) -> tuple[ProgramNote, list[StoredWords]]:
    """Return the note about the program, and the words to store."""
    streams: list[Stream] = []
    stored: list[StoredWords] = []
    places: set[tuple[str, int]] = set()
    for core in device.cores:
        for name, engine in core.engines.items():
            if engine.count:
                stream = _stream(core, name, engine, _chosen(device, engine, full), stored)
                streams.append(stream)
                places.update((each.file, each.line) for each in stream.locations if each.file and each.line)
    activation = tuple({str(number): name for number, name in core.activation.items()} for core in device.cores)
    visits = tuple(_visits(core, [each for each in streams if each.core == core.index]) for core in device.cores)
    lines = tuple(_lines(places, tuple(folders)))
    return ProgramNote(tuple(streams), activation, lines, visits if any(visits) else ()), stored


def _visits(core: Core, streams: Iterable[Stream]) -> str:
    """Return the calls and turns that the stored words of a core come from, "" where its file has none."""
    try:
        known = None if core.loaded is None else read_visits(core.loaded.subgraph)
    except FormatError:
        return ""  # turns are a comfort: a broken map costs them, nothing else
    if known is None:
        return ""
    words = {each.engine: [range(pc, pc + count) for _, pc, _, _, count in each.runs] for each in streams}
    return cut_visits(known, words).decode()


def _chosen(device: Device, engine: Sequencer, full: bool) -> Sequence[range]:
    """Return the indices of the words to store: all of them, or those around where the engine stands."""
    if full:
        return (range(engine.count),)
    oldest = engine.position - len(engine.in_flight)
    wanted = [range(max(0, oldest - _AROUND), min(engine.count, engine.position + _AROUND))]
    fault = device.fault
    if fault is not None and (fault.core, fault.engine) == (engine.core.index, engine.name):
        at = next((index for index, loaded in enumerate(engine.words) if loaded.pc == fault.pc), None)
        if at is not None and not wanted[0].start <= at < wanted[0].stop:
            more = range(max(0, at - _AROUND), min(engine.count, at + _AROUND))
            wanted = sorted([*wanted, more], key=lambda each: each.start)
            if wanted[0].stop >= wanted[1].start:
                wanted = [range(wanted[0].start, wanted[1].stop)]
    return wanted


def _stream(core: Core, name: str, engine: Sequencer, chosen: Sequence[range], stored: list[StoredWords]) -> Stream:
    """Return the note about one engine's words and add the words to `stored`."""
    base = instruction_base(core.index, name)
    runs: list[tuple[int, int, int, int, int]] = []
    replaced: list[tuple[int, str]] = []
    sources: list[tuple[int, int, int]] = []
    locations: dict[Source, int] = {}
    for indices in chosen:
        before: LoadedWord | None = None
        for index in indices:
            loaded = engine.words[index]
            size = len(loaded.word.raw)
            if before is not None and (loaded.pc, loaded.slot, size) == (
                before.pc + 1,
                before.slot + len(before.word.raw) // WORD,
                len(before.word.raw),
            ):
                first, pc, slot, _, count = runs[-1]
                runs[-1] = first, pc, slot, size, count + 1
            else:
                # a run ends where words are left out, differ in length, or the loader dropped one between them
                runs.append((index, loaded.pc, loaded.slot, size, 1))
            before = loaded
            # The loader replaced a DMA word by its loaded form: the dump keeps both, since people know the one in the
            # file.
            if loaded.transfer is not None and core.loaded is not None:
                original = core.loaded.subgraph.streams[name][loaded.pc].raw
                if original != loaded.word.raw:
                    replaced.append((loaded.pc, original.hex()))
            location = source_of(core.source_of(name, loaded.pc))
            if location is None:
                continue
            number = locations.setdefault(location, len(locations))
            if sources and sources[-1][2] == number and sources[-1][0] + sources[-1][1] == loaded.pc:
                sources[-1] = sources[-1][0], sources[-1][1] + 1, number
            else:
                sources.append((loaded.pc, 1, number))
    for first, _, slot, _, count in runs:
        words = b"".join(loaded.word.raw for loaded in engine.words[first : first + count])
        stored.append(StoredWords(base + slot * WORD, words))
    return Stream(
        core.index,
        name,
        engine.count,
        core.extended,
        tuple(runs),
        tuple(replaced),
        tuple(sources),
        tuple(locations),
    )


def _lines(places: set[tuple[str, int]], folders: Sequence[Path]) -> Iterator[SourceLine]:
    """Yield source lines around places, as far as the files are here."""
    wanted: dict[str, set[int]] = {}
    for file, line in places:
        wanted.setdefault(file, set()).update(range(line - _LINES, line + _LINES + 1))
    count = 0
    for file in sorted(wanted):
        try:
            lines = read_source(file, folders)
        except NotFoundError:
            continue
        for number in sorted(wanted[file]):
            if 1 <= number <= len(lines) and count < _MOST_LINES:
                count += 1
                yield SourceLine(file, number, lines[number - 1])
