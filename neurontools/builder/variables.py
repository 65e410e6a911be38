"""Tensors in device memory: which variable of the NEFF each allocation becomes, and how DMA words address it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from formats.named_tuple import NamedTuple
from formats.neff.writer_kept import Declaration
from formats.neff.writer_subgraph import SubgraphWriter
from formats.neuron_core import SBUF_PARTITION_STRIDE
from neurontools.builder.errors import BuildError
from neurontools.builder.templates import keep
from neurontools.builder.trace import DGE_TABLE, RESERVED, STATE_BUFFER, Allocation, Space, Trace, View
from neurontools.builder.transfers import Side, variable_code

__all__ = ["Tensors", "Variables", "common_tensors", "shared_names", "tensors_of"]

_ALIGNMENT = 64
# the offset in a DMA address has 32 bits (isa.md 8)
_ADDRESSABLE = 1 << 32
_HBM = Space.HBM
_SHARED = attrgetter("name", "nbytes", "dtype")
# What `Side(...)` does, without its function: every transfer has two.
_side_of: Callable[[tuple[int, int, str]], Side] = partial(tuple.__new__, Side)


class Tensors(NamedTuple):
    """The tensors of a trace in HBM: inputs, then outputs and shared ones in order of allocation; and all others."""

    common: list[Allocation]
    own: list[Allocation]


def _share_alike(first: Tensors, second: Tensors) -> bool:
    """Return whether the tensors that two programs share have the same names, sizes and types."""
    return [*map(_SHARED, first.common)] == [*map(_SHARED, second.common)]


def shared_names(traces: Sequence[Trace], tensors: Sequence[Tensors]) -> list[dict[int, str]]:
    """Return, per trace, the variable name of every HBM allocation.

    Inputs and shared tensors are the same memory on both cores: matched by order, named as the first core names them.
    """
    plain: list[dict[int, str]] = []
    for common, own in tensors:
        every = [*common, *own]
        named = {one.name for one in every}
        if len(named) == len(every) and "" not in named and named.isdisjoint(RESERVED):
            plain.append({one.id: one.name for one in every})
    if len(plain) == len(tensors) and (len(plain) == 1 or _share_alike(*tensors)):
        return plain  # as nearly always
    result: list[dict[int, str]] = []
    firsts: list[Allocation] | None = None
    for trace, (common, own) in zip(traces, tensors, strict=True):
        names: dict[int, str] = {}
        used = {*RESERVED}
        firsts = common if firsts is None else firsts
        mine, theirs = [one.name for one in common], [one.name for one in firsts]
        if mine != theirs and sorted(mine) == sorted(theirs):
            number = next(at for at, name in enumerate(mine) if name != theirs[at])
            raise BuildError(
                f"program {trace.program_id} makes shared tensor {mine[number]} where program 0 makes "
                f"{theirs[number]}: they belong together by their order, which must be the same"
            )
        for shared in (True, False):
            counterparts = iter(firsts)
            for allocation in common if shared else own:
                first = next(counterparts, None) if shared else None
                if shared and (first is None or (first.nbytes, first.dtype) != (allocation.nbytes, allocation.dtype)):
                    there = "nothing"
                    if first is not None:
                        there = f"{first.name} ({first.nbytes} bytes of {first.dtype.spelling})"
                    raise BuildError(
                        f"program {trace.program_id} shares {allocation.name} ({allocation.nbytes} bytes of "
                        f"{allocation.dtype.spelling}), program 0 shares {there} in its place"
                    )
                wanted = result[0][first.id] if result and first is not None else allocation.name or "tensor"
                name, number = wanted, 1
                while name in used:
                    name, number = f"{wanted}_{number}", number + 1
                used.add(name)
                names[allocation.id] = name
        result.append(names)
    return result


def common_tensors(tensors: Sequence[Tensors]) -> list[list[Allocation]]:
    """Return the tensors that programs have together, each as the allocations that name it."""
    return [list(ones) for ones in zip(*(one.common for one in tensors), strict=False)]


def tensors_of(trace: Trace) -> Tensors:
    """Return the tensors of a trace."""
    outputs = {one.id for one in trace.outputs}
    inputs: list[Allocation] = []
    shared: list[Allocation] = []
    own: list[Allocation] = []
    for one in trace.allocations:
        if one.space is _HBM:
            kind = one.kind
            common = one.id in outputs or kind in ("output", "shared")
            (inputs if kind == "input" else shared if common else own).append(one)
    return Tensors(inputs + shared, own)


class _Declared(NamedTuple):
    """What subgraphs of the same tensors share: their declaration, code of the state buffer, names and codes, bytes."""

    declaration: Declaration
    state: int
    places: tuple[tuple[str, int], ...]
    bytes: dict[str, int]


_declared: dict[Any, _Declared] = {}  # by all that variables are made of


def _key(made: Sequence[tuple[Allocation, bool]], names: Mapping[int, str], table: bool) -> Any:
    """Return what the variables of tensors depend on; None where one of them brings its values along."""
    parts: list[object] = [table]
    for one, launch in made:
        if one.data is not None:
            return None
        parts += (names[one.id], one.dtype, one.shape, one.kind, launch)
    return tuple(parts)


class Variables:
    """The variables of one subgraph, written into it as they are made."""

    def __init__(
        self,
        trace: Trace,
        tensors: Tensors,
        names: dict[int, str],
        writer: SubgraphWriter,
        *,
        table: bool,
        used: frozenset[int],
    ) -> None:
        self.bytes: dict[str, int] = {}
        self._places: dict[int, tuple[str, int]] = {}  # name and code of each one's variable
        outputs = {one.id for one in trace.outputs}
        # a launch gives and takes its own tensors, whether the kernel touches them or not
        made = [
            (one, one.kind == "input" or one.id in outputs)
            for one in (*tensors.common, *tensors.own)
            if one.id in used or one.kind == "input" or one.id in outputs
        ]
        key = _key(made, names, table)
        try:
            known = _declared.get(key)
        except TypeError:  # a shape that is a list
            key = known = None
        if known is not None:
            writer.adopt(known.declaration)
            self._state, self.bytes = known.state, dict(known.bytes)
            self._places = {one.id: place for (one, _), place in zip(made, known.places, strict=True)}
            return
        self._state = variable_code("variable", writer.variable(STATE_BUFFER, "state-buffer"))
        self._declare(made, names, writer, table)
        if key is not None:
            places = tuple([self._places[one.id] for one, _ in made])
            keep(_declared, key, _Declared(writer.declaration(), self._state, places, dict(self.bytes)))

    def _declare(
        self, made: list[tuple[Allocation, bool]], names: Mapping[int, str], writer: SubgraphWriter, table: bool
    ) -> None:
        """Add a variable for each tensor; with each stands whether the launch gives or takes it."""
        entries: list[int] = []
        scratch = 0
        for allocation, launch in made:
            own = allocation.id
            name, size = names[own], allocation.nbytes or 1
            if size > _ADDRESSABLE:
                raise BuildError(f"{name} has {size} bytes, a DMA word addresses {_ADDRESSABLE}")
            if launch:
                kind = "input" if allocation.kind == "input" else "output"
                number = writer.variable(name, kind, size)
                writer.tensor(name, allocation.dtype, allocation.shape, kind)
                if table:
                    entries.append(number)
            elif allocation.data is not None:
                kind = "file"
                number = writer.constant(name, _payload(allocation))
                writer.tensor(name, allocation.dtype, allocation.shape, "constant")
            elif allocation.kind in ("shared", "output"):
                # Shared with the other core by name: a virtual variable is each core's own.
                kind = "tmp-buf"
                number = writer.variable(name, kind, size)
            else:
                kind = "virtual"
                number = writer.variable(name, kind, size, alignment=_ALIGNMENT, backing_offset=scratch)
                scratch += -(-size // _ALIGNMENT) * _ALIGNMENT
            listed = launch and table
            code = variable_code("table" if listed else "variable", len(entries) - 1 if listed else number)
            self._places[own] = name, code
            self.bytes[kind] = self.bytes.get(kind, 0) + size
        if table and entries:
            writer.variable(DGE_TABLE, "dge-table", entries=entries)

    def side(self, view: View, places: dict[int, tuple[int, int]]) -> Side:
        """Return one end of a transfer; `places` are (partition, byte) of the tiles."""
        allocation = view.allocation
        if allocation.space is _HBM:
            name, code = self._places[allocation.id]
            return _side_of((view.offset, code, name))
        partition, byte = places[allocation.id]
        offset = (partition + view.partition) * SBUF_PARTITION_STRIDE + byte + view.offset
        return _side_of((offset, self._state, STATE_BUFFER))


def _payload(allocation: Allocation) -> bytes:
    """Return the constant's values as raw bytes of the allocation's size."""
    assert allocation.data is not None
    content = allocation.data.tobytes()
    if len(content) != allocation.nbytes:
        raise BuildError(f"constant {allocation.name} holds {len(content)} bytes, its tensor {allocation.nbytes}")
    return content
