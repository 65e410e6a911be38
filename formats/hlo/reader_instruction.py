"""One instruction of a proto as a value, without its references."""

from __future__ import annotations

from typing import Any

from formats.errors import FormatError
from formats.hlo.attributes import (
    DotDimensionNumbers,
    OutputAlias,
    PaddingDimension,
    RaggedDotDimensionNumbers,
    Sharding,
    SliceDimension,
    WindowDimension,
)
from formats.hlo.module import Instruction
from formats.hlo.proto_fields import ENUMERATIONS, NUMBER_LISTS, OPAQUE, PRECISIONS, SCALARS, VALUES
from formats.hlo.proto_values import has_unknown_fields, literal_from, shape_from, value_from
from formats.hlo.reader_devices import check_iota, iota_devices, listed_devices, mesh_devices
from formats.hlo.shapes import Shape

__all__ = ["instruction_from"]


def instruction_from(message: Any, shapes: dict[bytes, Shape]) -> Instruction:
    """Return an instruction; operands, predecessors and called computations are still to be added.

    `shapes` keeps shapes by their bytes: most instructions of a module have one of a few.
    """
    raw = message.shape.SerializeToString()
    shape = shapes.get(raw)
    if shape is None:
        shape = shapes[raw] = shape_from(message.shape, message.name)
    found = Instruction(message.name, message.opcode, shape)
    opaque = False
    for field, value in message.ListFields():
        name = field.name
        if name in _SCALARS:
            setattr(found, name, value)
        elif name in NUMBER_LISTS:
            setattr(found, name, tuple(value))
        elif name in _VALUES:
            attribute, _, kind = _VALUES[name]
            setattr(found, attribute, value_from(kind, value))
        elif name in _SPECIAL:
            _SPECIAL[name](found, message)
        elif name in OPAQUE:
            opaque = True
    if found.opcode in _FIRST_WORDS:  # number 0 of an enumeration is not written
        name = _FIRST_WORDS[found.opcode]
        setattr(found, name, getattr(found, name) or ENUMERATIONS[name][0])
    if opaque or has_unknown_fields(message):
        found.rest = _rest(message)
    return found


def _rest(message: Any) -> bytes:
    """Return the fields that are not modelled."""
    copy = type(message)()
    copy.CopyFrom(message)
    for field, _ in message.ListFields():
        if field.name not in OPAQUE:
            copy.ClearField(field.name)
    raw: bytes = copy.SerializeToString()
    return raw


_FIRST_WORDS = {"fft": "fft_type", "rng-bit-generator": "rng_algorithm"}
_SCALARS = frozenset(SCALARS)
_VALUES = {each.field: each for each in VALUES}


def _word(field: str, number: int, name: str) -> str:
    words = ENUMERATIONS[field]
    if not 0 <= number < len(words):
        raise FormatError(f"unknown {field.replace('_', ' ')}", field=name, got=number)
    return words[number]


def _literal(found: Instruction, message: Any) -> None:
    found.literal = literal_from(message.literal, found.name)


def _window(found: Instruction, message: Any) -> None:
    found.window = tuple(value_from(WindowDimension, each) for each in message.window.dimensions)


def _slices(found: Instruction, message: Any) -> None:
    found.slices = tuple(value_from(SliceDimension, each) for each in message.slice_dimensions)


def _padding(found: Instruction, message: Any) -> None:
    found.padding = tuple(value_from(PaddingDimension, each) for each in message.padding_config.dimensions)


def _frontend(found: Instruction, message: Any) -> None:
    found.frontend_attributes = {each.key: each.value for each in message.frontend_attributes.map}


def _precision(found: Instruction, message: Any) -> None:
    numbers = list(message.precision_config.operand_precision)
    if any(not 0 <= number < len(PRECISIONS) for number in numbers):
        raise FormatError("unknown precision", field=found.name, got=numbers[:8])
    if any(numbers):  # all of them default is the same as nothing said
        found.operand_precision = tuple(PRECISIONS[number] for number in numbers)
    found.algorithm = message.precision_config.algorithm


def _groups(found: Instruction, message: Any) -> None:
    found.devices = listed_devices(message)


def _device_list(found: Instruction, message: Any) -> None:
    listed = message.collective_device_list
    if listed.HasField("iota_replica_group_list") and listed.iota_replica_group_list.iota_reshape_dims:
        found.devices = iota_devices(listed.iota_replica_group_list, found.name)
    elif listed.replica_groups:
        found.devices = listed_devices(listed)


def _iota_device_list(found: Instruction, message: Any) -> None:
    found.devices = iota_devices(message.iota_collective_device_list, found.name)


def _mesh_device_list(found: Instruction, message: Any) -> None:
    found.devices = mesh_devices(message.mesh_axes_replica_group_list, found.name)


def _sharding(found: Instruction, message: Any) -> None:
    found.sharding = _sharding_from(message.sharding, found.name)


def _sharding_from(message: Any, name: str) -> Sharding:
    dims = tuple(message.iota_reshape_dims)
    total = 1
    for size in message.tile_assignment_dimensions:
        total *= size
    check_iota(dims, tuple(message.iota_transpose_perm), total, name)
    return Sharding(
        message.type,
        tuple(message.tile_assignment_dimensions),
        tuple(message.tile_assignment_devices),
        tuple(_sharding_from(each, name) for each in message.tuple_shardings),
        message.replicate_on_last_tile_dim,
        tuple(message.last_tile_dims),
        dims,
        tuple(message.iota_transpose_perm),
        message.is_shard_group,
        message.shard_group_id,
        message.shard_group_type,
    )


def _pairs(found: Instruction, message: Any) -> None:
    found.source_target_pairs = tuple((each.source, each.target) for each in message.source_target_pairs)


def _operand_shapes(found: Instruction, message: Any) -> None:
    found.operand_shapes_with_layout = tuple(
        shape_from(each, found.name) for each in message.operand_shapes_with_layout
    )


def _cholesky(found: Instruction, message: Any) -> None:
    found.cholesky_lower = message.cholesky_options.lower


def _aliasing(found: Instruction, message: Any) -> None:
    found.output_aliasing = tuple(value_from(OutputAlias, each) for each in message.output_operand_aliasing)


def _outfeed(found: Instruction, message: Any) -> None:
    found.outfeed_shape = shape_from(message.outfeed_shape, found.name)


def _ragged(found: Instruction, message: Any) -> None:
    ragged = message.ragged_dot_dimension_numbers
    found.ragged_dot = RaggedDotDimensionNumbers(
        value_from(DotDimensionNumbers, ragged.dot_dimension_numbers),
        tuple(ragged.lhs_ragged_dimensions),
        tuple(ragged.rhs_group_dimensions),
    )


def _feature_groups(found: Instruction, message: Any) -> None:
    found.feature_group_count = message.feature_group_count or 1


def _batch_groups(found: Instruction, message: Any) -> None:
    found.batch_group_count = message.batch_group_count or 1


def _channel(found: Instruction, message: Any) -> None:
    found.channel_id = found.channel_id or message.all_reduce_id


def _fft_type(found: Instruction, message: Any) -> None:
    found.fft_type = _word("fft_type", message.fft_type, found.name)


def _distribution(found: Instruction, message: Any) -> None:
    found.distribution = _word("distribution", message.distribution, found.name)


def _rng_algorithm(found: Instruction, message: Any) -> None:
    found.rng_algorithm = _word("rng_algorithm", message.rng_algorithm, found.name)


_SPECIAL = {
    "literal": _literal,
    "window": _window,
    "slice_dimensions": _slices,
    "padding_config": _padding,
    "frontend_attributes": _frontend,
    "precision_config": _precision,
    "replica_groups": _groups,
    "collective_device_list": _device_list,
    "iota_collective_device_list": _iota_device_list,
    "mesh_axes_replica_group_list": _mesh_device_list,
    "sharding": _sharding,
    "source_target_pairs": _pairs,
    "operand_shapes_with_layout": _operand_shapes,
    "cholesky_options": _cholesky,
    "output_operand_aliasing": _aliasing,
    "outfeed_shape": _outfeed,
    "ragged_dot_dimension_numbers": _ragged,
    "feature_group_count": _feature_groups,
    "batch_group_count": _batch_groups,
    "all_reduce_id": _channel,
    "fft_type": _fft_type,
    "distribution": _distribution,
    "rng_algorithm": _rng_algorithm,
}
