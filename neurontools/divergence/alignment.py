"""Which word of one program is which word of another one."""

from __future__ import annotations

from collections import defaultdict, deque
from difflib import SequenceMatcher
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from emulator.access import plan_of
from emulator.dma.regions import side_regions
from emulator.errors import EmulatorError
from formats.engines import ENGINES
from formats.errors import NeuronError
from formats.named_tuple import NamedTuple
from neurontools.divergence.results import Alignment

if TYPE_CHECKING:
    from emulator.loaded import LoadedWord
    from neurontools.debugger import Session

__all__ = ["Alignments", "align"]

_MATCHED = 4_000_000  # pairs of words up to which the longest common subsequences are looked for

Signature = tuple[Any, ...]
Place = tuple[int, str, int]  # core, engine, pc


class Alignments(NamedTuple):
    """How two programs were matched: `places` maps words of the second to the first; `moved` changed their engine."""

    streams: tuple[Alignment, ...]
    places: dict[Place, Place]
    moved: int


def align(one: Session, other: Session) -> Alignments:
    """Return which word is which on the cores that both programs have: within each engine's stream, then across."""
    streams, places, moved = [], {}, 0
    for core in range(min(len(one.device.cores), len(other.device.cores))):
        found = {engine: _stream(one, other, core, engine) for engine in ENGINES}
        streams += [stream for stream, _ in found.values() if any(stream.words)]
        known = {(core, e, b): (core, e, a) for e, (_, pairs) in found.items() for b, a in pairs.items()}
        left = _left(one, core, set(known.values())), _left(other, core, set(known))
        across = _by_turn([s for s, _ in left[0]], [s for s, _ in left[1]])
        places.update(known)
        places.update({left[1][b][1]: left[0][a][1] for a, b in across})
        moved += len(across)
    return Alignments(tuple(streams), places, moved)


def _left(session: Session, core: int, known: set[Place]) -> list[tuple[Signature, Place]]:
    """Return the words of a core that have no counterpart yet, but a source line."""
    rows = []
    for _, engine, words in session.program.streams(core):
        for loaded in words:
            if (core, engine, loaded.pc) not in known:
                signature = _signature(session, core, engine, loaded)
                # Without a line, words of one opcode are all alike, and would pair at random across engines.
                if signature[1] is not None:
                    rows.append((signature, (core, engine, loaded.pc)))
    return rows


def _stream(one: Session, other: Session, core: int, engine: str) -> tuple[Alignment, dict[int, int]]:
    first, second = one.program.words(core, engine), other.program.words(core, engine)
    sizes = len(first), len(second)
    # The same opcodes in the same order: the same program with other operands, whatever lines it now has.
    if [loaded.word.name for loaded in first] == [loaded.word.name for loaded in second]:
        pcs = {b.pc: a.pc for a, b in zip(first, second, strict=True)}
        return Alignment(core, engine, "position", sizes, len(pcs)), pcs
    mine = [_signature(one, core, engine, loaded) for loaded in first]
    theirs = [_signature(other, core, engine, loaded) for loaded in second]
    pairs = _pairs(mine, theirs)
    return Alignment(core, engine, "line", sizes, len(pairs)), {second[b].pc: first[a].pc for a, b in pairs}


def _pairs(mine: list[Signature], theirs: list[Signature]) -> list[tuple[int, int]]:
    """Match words of one signature in turn; where one side has more of them, by what stands around them.

    Of words into one tile, of which one side has more, only the last ones are matched: a chip that needs several passes
    has the result after the last one.
    """
    here, there = _places(mine), _places(theirs)
    pairs = []
    rest: tuple[list[int], list[int]] = [], []
    for signature, found in here.items():
        others = there.get(signature, [])
        if len(found) == len(others):
            pairs += list(zip(found, others, strict=True))
        elif signature[2] and others:
            pairs.append((found[-1], others[-1]))
        elif others:
            rest[0].extend(found)
            rest[1].extend(others)
    if len(rest[0]) * len(rest[1]) > _MATCHED:
        return pairs + [(rest[0][a], rest[1][b]) for a, b in _by_turn([mine[i] for i in rest[0]],
                                                                      [theirs[i] for i in rest[1]])]  # fmt: skip
    # What is left was gathered by signature; a common subsequence is one of the streams' order.
    first, second = sorted(rest[0]), sorted(rest[1])
    matcher = SequenceMatcher(None, [mine[i] for i in first], [theirs[i] for i in second], autojunk=False)
    for block in matcher.get_matching_blocks():
        pairs += [(first[block.a + n], second[block.b + n]) for n in range(block.size)]
    return pairs


def _places(signatures: list[Signature]) -> dict[Signature, list[int]]:
    found: dict[Signature, list[int]] = defaultdict(list)
    for index, signature in enumerate(signatures):
        found[signature].append(index)
    return found


def _by_turn(mine: list[Signature], theirs: list[Signature]) -> list[tuple[int, int]]:
    """Match the first of a signature with the first, the second with the second: linear in the words."""
    places: dict[Signature, deque[int]] = defaultdict(deque)
    for index, signature in enumerate(mine):
        places[signature].append(index)
    return [(places[signature].popleft(), index) for index, signature in enumerate(theirs) if places[signature]]


def _signature(session: Session, core: int, engine: str, loaded: LoadedWord) -> Signature:
    source = session.program.source(core, engine, loaded.pc)
    # The name of the file alone: the other program may have been made from a copy elsewhere.
    line = None if source is None or source.file is None else (PurePath(source.file).name, source.line)
    if loaded.transfer is not None:
        # Generations trigger transfers with different words.
        return "transfer", line, _destination(session, engine, loaded)
    return loaded.word.name, line, _tile(session, core, engine, loaded)


def _destination(session: Session, engine: str, loaded: LoadedWord) -> str:
    """Return the tile, or the variable and offset, that a transfer writes; "" where neither is known."""
    assert loaded.transfer is not None
    try:
        ends = loaded.transfer().writes
    except NeuronError:
        return ""
    if not ends:
        return ""
    if ends[0].limit is not None:
        return f"{ends[0].limit.name}+{ends[0].address - ends[0].limit.address}"
    regions = side_regions(ends[0], session.device.arch.sbuf_bytes.whole)
    found = session.tensors.tile_at(regions[0], engine, loaded.pc) if regions else None
    return "" if found is None else found.name


def _tile(session: Session, core: int, engine: str, loaded: LoadedWord) -> str:
    """Return the name of the tile that a word writes, "" where none is known."""
    # Files of other compilers name no tiles, and resolving every word would be for nothing.
    if not session.tensors.tiles(core):
        return ""
    resolver = session.device.cores[core].resolver
    for plan in plan_of(type(loaded.word)):
        if plan.writes:
            try:
                operand = resolver.resolve(loaded.word, plan, engine)
            except (EmulatorError, NeuronError):
                continue  # the run says so, if it gets there
            if operand is not None and operand.regions:
                found = session.tensors.tile_at(operand.regions[0], engine, loaded.pc)
                if found is not None:
                    return found.name
    return ""
