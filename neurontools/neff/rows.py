"""What several `neff` commands share: rows of tensors, variables and queues, and how a subgraph is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from formats.errors import FormatError, NotFoundError
from formats.named_tuple import NamedTuple
from neurontools.command.files import open_neff_file
from neurontools.text.table import count

if TYPE_CHECKING:
    from formats.neff import Neff, Subgraph, TensorInfo

__all__ = [
    "QueueRow", "TensorRow", "VariableRow", "open_subgraph", "percent", "pick_subgraph", "shape_text", "tensor_row",
]  # fmt: skip


class TensorRow(NamedTuple):
    """One input or output of a NEFF."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: Annotated[int | None, "bytes; null where the element type is not one of the hardware's"]


class VariableRow(NamedTuple):
    """One variable of a subgraph, field by field as `formats.neff.Variable` has it."""

    name: str
    kind: str
    var_id: int
    size: int | None
    alignment: int | None
    file_name: str | None
    backing_offset: Annotated[int | None, "place in the shared scratchpad, in bytes"]
    entries: Annotated[tuple[int, ...], "the var_ids that a dge-table lists"]
    fabric_path: str | None
    referenced_var_id: int | None
    extra: Annotated[Mapping[str, object], "keys of the file that have no name here"]


@dataclass(frozen=True)
class QueueRow:
    """One DMA queue of a subgraph, field by field as `formats.neff.Queue` has it."""

    name: str
    kind: str
    owner: str | None
    num_queues: int
    semaphores: tuple[int, ...]
    semaphore: int | None
    fabric_path: str
    queue_instances: tuple[str, ...]
    pinned: bool
    scratch_offset: int | None
    scratch_size: int | None
    extra: Annotated[Mapping[str, object], "keys of the file that have no name here"]


def pick_subgraph(neff: Neff, number: int) -> Subgraph:
    """Return a subgraph by number."""
    if number >= len(neff.subgraphs):
        raise NotFoundError(
            f"no subgraph {number}: the file has {count(len(neff.subgraphs), 'subgraph')}, numbered from 0"
        )
    return neff.subgraphs[number]


def open_subgraph(file: Path, number: int) -> Subgraph:
    """Return one subgraph of the NEFF that a path names."""
    return pick_subgraph(open_neff_file(file), number)


def tensor_row(item: TensorInfo) -> TensorRow:
    """Return one input or output with its size."""
    try:
        size = item.nbytes
    except FormatError:
        size = None
    return TensorRow(item.name, item.dtype, item.shape, size)


def shape_text(shape: Iterable[int]) -> str:
    """Return "[256, 128]"."""
    return "[" + ", ".join(map(str, shape)) + "]"


def percent(part: int, whole: int) -> str:
    """Return a share with two digits, rounded down: nothing short of the whole is called 100 %."""
    hundredths = 10000 * part // whole
    return f"{hundredths // 100}.{hundredths % 100:02d} %"
