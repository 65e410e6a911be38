"""Read `hlo.pb`: an HloModuleProto, or one inside an HloProto or HloSnapshot.

Time and memory are linear in the bytes. References between instructions and computations are resolved once, here; a
number that names nothing, or something later, is a FormatError that names the instruction.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from formats.errors import FormatError
from formats.hlo.attributes import AliasEntry
from formats.hlo.literals import Literal
from formats.hlo.module import Computation, Instruction, Module, StackFrames
from formats.hlo.proto_values import literal_from, program_shape_from, value_from
from formats.hlo.protos import hlo_messages
from formats.hlo.reader_instruction import instruction_from
from formats.hlo.shapes import Shape
from formats.named_tuple import NamedTuple

__all__ = ["MOST_BYTES", "Snapshot", "module_from", "open_hlo", "read_hlo", "read_snapshot"]

MOST_BYTES = 2 << 30  # what one protobuf message can hold


class Snapshot(NamedTuple):
    """A module with the arguments it was given and the result that came out; empty and None where not stated."""

    module: Module
    arguments: tuple[Literal, ...]
    result: Literal | None


def open_hlo(path: str | Path) -> Module:
    """Read a file.  Raises FormatError with its path."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise FormatError(f"cannot be read ({error.strerror})", path=str(path)) from None
    try:
        return read_hlo(data)
    except FormatError as error:
        raise error.at(path=str(path)) from None


def read_hlo(data: bytes) -> Module:
    """Return the module in bytes of a HloModuleProto, HloProto or HloSnapshot."""
    return read_snapshot(data).module


def read_snapshot(data: bytes) -> Snapshot:
    """Return the module with arguments and result, where the bytes are those of a HloSnapshot."""
    types = hlo_messages()
    if len(data) > MOST_BYTES:
        raise FormatError("too large for a protobuf message", expected=f"at most {MOST_BYTES} bytes", got=len(data))
    # An HloModuleProto begins with its name; the others have a message in field 1, which also parses as a text.  So
    # the computations decide.
    module = _parsed(types["HloModuleProto"], data)
    if module is not None and module.computations:
        return Snapshot(module_from(module), (), None)
    wrapped = _parsed(types["HloProto"], data)
    if wrapped is not None and wrapped.hlo_module.computations:
        return Snapshot(module_from(wrapped.hlo_module), (), None)
    snapshot = _parsed(types["HloSnapshot"], data)
    if snapshot is not None and snapshot.hlo.hlo_module.computations:
        arguments = tuple(literal_from(each, f"argument {n}") for n, each in enumerate(snapshot.arguments))
        result = literal_from(snapshot.result, "result") if snapshot.HasField("result") else None
        return Snapshot(module_from(snapshot.hlo.hlo_module), arguments, result)
    raise FormatError("is no HLO module", expected="an HloModuleProto, HloProto or HloSnapshot with computations")


def _parsed(kind: Any, data: bytes) -> Any:
    from google.protobuf.message import DecodeError  # deferred: start-up

    try:
        return kind.FromString(data)
    except DecodeError:
        return None


def module_from(message: Any) -> Module:
    """Return a parsed HloModuleProto as a module."""
    try:
        return _module(message)
    except UnicodeDecodeError:
        raise FormatError("a name is not UTF-8") from None


def _module(message: Any) -> Module:
    computations: dict[int, Computation] = {}
    for each in message.computations:
        if each.id in computations:
            raise FormatError("two computations have one number", field=each.name, got=each.id)
        computations[each.id] = _computation(each, computations)
    entry = computations.get(message.entry_computation_id)
    if entry is None:
        named = [each for each in computations.values() if each.name == message.entry_computation_name]
        if not named:
            raise FormatError("the entry computation is not there", field="entry_computation_id",
                              got=message.entry_computation_id)  # fmt: skip
        entry = named[0]
    module = Module(message.name, list(computations.values()), entry, message.id, message.is_dynamic)
    module.aliases = tuple(value_from(AliasEntry, each) for each in message.input_output_alias.entries)
    module.frontend_attributes = {each.key: each.value for each in message.frontend_attributes.map}
    module.stack_frames = _stack_frames(message.stack_frame_index)
    if message.HasField("host_program_shape"):
        module.program_shape = program_shape_from(message.host_program_shape, "host_program_shape")
    frames = len(module.stack_frames.frames)
    for instruction in module.instructions():
        if not 0 <= instruction.metadata.stack_frame_id <= frames:
            raise FormatError("names a stack frame that is not there", field=instruction.name,
                              expected=f"at most {frames}", got=instruction.metadata.stack_frame_id)  # fmt: skip
    for field in _MODELLED:
        message.ClearField(field)
    module.rest = message.SerializeToString()
    return module


_MODELLED = (
    "name", "entry_computation_name", "computations", "host_program_shape", "id", "entry_computation_id",
    "input_output_alias", "is_dynamic", "stack_frame_index", "frontend_attributes",
)  # fmt: skip


def _computation(message: Any, computations: dict[int, Computation]) -> Computation:
    by_id: dict[int, Instruction] = {}
    shapes: dict[bytes, Shape] = {}
    late: list[tuple[Instruction, list[int]]] = []
    for each in message.instructions:
        if each.id in by_id:
            raise FormatError("two instructions have one number", field=each.name, got=each.id)
        instruction = instruction_from(each, shapes)
        for number in each.operand_ids:
            if number not in by_id:
                raise FormatError("an operand is not there, or later", field=each.name, got=number)
            instruction.operands.append(by_id[number])
        for number in each.called_computation_ids:
            if number not in computations:
                raise FormatError("a called computation is not there, or later", field=each.name, got=number)
            instruction.called.append(computations[number])
        if each.control_predecessor_ids:
            late.append((instruction, list(each.control_predecessor_ids)))
        by_id[each.id] = instruction
    for instruction, numbers in late:
        for number in numbers:
            if number not in by_id:
                raise FormatError("a control predecessor is not there", field=instruction.name, got=number)
            instruction.control_predecessors.append(by_id[number])
    root = by_id.get(message.root_id)
    if root is None:
        raise FormatError("the root instruction is not there", field=message.name, got=message.root_id)
    return Computation(
        message.name, list(by_id.values()), root, message.id, message.is_fusion_computation, message.execution_thread
    )


def _stack_frames(message: Any) -> StackFrames:
    found = StackFrames(list(message.file_names), list(message.function_names))
    for place in message.file_locations:
        _need(place.file_name_id, len(found.file_names), "file name")
        _need(place.function_name_id, len(found.function_names), "function name")
        found.locations.append((place.file_name_id, place.function_name_id, place.line, place.column))
    for frame in message.stack_frames:
        _need(frame.file_location_id, len(found.locations), "file location", least=1)
        _need(frame.parent_frame_id, len(message.stack_frames), "parent frame")
        found.frames.append((frame.file_location_id, frame.parent_frame_id))
    return found


def _need(number: int, most: int, what: str, least: int = 0) -> None:
    if not least <= number <= most:
        raise FormatError(f"names a {what} that is not there", field="stack_frame_index", expected=f"{least} to {most}",
                          got=number)  # fmt: skip
