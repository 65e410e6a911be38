"""Write modules as HloModuleProto."""

from __future__ import annotations

import os
from typing import Any

from formats.hlo.attributes import DeviceList, RaggedDotDimensionNumbers, Sharding
from formats.hlo.module import Computation, Instruction, Module
from formats.hlo.proto_fields import ENUMERATIONS, NUMBER_LISTS, PRECISIONS, SCALARS, VALUES
from formats.hlo.proto_values import literal_into, program_shape_into, shape_into, value_into
from formats.hlo.protos import hlo_messages
from formats.whole_files import write_beside

__all__ = ["module_bytes", "module_into", "save_hlo"]


def save_hlo(path: str | os.PathLike[str], module: Module) -> None:
    """Write a file.  Raises FormatError where it cannot be written."""
    write_beside(path, module_bytes(module))


def module_bytes(module: Module) -> bytes:
    """Return the bytes of a module, the same each time."""
    found: bytes = module_into(module).SerializeToString(deterministic=True)
    return found


def module_into(module: Module) -> Any:
    """Return a module as an HloModuleProto.

    Operands are put before their users. Numbers and names stay where no two are the same; names of instructions are
    unique in the module.
    """
    message = hlo_messages()["HloModuleProto"].FromString(module.rest)
    numbers = _numbers(module.computations)
    message.name, message.id = module.name, module.id
    message.entry_computation_name = module.entry.name
    message.entry_computation_id = numbers[module.entry]
    if module.is_dynamic:
        message.is_dynamic = True
    names: set[str] = set()
    for computation in module.computations:
        _computation(computation, numbers, message.computations.add(), names)
    program_shape_into(module.program_shape or module.entry.program_shape, message.host_program_shape)
    for alias in module.aliases:
        value_into(alias, message.input_output_alias.entries.add())
    _texts(module.frontend_attributes, message)
    frames = module.stack_frames
    if frames.frames:
        index = message.stack_frame_index
        index.file_names.extend(frames.file_names)
        index.function_names.extend(frames.function_names)
        for file, function, line, column in frames.locations:
            index.file_locations.add(file_name_id=file, function_name_id=function, line=line, column=column)
        for location, parent in frames.frames:
            index.stack_frames.add(file_location_id=location, parent_frame_id=parent)
    return message


def _numbers(things: list[Any]) -> dict[Any, int]:
    """Return a number for each: its own where no earlier one has it."""
    free = max((each.id for each in things), default=0) + 1
    found: dict[Any, int] = {}
    taken: set[int] = set()
    for each in things:
        number = each.id
        if number in taken:
            number, free = free, free + 1
        taken.add(number)
        found[each] = number
    return found


def _unique(name: str, taken: set[str]) -> str:
    """Return a name that no earlier instruction of the module has: XLA refuses a second one."""
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{name}.{number}"
    taken.add(found)
    return found


def _computation(computation: Computation, computations: dict[Computation, int], message: Any, names: set[str]) -> None:
    message.name = computation.name
    message.id = computations[computation]
    ordered = computation.in_order()
    numbers = _numbers(ordered)
    for instruction in ordered:
        _instruction(instruction, numbers, computations, message)
        message.instructions[-1].name = _unique(instruction.name, names)
    message.root_id = numbers[computation.root]
    program_shape_into(computation.program_shape, message.program_shape)
    if computation.is_fusion:
        message.is_fusion_computation = True
    if computation.execution_thread:
        message.execution_thread = computation.execution_thread


def _instruction(
    instruction: Instruction, numbers: dict[Instruction, int], computations: dict[Computation, int], parent: Any
) -> None:
    message = parent.instructions.add()
    if instruction.rest:
        message.MergeFromString(instruction.rest)
    for name in SCALARS:
        value = getattr(instruction, name)
        if value:
            setattr(message, name, value)
    message.id = numbers[instruction]
    shape_into(instruction.shape, message.shape)
    message.operand_ids.extend(numbers[each] for each in instruction.operands)
    message.control_predecessor_ids.extend(numbers[each] for each in instruction.control_predecessors)
    message.called_computation_ids.extend(computations[each] for each in instruction.called)
    for name in NUMBER_LISTS:
        getattr(message, name).extend(getattr(instruction, name))
    for attribute, field, kind in VALUES:
        value = getattr(instruction, attribute)
        if value != kind():
            value_into(value, getattr(message, field))
            getattr(message, field).SetInParent()
    for name, words in ENUMERATIONS.items():
        if word := getattr(instruction, name):
            setattr(message, name, words.index(word))
    if instruction.literal is not None:
        literal_into(instruction.literal, message.literal)
    _dimensions(instruction, message)
    _texts(instruction.frontend_attributes, message)
    if instruction.sharding is not None:
        _sharding(instruction.sharding, message.sharding)
    _devices(instruction.devices, message)
    _precision(instruction, message)
    for shape in instruction.operand_shapes_with_layout:
        shape_into(shape, message.operand_shapes_with_layout.add())
    for alias in instruction.output_aliasing:
        value_into(alias, message.output_operand_aliasing.add())
    if instruction.outfeed_shape is not None:
        shape_into(instruction.outfeed_shape, message.outfeed_shape)


def _dimensions(instruction: Instruction, message: Any) -> None:
    """Set the attributes that are one message a dimension, and the counts of groups."""
    for window in instruction.window:
        value_into(window, message.window.dimensions.add())
    for part in instruction.slices:
        value_into(part, message.slice_dimensions.add())
    for padding in instruction.padding:
        value_into(padding, message.padding_config.dimensions.add())
    for source, target in instruction.source_target_pairs:
        pair = message.source_target_pairs.add()
        pair.source, pair.target = source, target
    if instruction.opcode == "convolution" or instruction.feature_group_count != 1:
        message.feature_group_count = instruction.feature_group_count
    if instruction.opcode == "convolution" or instruction.batch_group_count != 1:
        message.batch_group_count = instruction.batch_group_count
    if instruction.cholesky_lower:
        message.cholesky_options.lower = True
    ragged = instruction.ragged_dot
    if ragged != RaggedDotDimensionNumbers():
        value_into(ragged.dot_dimension_numbers, message.ragged_dot_dimension_numbers.dot_dimension_numbers)
        message.ragged_dot_dimension_numbers.lhs_ragged_dimensions.extend(ragged.lhs_ragged_dimensions)
        message.ragged_dot_dimension_numbers.rhs_group_dimensions.extend(ragged.rhs_group_dimensions)


def _texts(attributes: dict[str, str], message: Any) -> None:
    for key, value in attributes.items():
        message.frontend_attributes.map.add(key=key, value=value)


def _precision(instruction: Instruction, message: Any) -> None:
    if instruction.operand_precision or instruction.algorithm:
        words = instruction.operand_precision
        message.precision_config.operand_precision.extend(PRECISIONS.index(word) for word in words)
        if instruction.algorithm:
            message.precision_config.algorithm = instruction.algorithm


def _devices(devices: DeviceList, message: Any) -> None:
    if not devices.iota_reshape_dims:
        for group in devices.listed:
            message.collective_device_list.replica_groups.add().replica_ids.extend(group)
            message.replica_groups.add().replica_ids.extend(group)  # what older readers look at
        return
    iota = message.collective_device_list.iota_replica_group_list
    iota.num_replica_groups, iota.num_devices_per_group = devices.num_replica_groups, devices.num_devices_per_group
    iota.iota_reshape_dims.extend(devices.iota_reshape_dims)
    iota.iota_transpose_perm.extend(devices.iota_transpose_perm)


def _sharding(sharding: Sharding, message: Any) -> None:
    message.SetInParent()
    for field in ("type", "replicate_on_last_tile_dim", "is_shard_group", "shard_group_id", "shard_group_type"):
        if value := getattr(sharding, field):
            setattr(message, field, value)
    for field in ("tile_assignment_dimensions", "tile_assignment_devices", "last_tile_dims", "iota_reshape_dims",
                  "iota_transpose_perm"):  # fmt: skip
        getattr(message, field).extend(getattr(sharding, field))
    for part in sharding.tuple_shardings:
        _sharding(part, message.tuple_shardings.add())
