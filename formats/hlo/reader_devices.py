"""Groups of devices of a proto, in each of the forms that XLA writes: lists, runs of numbers, axes of a mesh."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from formats.errors import FormatError
from formats.hlo.attributes import MOST_DEVICES, DeviceList

__all__ = ["check_iota", "iota_devices", "listed_devices", "mesh_devices"]


def check_iota(dims: tuple[int, ...], perm: tuple[int, ...], total: int, name: str) -> None:
    """Refuse a run of device numbers that cannot be written out."""
    count = 1
    for size in dims:
        count *= size
        if not 0 < count <= MOST_DEVICES:
            raise FormatError("impossible number of devices", field=name, got=size)
    if dims and count != total:
        raise FormatError("device numbers do not fill their groups", field=name, expected=total, got=count)
    if perm and sorted(perm) != list(range(len(dims))):
        raise FormatError("device numbers are transposed by what is no permutation", field=name, got=list(perm)[:8])


def iota_devices(message: Any, name: str) -> DeviceList:
    """Return groups that are a run of numbers, reshaped and transposed."""
    dims, perm = tuple(message.iota_reshape_dims), tuple(message.iota_transpose_perm)
    check_iota(dims, perm, message.num_replica_groups * message.num_devices_per_group, name)
    return DeviceList((), message.num_replica_groups, message.num_devices_per_group, dims, perm)


def listed_devices(message: Any) -> DeviceList:
    """Return groups that are written out."""
    return DeviceList(tuple(tuple(group.replica_ids) for group in message.replica_groups))


def mesh_devices(message: Any, name: str) -> DeviceList:
    """Return groups that are axes of a mesh, or parts of them, as the run of numbers that says the same.

    A group has the devices that differ in nothing but these axes, the first of which changes slowest.
    """
    sizes = [axis.size for axis in message.mesh.axes]
    check_iota(tuple(sizes), (), _product(sizes), name)
    cuts: list[set[int]] = [{1, size} for size in sizes]
    spans = []
    for one in message.axes:
        at = one.mesh_axis_index
        if not 0 <= at < len(sizes):
            raise FormatError("no such axis of the mesh", field=name, expected=f"0 to {len(sizes) - 1}", got=at)
        first, last = 1, sizes[at]
        if one.HasField("sub_axis_info"):
            first, last = one.sub_axis_info.pre_size, one.sub_axis_info.pre_size * one.sub_axis_info.size
        if not 0 < first <= last or sizes[at] % first or sizes[at] % last or last % first:
            raise FormatError("no part of an axis of the mesh", field=name, got=[first, last])
        cuts[at] |= {first, last}
        spans.append((at, first, last))
    dims: list[int] = []
    places: dict[tuple[int, int], int] = {}  # of an axis and the product of what is left of the cut: its dimension
    for at, marks in enumerate(map(sorted, cuts)):
        for first, last in pairwise(marks):
            if last % first:
                raise FormatError("parts of an axis of the mesh do not divide it", field=name, got=marks[:8])
            places[at, first] = len(dims)
            dims.append(last // first)
    grouped = [place for at, first, last in spans for (axis, mark), place in places.items()
               if axis == at and first <= mark < last]  # fmt: skip
    if len(set(grouped)) != len(grouped):
        raise FormatError("an axis of the mesh is named twice", field=name, got=grouped[:8])
    each = _product(dims[one] for one in grouped)
    perm = (*(one for one in range(len(dims)) if one not in grouped), *grouped)
    numbers = tuple(message.mesh.device_ids)
    count = _product(sizes) // each
    # A mesh whose axes are all of size 1 is one device, which a run of numbers without dimensions is not.
    run = DeviceList((), count, each, tuple(dims) or (1,), perm if perm != tuple(range(len(dims))) else ())
    if not numbers:
        return run
    if sorted(numbers) != list(range(count * each)):
        raise FormatError("devices of a mesh are no permutation", field=name, got=list(numbers)[:8])
    return DeviceList(tuple(tuple(numbers[one] for one in group) for group in run.groups()))


def _product(sizes: Any) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total
