"""What files of the same variables, queues and tensors share; kept for the files that a process makes after them.

A process builds the same kernels again and again, and many that take and give the same tensors: what their tables say,
and that no rule finds anything in them, is worked out for the first of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from formats.neff.definition import Definition, Queue, Reservation, Variable
from formats.neff.graph import TensorInfo
from formats.neff.made import JsonContent, Said

__all__ = ["Declaration", "Tables", "kept_definition", "kept_names", "kept_queue", "once_in_order"]

_MOST = 1 << 8  # tables, and queues, that a process keeps


class Declaration:
    """The variables and tensors of a subgraph, for others that have the same; nobody changes it."""

    __slots__ = ("ids", "implied", "next_id", "tensors", "variables")

    def __init__(
        self, variables: dict[str, Variable], ids: set[int], next_id: int, tensors: dict[str, TensorInfo],
        implied: set[str],
    ) -> None:  # fmt: skip
        self.variables, self.ids, self.next_id = variables, ids, next_id
        self.tensors, self.implied = tensors, implied


@lru_cache(maxsize=_MOST, typed=True)
def kept_queue(
    name: str, kind: str, owner: str, num_queues: int, semaphores: tuple[int, ...], semaphore: int | None,
    fabric_path: str, scratch_offset: int | None, scratch_size: int | None,
) -> Queue:  # fmt: skip
    """Return a queue, the same object for the same facts: programs have those that their chip has."""
    return Queue(name, kind, owner, num_queues, semaphores, semaphore, fabric_path, scratch_offset=scratch_offset,
                 scratch_size=scratch_size)  # fmt: skip


# What decides a definition: what declares its variables, its queues by their ids, features, reservations, and engines
# with debug information. Declarations are told apart by identity; a kept definition holds its queues, so that no other
# has the id of one.
Tables = tuple[Declaration, tuple[int, ...], tuple[str, ...], tuple[Reservation, ...], tuple[str, ...]]
_names: dict[object, frozenset[str]] = {}
_definitions: dict[Tables, Definition] = {}
_sound: set[object] = set()


def kept_names(key: object, find: Callable[[], frozenset[str]]) -> frozenset[str]:
    """Return the names of the members of a file; `key` is all that decides them."""
    found = _names.get(key)
    if found is None:
        if len(_names) >= _MOST:
            _names.clear()
        found = _names[key] = find()
    return found


def kept_definition(
    tables: Tables | None, content: JsonContent, read: Callable[[], Definition | None]
) -> Definition | None:
    """Return the definition of these tables, whose JSON is `content`; `read` makes it where no file had them before."""
    found = None if tables is None else _definitions.get(tables)
    if found is not None:
        return Definition(*found[:-1], content)
    found = read()
    if found is not None and tables is not None:
        if len(_definitions) >= _MOST:
            _definitions.clear()
            _sound.clear()  # which has the same ids of queues
        _definitions[tables] = found._replace(raw={})
    return found


def once_in_order(tables: tuple[Tables | None, ...], said: Said, is_in_order: Callable[[], bool]) -> None:
    """Ask whether a file is in order, unless one of the same tables, inputs and outputs was.

    Rules of tables look at nothing else. Whoever is asked raises where a rule is broken.
    """
    if None in tables or any(core.definition is None for core in said.cores):
        is_in_order()
        return
    key = tables, said.inputs, said.outputs
    if key not in _sound and is_in_order():
        if len(_sound) >= _MOST:
            _sound.clear()
        _sound.add(key)
