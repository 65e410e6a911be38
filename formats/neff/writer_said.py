"""What a reader finds in members that were just made, worked out of what their writer was given instead of parsed.

Where something is not taken as it was given, a name that is printed another way, a size that is no plain integer, there
is nothing, and the reader is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache, lru_cache

from formats.engines import ENGINES
from formats.neff.definition import Definition, EngineFiles, Queue, Reservation, Variable
from formats.neff.fields import printable
from formats.neff.graph import TensorInfo
from formats.neff.made import JsonContent
from formats.neff.transfers import FARTHEST, Descriptor, DmaBlock, EngineFile

__all__ = ["DEFINITION_VERSION", "definition_as_read", "engine_members", "engines_as_read", "tensors_as_read"]

DEFINITION_VERSION = "0.6"
_INTEGERS = frozenset((int,))
_NUMBERS = frozenset((int, type(None)))
_KEPT = 1 << 8  # names of sets of activation functions whose engines a process keeps
_PLAIN = Descriptor("", 0, (), (), "", 0, (), ())
_COPIES = "copy", "cast"


@cache
def engine_members(debugged: frozenset[str]) -> Mapping[str, EngineFiles]:
    """Return the members of every engine; `debugged` are those with debug information."""
    return {
        engine: EngineFiles(
            f"{engine}.json",
            f"{engine}.bin",
            (f"debug_info_asm_{engine}.dbg",) if engine in debugged else (),
            (f"debug_info_backend_{engine}.dbg",) if engine in debugged else (),
        )
        for engine in ENGINES
    }


def definition_as_read(
    content: JsonContent,
    variables: Mapping[str, Variable],
    queues: Mapping[str, Queue],
    features: Collection[str],
    reservations: Collection[Reservation],
    counts: tuple[int, int],
    engines: Mapping[str, EngineFiles],
) -> Definition | None:
    """Return the definition whose JSON is `content`; `counts` are events and semaphores of the runtime."""
    if not all(map(_is_read_alike, variables.values())):
        return None
    for queue in queues.values():
        if not (queue.name.isprintable() and queue.fabric_path.isprintable()):
            return None
    events, semaphores = counts
    return Definition("definition", DEFINITION_VERSION, engines, (), queues, variables, tuple(map(printable, features)),
                      events, semaphores, tuple(reservations), {}, 0, 0, content)  # fmt: skip


def _is_read_alike(one: Variable) -> bool:
    name, kind, _, size, alignment, file, backing, entries, fabric, referenced, _ = one
    return (
        name.isprintable()
        and size.__class__ in _NUMBERS
        and alignment.__class__ in _NUMBERS
        and backing.__class__ in _NUMBERS
        and referenced.__class__ in _NUMBERS
        and (file is None or file.isprintable())
        and (fabric is None or fabric.isprintable())
        and (not entries or (kind == "dge-table" and set(map(type, entries)) <= _INTEGERS))
    )


def engines_as_read(
    blocks: Mapping[str, Mapping[tuple[str, int], DmaBlock]], sets: Collection[str]
) -> dict[str, EngineFile] | None:
    """Return what the files of the engines say; `sets` are the sets of activation functions."""
    found = dict(_engines_without_blocks(tuple(sets)))
    for engine, mine in blocks.items():
        if mine:
            if not all(map(_is_block_read_alike, mine.values())):
                return None
            found[engine] = found[engine]._replace(dma=tuple(mine.values()))
    return found


@lru_cache(maxsize=_KEPT)
def _engines_without_blocks(sets: tuple[str, ...]) -> Mapping[str, EngineFile]:
    found = {}
    for engine in ENGINES:
        named = (None, ()) if engine != "Activation" else ("act_info.json", tuple(map(printable, sets)))
        found[engine] = EngineFile(engine, f"{engine}.json", f"{engine}.bin", (), named[0], None, named[1], (), {})
    return found


def _is_block_read_alike(block: DmaBlock) -> bool:
    return (
        block.queue.isprintable()
        and (block.comment is None or block.comment.isprintable())
        and all(map(_is_plain, block.descriptors))
    )


def _is_plain(one: Descriptor) -> bool:
    """Return whether a descriptor is a copy or cast between places that memory has, as nearly all are."""
    numbers = (one.source_offset, one.target_offset, *one.source_sizes, *one.source_steps, *one.target_sizes,
               *one.target_steps)  # fmt: skip
    return (
        one.op in _COPIES
        and one[11:] == _PLAIN[11:]
        and set(map(type, numbers)) == _INTEGERS
        and max(numbers) <= FARTHEST
        and min(numbers) >= -FARTHEST
        and one[2].__class__ is one[3].__class__ is one[6].__class__ is one[7].__class__ is tuple
        and f"{one.source}{one.source_dtype}{one.target}{one.target_dtype}".isprintable()
    )


def tensors_as_read(tensors: Collection[TensorInfo]) -> tuple[TensorInfo, ...]:
    """Return inputs or outputs of a file."""
    return tuple([
        one if one.name.isprintable() else one._replace(name=printable(one.name)) for one in tensors
    ])  # fmt: skip
