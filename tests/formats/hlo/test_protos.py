"""Modules as protos: what is read is written again, and what is malformed is one FormatError."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.errors import FormatError
from formats.hlo import Layout, Literal, PrimitiveType, Shape, module_bytes, open_hlo, read_hlo, read_snapshot
from formats.hlo.attributes import DeviceList, Sharding
from formats.hlo.literals import dtype_of, literal_of
from formats.hlo.proto_fields import ENUMERATIONS, NUMBER_LISTS, OPAQUE, SCALARS, SHARED, VALUES
from formats.hlo.proto_values import literal_from, literal_into
from formats.hlo.protos import hlo_messages
from formats.hlo.writer import module_into
from tests.formats.hlo.build import mlp


def _message() -> Any:
    return module_into(mlp())


def test_a_module_goes_out_and_comes_back() -> None:
    raw = module_bytes(mlp())
    module = read_hlo(raw)
    assert module_bytes(module) == raw
    root = module.entry.root
    assert root.opcode == "tuple" and str(root.shape) == "(f32[3,2], f32[3])"
    pool = root.operands[0]
    assert pool.window[1].size == 2 and pool.to_apply is module.computations[0]
    dot = pool.operands[0]
    assert dot.dot.lhs_contracting_dimensions == (1,) and str(module.source(dot)) == "model.py:42"


def test_operands_are_written_before_their_users() -> None:
    module = mlp()
    module.entry.instructions.reverse()
    assert [each.name for each in read_hlo(module_bytes(module)).entry.instructions][-1] == "root.1"


def test_a_circle_of_operands_cannot_be_written() -> None:
    module = mlp()
    dot = module.entry.instructions[3]
    dot.operands[0] = module.entry.root
    with pytest.raises(FormatError, match="needs its own result"):
        module_bytes(module)


def test_wrapped_modules_are_found() -> None:
    types = hlo_messages()
    wrapped = types["HloProto"](hlo_module=_message())
    assert read_hlo(wrapped.SerializeToString()).name == "mlp"
    snapshot = types["HloSnapshot"](hlo=wrapped, execution_platform="cpu")
    literal_into(literal_of(np.arange(3, dtype=np.int32)), snapshot.arguments.add())
    literal_into(literal_of(np.float32(2)), snapshot.result)
    found = read_snapshot(snapshot.SerializeToString())
    assert found.module.name == "mlp" and found.result is not None and found.result.array() == 2
    assert found.arguments[0].array().tolist() == [0, 1, 2]


def test_every_field_of_an_instruction_is_read_somewhere() -> None:
    declared = {field.name for field in hlo_messages()["HloInstructionProto"].DESCRIPTOR.fields}
    assert declared == {*SCALARS, *NUMBER_LISTS, *(each.field for each in VALUES), *ENUMERATIONS, *SHARED, *OPAQUE,
                        "all_reduce_id"}  # fmt: skip


def test_what_is_not_modelled_is_kept() -> None:
    message = _message()
    raw = message.SerializeToString() + b"\x82\x01\x02\x08\x07"  # field 16 of the module: nothing we know
    assert read_hlo(raw).rest == b"\x82\x01\x02\x08\x07"
    assert module_bytes(read_hlo(raw)).startswith(b"\x0a\x03mlp")
    assert read_hlo(module_bytes(read_hlo(raw))).rest == b"\x82\x01\x02\x08\x07"


@pytest.mark.parametrize("element_type", [each for each in PrimitiveType if each.is_array])
def test_literals_of_every_type(element_type: PrimitiveType) -> None:
    if element_type in (PrimitiveType.S1, PrimitiveType.U1):
        try:
            dtype_of(element_type)
        except FormatError:
            pytest.skip("this ml_dtypes has no one-bit types")
    values = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]]).astype(dtype_of(element_type))
    if element_type.is_signed:
        values = (-values.astype(np.int8)).astype(values.dtype)
    literal = literal_of(values)
    assert literal.shape.element_type is element_type
    for order in ((1, 0), (0, 1)):
        laid = Literal(Shape(element_type, (3, 3), layout=Layout(order)), literal.data)
        message = hlo_messages()["LiteralProto"]()
        literal_into(laid, message)
        again = literal_from(hlo_messages()["LiteralProto"].FromString(message.SerializeToString()), "here")
        np.testing.assert_array_equal(again.array().astype(complex), values.astype(complex))


def test_a_literal_lies_as_its_layout_says() -> None:
    message = hlo_messages()["LiteralProto"]()
    literal_into(literal_of(np.arange(6, dtype=np.int32).reshape(2, 3)), message)
    message.shape.layout.ClearField("minor_to_major")
    message.shape.layout.minor_to_major.extend([0, 1])
    assert literal_from(message, "here").array().tolist() == [[0, 2, 4], [1, 3, 5]]


def test_replica_groups_as_a_run_of_numbers() -> None:
    # devices=[2,4]<=[4,2]T(1,0), as XLA writes it: even ones, then odd ones
    assert DeviceList((), 2, 4, (4, 2), (1, 0)).groups() == ((0, 2, 4, 6), (1, 3, 5, 7))
    assert Sharding(3, (2, 2), iota_reshape_dims=(4,)).devices() == (0, 1, 2, 3)
    module = mlp()
    module.entry.root.devices = DeviceList((), 2, 4, (4, 2), (1, 0))
    module.entry.root.sharding = Sharding(3, (2, 2), iota_reshape_dims=(4,))
    root = read_hlo(module_bytes(module)).entry.root
    assert root.replica_groups == ((0, 2, 4, 6), (1, 3, 5, 7)) and root.sharding is not None
    assert root.sharding.devices() == (0, 1, 2, 3)


def _broken(change: Any) -> bytes:
    message = _message()
    change(message, message.computations[1].instructions)
    raw: bytes = message.SerializeToString()
    return raw


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m, i: setattr(m, "entry_computation_id", 99) or m.ClearField("entry_computation_name"), "entry"),
        (lambda m, i: i[3].operand_ids.append(77), "an operand is not there"),
        (lambda m, i: i[4].called_computation_ids.append(77), "called computation is not there"),
        (lambda m, i: i[4].control_predecessor_ids.append(77), "control predecessor is not there"),
        (lambda m, i: setattr(m.computations[1], "root_id", 77), "root instruction is not there"),
        (lambda m, i: setattr(i[1], "id", i[0].id), "two instructions have one number"),
        (lambda m, i: setattr(m.computations[1], "id", m.computations[0].id), "two computations have one number"),
        (lambda m, i: setattr(i[0].shape, "element_type", 99), "unknown element type"),
        (lambda m, i: setattr(i[0].shape, "element_type", 0), "no element type"),
        (lambda m, i: i[0].shape.dimensions.__setitem__(0, -5), "impossible dimension"),
        (lambda m, i: i[0].shape.layout.minor_to_major.__setitem__(0, 5), "layout"),
        (lambda m, i: i[2].literal.f32s.append(b"abcd"), "other bytes than its shape"),
        (lambda m, i: setattr(i[3].metadata, "stack_frame_id", 5), "stack frame"),
        (lambda m, i: m.stack_frame_index.stack_frames.add(file_location_id=1), "file location"),
        (lambda m, i: i[3].precision_config.operand_precision.append(9), "unknown precision"),
        (lambda m, i: setattr(i[3], "rng_algorithm", 9), "unknown rng algorithm"),
        (lambda m, i: i[3].collective_device_list.iota_replica_group_list.iota_reshape_dims.extend([1 << 40] * 3),
         "impossible number of devices"),
        (lambda m, i: i[3].collective_device_list.iota_replica_group_list.iota_reshape_dims.extend([4]),
         "do not fill their groups"),
    ],
)  # fmt: skip
def test_a_malformed_module_is_one_error(change: Any, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        read_hlo(_broken(change))


def _meshed(sizes: tuple[int, ...], axes: list[tuple[int, ...]], numbers: tuple[int, ...] = ()) -> bytes:
    """Return a module whose fourth instruction names groups by axes of a mesh, or by (axis, before it, size)."""

    def change(_: Any, instructions: Any) -> None:
        listed = instructions[3].mesh_axes_replica_group_list
        listed.mesh.device_ids.extend(numbers)
        for size in sizes:
            listed.mesh.axes.add(size=size)
        for at, *part in axes:
            one = listed.axes.add(mesh_axis_index=at)
            if part:
                one.sub_axis_info.pre_size, one.sub_axis_info.size = part

    return _broken(change)


def test_groups_by_axes_of_a_mesh_are_those_of_an_array_of_its_devices() -> None:
    mesh = np.arange(24).reshape(2, 3, 4)
    turned = np.random.default_rng(3).permutation(24)
    halves = np.arange(24).reshape(2, 3, 2, 2)
    for sizes, axes, numbers, wanted in (
        ((2, 3, 4), [(2,)], (), mesh.reshape(6, 4)),
        ((2, 3, 4), [(0,)], (), mesh.transpose(1, 2, 0).reshape(12, 2)),
        ((2, 3, 4), [(2,), (0,)], (), mesh.transpose(1, 2, 0).reshape(3, 8)),
        ((2, 3, 4), [(0,), (1,), (2,)], (), mesh.reshape(1, 24)),
        ((2, 3, 4), [(1,)], tuple(turned), turned[mesh].transpose(0, 2, 1).reshape(8, 3)),
        ((2, 3, 4), [(2, 1, 2)], (), halves.transpose(0, 1, 3, 2).reshape(12, 2)),
        ((2, 3, 4), [(2, 2, 2), (0,)], (), halves.transpose(1, 2, 3, 0).reshape(6, 4)),
        ((4, 1, 1), [(0,)], (), np.arange(4).reshape(1, 4)),
    ):
        module = read_hlo(_meshed(sizes, axes, tuple(map(int, numbers))))
        found = module.entry.instructions[3].replica_groups
        assert found == tuple(tuple(row) for row in wanted.tolist()), axes
        again = read_hlo(module_bytes(module))
        assert again.entry.instructions[3].replica_groups == found


@pytest.mark.parametrize(("sizes", "axes", "numbers", "said"), [
    ((2, 2), [(2,)], (), "no such axis"), ((4,), [(0, 3, 2)], (), "no part of an axis"),
    ((4,), [(0, 1, 2), (0, 1, 4)], (), "named twice"), ((2, 2), [(0,)], (0, 1, 2, 2), "no permutation"),
    ((1 << 40, 1 << 40), [(0,)], (), "impossible number of devices"), ((12,), [(0, 1, 2), (0, 3, 2)], (), "divide"),
])  # fmt: skip
def test_axes_of_a_mesh_that_are_none_are_refused(sizes: Any, axes: Any, numbers: Any, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        read_hlo(_meshed(sizes, axes, numbers))


def test_groups_may_be_a_run_of_numbers_by_itself() -> None:
    def change(_: Any, instructions: Any) -> None:
        run = instructions[3].iota_collective_device_list
        run.num_replica_groups, run.num_devices_per_group = 2, 2
        run.iota_reshape_dims.extend([2, 2])
        run.iota_transpose_perm.extend([1, 0])

    assert read_hlo(_broken(change)).entry.instructions[3].replica_groups == ((0, 2), (1, 3))


@pytest.mark.parametrize("raw", [b"", b"\x00", b"not a module", b"\x0a\x03abc", b"\xff" * 40])
def test_what_is_no_module_is_said_so(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.hlo.pb"
    path.write_bytes(raw)
    with pytest.raises(FormatError, match=r"x\.hlo\.pb"):
        open_hlo(path)


def test_a_circle_of_stack_frames_is_refused() -> None:
    message = _message()
    index = message.stack_frame_index
    index.file_names.append("a.py")
    index.file_locations.add(file_name_id=1, line=3)
    index.stack_frames.add(file_location_id=1, parent_frame_id=1)
    message.computations[1].instructions[3].metadata.stack_frame_id = 1
    module = read_hlo(message.SerializeToString())
    with pytest.raises(FormatError, match="circle"):
        module.stack(module.entry.instructions[3])
