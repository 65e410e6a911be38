"""What a collective must give, worked out by NumPy from the inputs alone: the oracle of `cc verify`.

Reductions follow the documented order of each algorithm (collectives.md 3, 4) and know nothing of step lists: a value
is rounded where the algorithm writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from emulator.machine.collectives.algorithms import Algorithm
from emulator.machine.collectives.group import Group
from emulator.machine.collectives.kangaring import teams
from emulator.machine.collectives.plan import Request, chunks_of
from emulator.machine.collectives.ring import flat_orders

__all__ = ["expected_outputs"]

Array = NDArray[np.generic]


def expected_outputs(request: Request, inputs: Mapping[int, Array]) -> dict[int, Array]:
    """Return every rank's output; ranks that receive nothing have an empty one."""
    ranks, operation = request.group.ranks, request.operation
    every = [np.asarray(inputs[rank]) for rank in ranks]
    if operation == "allgather":
        whole = np.concatenate(every)
        return dict.fromkeys(ranks, whole)
    if operation == "alltoall":
        return dict(zip(ranks, _transposed(request, every), strict=True))
    if operation in ("permute", "sendrecv"):
        came = {target: np.asarray(inputs[source]) for source, target in request.pairs}
        return {rank: came.get(rank, every[0][:0]) for rank in ranks}
    if request.algorithm == "single-step-mesh":
        return dict.fromkeys(ranks, _fold(every, request.reduce))
    bounds = np.cumsum([0, *(sum(b - a for a, b in spans) for spans in chunks_of(request))])
    chunks = [_chunk(request, every, bounds, at) for at in range(len(ranks))]
    if operation == "reducescatter":
        return dict(zip(ranks, chunks, strict=True))
    return dict.fromkeys(ranks, np.concatenate(chunks))


def _transposed(request: Request, every: Sequence[Array]) -> list[Array]:
    n = len(every)
    counts = np.reshape(request.counts, (n, n)) if request.counts else np.full((n, n), every[0].size // n)
    parts = [np.split(each, np.cumsum(row)[:-1]) for each, row in zip(every, counts, strict=True)]
    return [np.concatenate([parts[source][target] for source in range(n)]) for target in range(n)]


def _fold(parts: Sequence[Array], op: str) -> Array:
    """Return parts folded in order, in 32 bits where the type is narrower, and rounded once."""
    ufunc = {"add": np.add, "min": np.minimum, "max": np.maximum}[op]
    dtype = parts[0].dtype
    narrow = dtype.itemsize < 4 and dtype.kind not in "iub"
    stack = [part.astype(np.float32) if narrow else part for part in parts]
    total = stack[0]
    for part in stack[1:]:
        total = ufunc(total, part)
    return np.asarray(total).astype(dtype)


def _chunk(request: Request, every: Sequence[Array], bounds: Array, at: int) -> Array:
    """Return one rank's chunk reduced over all ranks."""
    group, op = request.group, request.reduce
    sizes = [int(size) for size in np.diff(bounds.astype(np.int64))]
    if request.algorithm != "hier":
        values = [each[bounds[at] : bounds[at + 1]] for each in every]
        return _reduced(request.algorithm, group, at, values, op, sizes)
    index = {rank: place for place, rank in enumerate(group.ranks)}
    nodes = [[index[rank] for rank in ranks] for ranks in group.by_node.values()]
    x, y = next((x, row.index(at)) for x, row in enumerate(nodes) if at in row)
    column = [row[y] for row in nodes]
    # Inside a node the chunk of y is the chunks of all ranks with that place, one behind the other.
    inner_sizes = [sum(sizes[row[place]] for row in nodes) for place in range(len(nodes[0]))]
    partial = []
    for row in nodes:
        mine = [np.concatenate([every[who][bounds[c] : bounds[c + 1]] for c in column]) for who in row]
        part = group.part([group.ranks[who] for who in row])
        partial.append(_reduced(request.inner, part, y, mine, op, inner_sizes))
    cuts = np.cumsum([0, *(sizes[c] for c in column)])
    outer = group.part([group.ranks[c] for c in column])
    values = [each[cuts[x] : cuts[x + 1]] for each in partial]
    return _reduced(request.outer, outer, x, values, op, [sizes[c] for c in column])


def _reduced(algorithm: Algorithm, group: Group, at: int, values: Sequence[Array], op: str,
             sizes: Sequence[int]) -> Array:  # fmt: skip
    """Return the chunk of one place, of which every rank has its own values, reduced as an algorithm does it."""
    if group.size == 1:
        return values[0]
    if algorithm in ("ring", "flat-ring", "kangaring"):
        return _around(algorithm, group, at, values, op, sizes)
    if algorithm == "mesh" and (group.nodes > 1 or group.chips == group.size):
        return _fold(values, op)
    index = {rank: place for place, rank in enumerate(group.ranks)}
    if algorithm == "rdh" and group.nodes > 1:
        return _tree([values[place] for place in range(group.size)], at, op)
    chips = [[index[rank] for rank in ranks] for ranks in group.by_chip.values()]
    sums = [_fold([values[place] for place in chip], op) if len(chip) > 1 else values[chip[0]] for chip in chips]
    home = next(number for number, chip in enumerate(chips) if at in chip)
    if algorithm == "mesh":
        return _fold(sums, op)
    labels = group.axes
    assert labels is not None  # the plan has refused other groups
    by_label = dict(zip(labels, sums, strict=True))
    return _tree([by_label[label] for label in range(len(sums))], labels[home], op)


def _tree(values: list[Array], label: int, op: str) -> Array:
    """Return the value at a label after folding with the neighbour along axis 0, then 1, and so on."""
    axis = 1
    while axis < len(values):
        values = [_fold([values[one], values[one ^ axis]], op) for one in range(len(values))]
        axis <<= 1
    return values[label]


def _around(algorithm: Algorithm, group: Group, at: int, values: Sequence[Array], op: str,
            sizes: Sequence[int]) -> Array:  # fmt: skip
    """Return the chunk folded along each cycle, which has its share of it: from behind the place around to it."""
    orders = flat_orders(group) if algorithm == "flat-ring" else group.orders
    orders = orders[: max(1, min((size for size in sizes if size), default=1))]
    total, found = values[0].size, []
    for channel, order in enumerate(orders):
        part = slice(total * channel // len(orders), total * (channel + 1) // len(orders))
        ring = teams(group, order, channel) if algorithm == "kangaring" else [(place,) for place in order]
        home = next(number for number, team in enumerate(ring) if at in team)
        way = [ring[(home + turn) % len(ring)] for turn in range(1, len(ring) + 1)]
        first = [values[place][part] for place in way[0]]
        value = _fold(first, op) if len(first) > 1 else first[0]
        for team in way[1:]:
            value = _fold([value, *(values[place][part] for place in team)], op)
        found.append(value)
    return np.concatenate(found)
