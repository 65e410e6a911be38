"""Collective operations of one process outside of any model: ranks meet, and the last to come does the work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from emulator.dtypes import numpy_dtype
from emulator.machine.collectives.memory import folded
from emulator.runtime.errors import StatusError, invalid
from emulator.runtime.tensor import Tensor
from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.nrt.status import NrtStatus

__all__ = ["CollectiveOp", "Meetings", "ReduceOp", "combine"]


class CollectiveOp(IntEnum):
    """Operations, as nrt.h numbers them."""

    ALLGATHER = 0
    ALLREDUCE = 1
    REDUCESCATTER = 2


class ReduceOp(IntEnum):
    """Reductions, as nrt.h numbers them; FMA takes a third operand, which these calls do not have."""

    ADD = 0
    FMA = 1
    MAX = 2
    MIN = 3


_FOLDS = {ReduceOp.ADD: "add", ReduceOp.MAX: "max", ReduceOp.MIN: "min"}


class _Meeting:
    def __init__(self, ranks: int) -> None:
        self.parts: dict[int, Any] = {}
        self.ranks, self.left = ranks, 0
        self.error: StatusError | None = None
        self.done = False


class Meetings:
    """Where the ranks of a group wait for each other, in the order of their calls."""

    def __init__(self) -> None:
        self._open: dict[object, list[_Meeting]] = {}
        self._changed = threading.Condition()
        self._closed = False

    def meet(
        self,
        group: object,
        rank: int,
        ranks: int,
        part: Any,
        work: Callable[[Sequence[Any]], object],
        timeout: float | None,
    ) -> None:
        """Wait until every rank of a group is here; the last one does the work on all parts, in the order of ranks.

        NRT_EXEC_HW_ERR_COLLECTIVES where a rank does not come in time, the work's own error for every rank.
        """
        if not 0 <= rank < ranks:
            raise invalid(f"rank {rank} of {ranks}")
        with self._changed:
            queue = self._open.setdefault(group, [])
            # A rank that calls twice before the others have called once belongs to the meeting after this one.
            found = next((each for each in queue if rank not in each.parts), None)
            if found is None:
                found = _Meeting(ranks)
                queue.append(found)
            if found.ranks != ranks:
                raise invalid(f"rank {rank} of {ranks} meets a group of {found.ranks}")
            found.parts[rank] = part
            if len(found.parts) == ranks:
                try:
                    work([found.parts[each] for each in range(ranks)])
                except StatusError as error:
                    found.error = error
                except Exception as error:
                    # Only this thread sees what went wrong; the others must not take it for success, nor wait on.
                    found.error = StatusError(NrtStatus.NRT_FAILURE, f"another rank failed: {error}")
                    raise
                finally:
                    found.done = True
                    queue.remove(found)
                    if not queue:
                        del self._open[group]
                    self._changed.notify_all()
            elif not self._changed.wait_for(lambda: found.done or self._closed, timeout) or not found.done:
                missing = sorted(set(range(ranks)) - set(found.parts))
                # Who comes later must not meet somebody who has left.
                found.parts.pop(rank, None)
                if not found.parts and found in queue:
                    queue.remove(found)
                if self._closed:
                    raise StatusError(NrtStatus.NRT_CLOSED, "the runtime is closed")
                raise StatusError(NrtStatus.NRT_EXEC_HW_ERR_COLLECTIVES, f"ranks that did not come: {missing}")
            if found.error is not None:
                raise found.error

    def close(self) -> None:
        """Send everybody home."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def combine(
    op: CollectiveOp, reduce: ReduceOp, dtype: int, parts: Sequence[tuple[Sequence[Tensor], Sequence[Tensor]]]
) -> None:
    """Do an operation on the (inputs, outputs) of all ranks; each rank's tensors are one array behind another.

    Folds go in the order of ranks, as one transfer of a CC-core does them. NRT_INVALID for sizes that do not fit: then
    no output has changed.
    """
    try:
        kind = numpy_dtype(Dtype(dtype))
    except (ValueError, KeyError, FormatError):
        raise invalid(f"element type {dtype}") from None
    if not all(inputs for inputs, _ in parts):
        raise invalid("a rank without inputs")
    given = [np.concatenate([tensor.data for tensor in inputs]) for inputs, _ in parts]
    if len({each.size for each in given}) != 1 or given[0].size % kind.itemsize:
        raise invalid(f"inputs of {sorted({each.size for each in given})} bytes")
    if op == CollectiveOp.ALLGATHER:
        whole = np.concatenate(given)
        results = [whole] * len(parts)
    else:
        if reduce not in _FOLDS:
            raise invalid(f"reduction {reduce.name} has no third operand here")
        with np.errstate(all="ignore"):  # a sum that overflows is a result
            total = folded([each.view(kind) for each in given], _FOLDS[reduce]).view(np.uint8)
        if op == CollectiveOp.ALLREDUCE:
            results = [total] * len(parts)
        else:
            if given[0].size % (len(parts) * kind.itemsize):
                raise invalid(f"{given[0].size} bytes do not go into {len(parts)} equal parts")
            results = np.split(total, len(parts))
    for (_, outputs), result in zip(parts, results, strict=True):
        if sum(tensor.size for tensor in outputs) != result.size:
            raise invalid(f"outputs of {sum(tensor.size for tensor in outputs)} bytes, the result has {result.size}")
    for (_, outputs), result in zip(parts, results, strict=True):
        at = 0
        for tensor in outputs:
            tensor.data[...] = result[at : at + tensor.size]
            at += tensor.size
