"""Attributes of HLO instructions as values.  Fields have the names of the protos' fields, and their order.

Each has a neutral default, so that an instruction carries every attribute and no reader of one asks whether it is
there; the opcode says which of them mean something (`formats/hlo/opcodes.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from formats.named_tuple import NamedTuple

__all__ = [
    "MOST_DEVICES",
    "AliasEntry",
    "ConvolutionDimensionNumbers",
    "DeviceList",
    "DotDimensionNumbers",
    "GatherDimensionNumbers",
    "Metadata",
    "OutputAlias",
    "PaddingDimension",
    "RaggedDotDimensionNumbers",
    "ScatterDimensionNumbers",
    "Sharding",
    "SliceDimension",
    "Source",
    "TriangularSolveOptions",
    "WindowDimension",
    "extreme_dimension",
]

Ints = tuple[int, ...]
MOST_DEVICES = 1 << 20  # that a run of numbers may stand for


class Metadata(NamedTuple):
    """Where an instruction comes from.  `stack_frame_id` counts frames of the module from 1; 0 is none."""

    op_type: str = ""
    op_name: str = ""
    source_file: str = ""
    source_line: int = 0
    source_end_line: int = 0
    source_column: int = 0
    source_end_column: int = 0
    deduplicated_name: str = ""
    stack_frame_id: int = 0
    scheduling_name: str = ""


class Source(NamedTuple):
    """A place in a program's source; lines count from 1, and 0 is unknown."""

    file: str
    line: int
    column: int = 0
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


_NUMBER = re.compile(rb"\s*(-?[0-9]{1,9})\s*")


def extreme_dimension(config: bytes, rank: int) -> int | None:
    """Return the dimension along which a custom call looks for an extreme, None for one that is not there.

    Its configuration may be the number of one (compiler.md 5.4); else it is the last.
    """
    stated = _NUMBER.fullmatch(config)
    axis = int(stated[1]) if stated else -1
    return axis % rank if -rank <= axis < rank else None


@dataclass(frozen=True, slots=True)
class DotDimensionNumbers:
    """Which dimensions of a dot are summed over and which are batches."""

    lhs_contracting_dimensions: Ints = ()
    rhs_contracting_dimensions: Ints = ()
    lhs_batch_dimensions: Ints = ()
    rhs_batch_dimensions: Ints = ()


@dataclass(frozen=True, slots=True)
class RaggedDotDimensionNumbers:
    """A dot whose left rows are shared out to groups of the right operand."""

    dot_dimension_numbers: DotDimensionNumbers = DotDimensionNumbers()
    lhs_ragged_dimensions: Ints = ()
    rhs_group_dimensions: Ints = ()


@dataclass(frozen=True, slots=True)
class ConvolutionDimensionNumbers:
    """What each dimension of input, kernel and output of a convolution is."""

    input_batch_dimension: int = 0
    input_feature_dimension: int = 0
    input_spatial_dimensions: Ints = ()
    kernel_input_feature_dimension: int = 0
    kernel_output_feature_dimension: int = 0
    kernel_spatial_dimensions: Ints = ()
    output_batch_dimension: int = 0
    output_feature_dimension: int = 0
    output_spatial_dimensions: Ints = ()


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """One dimension of a window that moves over a base area."""

    size: int = 1
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    window_dilation: int = 1
    base_dilation: int = 1
    window_reversal: bool = False

    def positions(self, base: int) -> int:
        """Return how many places the window has over a base of that many elements."""
        dilated = (base - 1) * self.base_dilation + 1 if base else 0
        room = dilated + self.padding_low + self.padding_high - ((self.size - 1) * self.window_dilation + 1)
        return max(0, room // self.stride + 1)


@dataclass(frozen=True, slots=True)
class GatherDimensionNumbers:
    """Which dimensions of a gather are offsets in slices and where the indices lie."""

    offset_dims: Ints = ()
    collapsed_slice_dims: Ints = ()
    start_index_map: Ints = ()
    index_vector_dim: int = 0
    operand_batching_dims: Ints = ()
    start_indices_batching_dims: Ints = ()


@dataclass(frozen=True, slots=True)
class ScatterDimensionNumbers:
    """Which dimensions of a scatter's updates are windows and where the indices lie."""

    update_window_dims: Ints = ()
    inserted_window_dims: Ints = ()
    scatter_dims_to_operand_dims: Ints = ()
    index_vector_dim: int = 0
    input_batching_dims: Ints = ()
    scatter_indices_batching_dims: Ints = ()


@dataclass(frozen=True, slots=True)
class SliceDimension:
    """The part of one dimension that a slice takes: from `start` up to `limit`, every `stride`th."""

    start: int = 0
    limit: int = 0
    stride: int = 1


@dataclass(frozen=True, slots=True)
class PaddingDimension:
    """Elements put before, behind and between those of one dimension; negative ones are taken away."""

    edge_padding_low: int = 0
    edge_padding_high: int = 0
    interior_padding: int = 0


@dataclass(frozen=True, slots=True)
class TriangularSolveOptions:
    """Side and form of a triangular matrix; `transpose_a`: 1 as it is, 2 transposed, 3 conjugated and transposed."""

    left_side: bool = False
    lower: bool = False
    unit_diagonal: bool = False
    transpose_a: int = 0


@dataclass(frozen=True, slots=True)
class OutputAlias:
    """An output of a custom call or fusion that shares its bytes with an operand."""

    output_shape_index: Ints = ()
    operand_index: int = 0
    operand_shape_index: Ints = ()


@dataclass(frozen=True, slots=True)
class AliasEntry:
    """An output of a module that shares its bytes with a parameter; `kind`: 1 may, 2 must."""

    output_shape_index: Ints = ()
    parameter_number: int = 0
    parameter_shape_index: Ints = ()
    kind: int = 0


@dataclass(frozen=True, slots=True)
class DeviceList:
    """Groups of devices that take part in a collective: listed, or as a reshaped and transposed run of numbers."""

    listed: tuple[Ints, ...] = ()
    num_replica_groups: int = 0
    num_devices_per_group: int = 0
    iota_reshape_dims: Ints = ()
    iota_transpose_perm: tuple[int, ...] = ()

    def groups(self) -> tuple[Ints, ...]:
        """Return the groups, written out."""
        if not self.iota_reshape_dims:
            return self.listed
        order = _transposed(self.iota_reshape_dims, self.iota_transpose_perm)
        each = self.num_devices_per_group
        return tuple(tuple(order[n * each : (n + 1) * each]) for n in range(self.num_replica_groups))


def _transposed(dims: Ints, perm: Ints) -> list[int]:
    """Return 0, 1, 2, ... as an array of `dims` whose dimensions were reordered by `perm`, flattened."""
    strides = [1] * len(dims)
    for dim in range(len(dims) - 2, -1, -1):
        strides[dim] = strides[dim + 1] * dims[dim + 1]
    order = [0]
    for dim in perm or range(len(dims)):
        order = [start + step * strides[dim] for start in order for step in range(dims[dim])]
    return order


@dataclass(frozen=True, slots=True)
class Sharding:
    """How a value is spread over devices; `type` counts as OpSharding's: replicated, maximal, tuple, other, manual."""

    type: int = 0
    tile_assignment_dimensions: Ints = ()
    tile_assignment_devices: Ints = ()
    tuple_shardings: tuple[Sharding, ...] = ()
    replicate_on_last_tile_dim: bool = False
    last_tile_dims: Ints = ()
    iota_reshape_dims: Ints = ()
    iota_transpose_perm: Ints = ()
    is_shard_group: bool = False
    shard_group_id: int = 0
    shard_group_type: int = 0

    def devices(self) -> Ints:
        """Return the devices of the tiles in order."""
        if self.iota_reshape_dims:
            return tuple(_transposed(self.iota_reshape_dims, self.iota_transpose_perm))
        return self.tile_assignment_devices
