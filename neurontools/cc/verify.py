"""`neurontools cc verify`: execute a collective and compare every rank with NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from formats.named_tuple import NamedTuple
from neurontools.cc.asking import (
    Algo,
    Asked,
    DataType,
    GroupsFile,
    InstanceOption,
    LncOption,
    Nodes,
    OperationName,
    Pairs,
    Ranks,
    Reduce,
    Size,
    ThresholdsFile,
    ask,
)  # fmt: skip
from neurontools.cc.running import HangRow, executed, hang_lines, ran_of
from neurontools.cc.variable_sizes import MetadataFile
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, Seed
from neurontools.command.output import report
from neurontools.text.table import count, ranges


class Verified(NamedTuple):
    """The result of `cc verify`."""

    operation: str
    algorithm: str
    ranks: int
    groups: int
    bytes: int
    dtype: str
    seeds: tuple[int, ...]
    wrong_ranks: Annotated[tuple[int, ...], "ranks whose bits differ from the fold in the algorithm's order"]
    seeds_differ: Annotated[bool, "whether two orders of events gave different bits"]
    off_by: Annotated[float | None, "largest difference from a sum in 64 bits; None of integers and of movement"]
    hangs: tuple[HangRow, ...]


def verified(asked: Asked, seed: int, orders: int = 2) -> Verified:
    """Return whether outputs equal the oracle bit for bit, under several orders of events."""
    import numpy as np

    from emulator.machine.collectives.reference import expected_outputs  # deferred: start-up
    from emulator.machine.collectives.run import execute  # deferred: start-up

    outcome, inputs = executed(asked, "random", seed)
    wrong: list[int] = []
    off: float | None = None
    reduces = asked.requests[0].operation in ("allreduce", "reducescatter")
    for one in () if outcome.hangs else asked.requests:
        wanted = expected_outputs(one, inputs)
        wrong += [rank for rank in one.group.ranks if outcome.outputs[rank].tobytes() != wanted[rank].tobytes()]
        if reduces and asked.dtype.kind not in "iu" and one.reduce == "add" and one.operation == "allreduce":
            exact = np.sum([inputs[rank].astype(np.float64) for rank in one.group.ranks], axis=0)
            gap = np.abs(outcome.outputs[one.group.ranks[0]].astype(np.float64) - exact)
            off = max(off or 0.0, float(gap.max(initial=0.0)))
    differ = False
    for other in range(1, orders):
        again = execute(asked.requests, asked.dtype, inputs, seed=seed + 1000 * other)
        differ |= any(again.outputs[rank].tobytes() != array.tobytes() for rank, array in outcome.outputs.items())
    ran = ran_of(asked, outcome)
    seeds = tuple(seed + 1000 * other for other in range(orders))
    return Verified(ran.operation, ran.algorithm, ran.ranks, ran.groups, ran.bytes, ran.dtype, seeds, tuple(wrong),
                    differ, off, ran.hangs)  # fmt: skip


def view(found: Verified) -> Iterator[str]:
    """Yield the text for people."""
    what = f"{found.operation} of {found.bytes:,} bytes ({found.dtype}) by {found.algorithm}"
    for hang in found.hangs:
        yield from hang_lines(hang)
    if not found.hangs:
        same = f"equals NumPy bit for bit on {count(found.ranks * found.groups, 'rank')}"
        yield f"{what}: " + (f"WRONG on ranks {ranges(found.wrong_ranks)}" if found.wrong_ranks else same)
        seeds = ", ".join(map(str, found.seeds))
        yield f"orders of events {seeds}: " + ("DIFFERENT bits" if found.seeds_differ else "same bits")
    if found.off_by is not None:
        yield f"largest difference from a sum in 64 bits: {found.off_by:.3g}"


def verify(
    operation: OperationName,
    ranks: Ranks = None,
    size: Size = 1 << 16,
    instance: InstanceOption = "trn2.48xlarge",
    nodes: Nodes = 1,
    lnc: LncOption = None,
    algo: Algo = "auto",
    dtype: DataType = "fp32",
    reduce: Reduce = "add",
    groups: GroupsFile = None,
    pairs: Pairs = None,
    metadata: MetadataFile = None,
    thresholds: ThresholdsFile = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Execute a collective and compare every rank with NumPy, bit for bit.

    The oracle folds in the documented order of the algorithm and knows nothing of the step lists.  A second execution
    takes events of one time in another order.  Exit status 1: a rank differs; 5: the collective does not end.
    """
    with report("cc verify", json, operation=operation, ranks=ranks, size=size, instance=instance, nodes=nodes,
                algo=algo) as out:  # fmt: skip
        asked = ask(operation, size, instance=instance, nodes=nodes, lnc=lnc, ranks=ranks, algo=algo, dtype=dtype,
                    reduce=reduce, groups=groups, pairs=pairs, thresholds=thresholds, metadata=metadata)  # fmt: skip
        out.result = found = verified(asked, seed or 0)
        out.lines = lambda: view(found)
        if found.hangs:
            out.status = ExitStatus.FAULT
        elif found.wrong_ranks or found.seeds_differ:
            out.status = ExitStatus.FINDING


app = command_app(verify, result=Verified)
