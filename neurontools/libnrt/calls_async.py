"""Queues, completions and collectives: nrt_async.h, and the collective calls of nrt.h and nrt_experimental.h."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from emulator.runtime.collective_requests import CollectiveContext, Communicator
from emulator.runtime.errors import StatusError, invalid
from emulator.runtime.queues import ErrorTracker, UnitKind
from emulator.runtime.tensor import Tensor
from formats.nrt.status import NrtStatus
from neurontools.libnrt.calls import does
from neurontools.libnrt.calls_session import model_of, set_of
from neurontools.libnrt.calls_tensors import tensor_of
from neurontools.libnrt.library import Library

__all__: list[str] = []

_MOST_RANKS = 1 << 16


def _tracker(library: Library, pointer: Any) -> ErrorTracker | None:
    """Return the tracker of a handle, None for NULL.

    The guide's programs pass an `NRT_STATUS *` (runtime.md 11.4), which is no handle: nothing is written there.
    """
    return None if pointer == library.ffi.NULL else library.handles.get(library.number(pointer), ErrorTracker)


def _schedule(
    library: Library, core: int, kind: UnitKind, queue: int, work: Callable[[], object], err: Any, into: Any
) -> None:
    library.need(into)
    into[0] = library.runtime.schedule(core, kind, queue, work, _tracker(library, err))


def _core_of(tensor: Tensor) -> int:
    # A tensor in host memory has no core (-1); its copies go into the queues of the first.
    return max(0, tensor.storage.core)


@does("nrta_tensor_write")
def write(library: Library, tensor: Any, buffer: Any, offset: int, size: int, queue: int, err: Any, into: Any) -> None:
    """Queue a copy from the caller, whose buffer has to stay until it is done."""
    found = tensor_of(library, tensor)
    span = found.span(offset, size)
    library.need(buffer)
    _schedule(
        library, _core_of(found), UnitKind.TENSOR_WRITE, queue,
        lambda: library.ffi.memmove(span.data, buffer, size), err, into,
    )  # fmt: skip


@does("nrta_tensor_read")
def read(library: Library, buffer: Any, tensor: Any, offset: int, size: int, queue: int, err: Any, into: Any) -> None:
    """Queue a copy to the caller, whose buffer has to stay until it is done."""
    found = tensor_of(library, tensor)
    span = found.span(offset, size)
    library.need(buffer)
    _schedule(
        library, _core_of(found), UnitKind.TENSOR_READ, queue,
        lambda: library.ffi.memmove(buffer, span.data, size), err, into,
    )  # fmt: skip


@does("nrta_tensor_copy")
def copy(library: Library, source: Any, source_offset: int, target: Any, target_offset: int, size: int, queue: int,
         err: Any, into: Any) -> None:  # fmt: skip
    """Queue a copy between tensors of one core."""
    found, other = tensor_of(library, source), tensor_of(library, target)
    found.span(source_offset, size)
    other.span(target_offset, size)
    if _core_of(found) != _core_of(other):
        raise invalid(f"the tensors are on cores {_core_of(found)} and {_core_of(other)}")
    _schedule(
        library, _core_of(found), UnitKind.TENSOR_OP, queue,
        lambda: found.copy_to(other, size, source_offset, target_offset), err, into,
    )  # fmt: skip


@does("nrta_execute_schedule")
def execute(library: Library, model: Any, inputs: Any, outputs: Any, queue: int, err: Any, into: Any) -> None:
    """Queue an execution."""
    found, given, wanted = model_of(library, model), set_of(library, inputs), set_of(library, outputs)
    runtime = library.runtime
    _schedule(
        library, found.core, UnitKind.COMPUTE, queue,
        lambda: runtime.execute(found, given, wanted, call="nrta_execute_schedule"), err, into,
    )  # fmt: skip


def _tensors(library: Library, pointer: Any) -> list[Tensor]:
    library.need(pointer)
    if pointer.num_tensors:
        library.need(pointer.tensors)
    return [tensor_of(library, pointer.tensors[index]) for index in range(pointer.num_tensors)]


@does("nrta_cc_prepare")
def prepare(library: Library, comm: Any, inputs: Any, outputs: Any, dtype: int, op: int, cc_op: int,
            into: Any) -> None:  # fmt: skip
    """Prepare a collective operation of this rank."""
    library.need(comm, into)
    if comm.rank_n > _MOST_RANKS:
        raise invalid(f"a group of {comm.rank_n}")
    if comm.replica_group == library.ffi.NULL:
        group = tuple(range(comm.rank_n))
    else:
        group = tuple(comm.replica_group[index] for index in range(comm.rank_n))
    who = Communicator(group, comm.rank, comm.vnc)
    context = CollectiveContext(
        library.runtime, who, _tensors(library, inputs), _tensors(library, outputs), dtype, op, cc_op
    )
    library.give(into, context, "nrt_cc_context_t *")


@does("nrta_cc_schedule")
def schedule(library: Library, pointer: Any, queue: int, err: Any, into: Any) -> None:
    """Queue a collective operation; the context is the caller's until it is done, and gone then."""
    library.need(pointer, into)
    number = library.number(pointer[0])
    context = library.handles.get(number, CollectiveContext)
    if context.sequence is not None and library.runtime.unit_of(context.sequence).is_completed(context.sequence):
        library.handles.take(number, CollectiveContext)
        raise StatusError(NrtStatus.NRT_INVALID_HANDLE, "the operation is done")
    into[0] = context.schedule(queue, _tracker(library, err))


@does("nrta_is_completed")
def is_completed(library: Library, sequence: int, into: Any) -> None:
    """Give whether a request is done."""
    library.need(into)
    into[0] = library.runtime.unit_of(sequence).is_completed(sequence)


@does("nrta_get_sequence")
def get_sequence(library: Library, core: int, kind: int, queue: int, into: Any) -> None:
    """Give the number of the last request that is done."""
    library.need(into)
    try:
        unit = UnitKind(kind)
    except ValueError:
        raise invalid(f"execution unit {kind}") from None
    into[0] = library.runtime.core(core).unit(unit, queue).completed


@does("nrta_get_completion_handle")
def completion_handle(library: Library, sequence: int, into: Any) -> None:
    """Give a file descriptor that becomes readable."""
    library.need(into)
    into[0] = library.runtime.unit_of(sequence).handle(sequence)


@does("nrta_error_tracker_create")
def create_tracker(library: Library, core: int, into: Any) -> None:
    """Make a tracker."""
    library.need(into)
    library.runtime.core(core)
    library.give(into, ErrorTracker(core), "nrta_error_tracker_t *")


@does("nrta_error_tracker_destroy")
def destroy_tracker(library: Library, tracker: Any) -> None:
    """Forget a tracker, and the list that it gave."""
    number = library.number(tracker)
    library.handles.take(number, ErrorTracker)
    library.kept.pop(("errors", number), None)


@does("nrta_error_tracker_get_list")
def error_list(library: Library, tracker: Any, into: Any, count: Any) -> None:
    """Give the errors; the array stays until the next list of the tracker, or its end."""
    library.need(into, count)
    number = library.number(tracker)
    errors = list(library.handles.get(number, ErrorTracker).errors)
    array = library.ffi.new("nrta_error_t[]", max(1, len(errors)))
    for entry, (sequence, status) in zip(array, errors, strict=False):
        entry.seq_id, entry.error_code = sequence, int(status)
    library.kept["errors", number] = array
    into[0], count[0] = array, len(errors)


# --- collectives of the host -----------------------------------------------------------------------------------------


@does("nrt_build_global_comm", "nrt_cc_global_comm_init")
def global_comm(library: Library, core: int, rank: int, ranks: int) -> None:
    """Check who takes part; ranks of one process find each other without more."""
    library.runtime.core(core)
    if not 0 <= rank < ranks:
        raise invalid(f"rank {rank} of {ranks}")


def _meet(library: Library, kind: str, rank: int, ranks: int, part: Any, work: Callable[..., object]) -> None:
    runtime = library.runtime
    timeout = float(runtime.options.timeout_s) or None
    runtime.meetings.meet((kind, ranks), rank, ranks, part, work, timeout)


@does("nrt_barrier")
def barrier(library: Library, core: int, rank: int, ranks: int) -> None:
    """Wait for every rank of this process."""
    library.runtime.core(core)
    _meet(library, "barrier", rank, ranks, None, lambda parts: None)


@does("nrt_all_gather")
def all_gather(library: Library, core: int, rank: int, ranks: int, size: int, source: Any, into: Any) -> None:
    """Give every rank the bytes of all."""
    library.runtime.core(core)
    library.need(source, into)
    mine = np.frombuffer(library.ffi.buffer(source, size), np.uint8).copy()
    target = np.frombuffer(library.ffi.buffer(into, size * ranks), np.uint8)

    def work(parts: Any) -> None:
        if len({part[0].size for part in parts}) != 1:
            raise invalid("ranks give different sizes")
        whole = np.concatenate([part[0] for part in parts])
        for _, each in parts:
            each[...] = whole

    _meet(library, "all_gather", rank, ranks, (mine, target), work)


@does("nrt_async_drain_queued_execs")
def drain(library: Library, core: int) -> None:
    """Wait until the queues of a core are empty."""
    for unit in library.runtime.core(core).units():
        if not unit.wait():
            raise StatusError(NrtStatus.NRT_CLOSED, "the runtime was closed before its queues were empty")
