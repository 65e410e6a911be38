"""Collective operations of a queue: prepared once, given to a queue once. Source: nrt_async.h."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.runtime.collectives import CollectiveOp, ReduceOp, combine
from emulator.runtime.errors import StatusError, invalid
from emulator.runtime.queues import ErrorTracker, UnitKind
from emulator.runtime.session import Runtime
from emulator.runtime.tensor import Tensor
from formats.named_tuple import NamedTuple
from formats.nrt.status import NrtStatus

__all__ = ["CollectiveContext", "Communicator"]


class Communicator(NamedTuple):
    """Who takes part: the ranks, this one's number among them, the visible core it uses."""

    group: tuple[int, ...]
    rank: int
    core: int


class CollectiveContext:
    """One operation of one rank; it runs when every rank of its group has given its own to a queue."""

    def __init__(
        self,
        runtime: Runtime,
        comm: Communicator,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        dtype: int,
        reduce: int,
        op: int,
    ) -> None:
        try:
            self._reduce, self._op = ReduceOp(reduce), CollectiveOp(op)
        except ValueError:
            raise invalid(f"operation {op} with reduction {reduce}") from None
        if not comm.group or not 0 <= comm.rank < len(comm.group) or len(set(comm.group)) != len(comm.group):
            raise invalid(f"rank {comm.rank} of the group {list(comm.group)}")
        runtime.core(comm.core)
        self._runtime, self.comm, self._dtype = runtime, comm, dtype
        self._inputs, self._outputs = tuple(inputs), tuple(outputs)
        for tensor in (*inputs, *outputs):
            tensor.storage  # noqa: B018  raises for one that is freed or empty
        self.sequence: int | None = None

    def schedule(self, queue: int, tracker: ErrorTracker | None = None) -> int:
        """Give the operation to a queue; NRT_COLL_PENDING where one has it already."""
        if self.sequence is not None:
            raise StatusError(NrtStatus.NRT_COLL_PENDING, f"the operation is request {self.sequence:#x} of a queue")
        timeout = float(self._runtime.options.timeout_s) or None
        group, rank = self.comm.group, self.comm.rank

        def work() -> None:
            part = (self._inputs, self._outputs)
            key = (self._op, self._reduce, self._dtype, group)
            self._runtime.meetings.meet(
                key, rank, len(group), part, lambda parts: combine(self._op, self._reduce, self._dtype, parts), timeout
            )

        self.sequence = self._runtime.schedule(self.comm.core, UnitKind.COLLECTIVES, queue, work, tracker)
        return self.sequence
