"""Values that writers are given, in the form that the file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from formats.errors import FormatError
from formats.indented import indented_json
from formats.neff.definition import Queue, Reservation, Variable
from formats.neff.graph import TensorInfo
from formats.neff.npy import NPY_MAGIC, npy_bytes, parse_npy
from formats.neff.transfers import DmaBlock, descriptor_json

__all__ = [
    "block_json",
    "constant_file",
    "dtype_name",
    "function_code",
    "json_bytes",
    "queue_json",
    "reservation_json",
    "shape_tuple",
    "tensor_json",
    "variable_json",
]


def dtype_name(dtype: object) -> str:
    """Return the NumPy name of an element type: a string, a formats.dtypes.Dtype, a NumPy dtype or scalar type."""
    if isinstance(dtype, str):
        return dtype
    for key in ("numpy_name", "name", "__name__"):
        name = getattr(dtype, key, None)
        if isinstance(name, str):
            return name
    raise FormatError("not an element type", got=repr(dtype)[:60])


def shape_tuple(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape as plain integers."""
    dims = tuple(map(int, shape))
    if dims and min(dims) < 0:
        raise FormatError("shape has a negative length", got=str(dims))
    return dims


def constant_file(name: str, content: Any) -> tuple[bytes, tuple[str, tuple[int, ...]] | None]:
    """Return the file's bytes, and type and shape where it is an array."""
    if isinstance(content, bytes | bytearray | memoryview):
        data = bytes(content)
        if not data.startswith(NPY_MAGIC):
            return data, None
        array = parse_npy(data, name)
        return data, (_named(array.descr), array.shape)
    try:
        descr, dtype, shape, payload = content.dtype.str, content.dtype, shape_tuple(content.shape), content.tobytes()
    except AttributeError:
        raise FormatError("constant is neither bytes nor an array", field=name, got=type(content).__name__) from None
    if dtype.isbuiltin != 1:
        # The compiler writes types that are not NumPy's own as void: `<V2` is bfloat16.
        descr = f"<V{dtype.itemsize}"
    return npy_bytes(descr, shape, payload), (dtype_name(dtype), shape)


def _named(descr: str) -> str:
    kinds = {"f": "float", "i": "int", "u": "uint", "b": "bool"}
    kind, size = descr.lstrip("<>|=")[:1], descr.lstrip("<>|=")[1:]
    if kind == "b":
        return "bool"
    return f"{kinds[kind]}{8 * int(size)}" if kind in kinds else f"void{size}"


def function_code(name: str) -> int:
    """Return the code of an activation function that has one without a file's table."""
    from formats.isa import ActivationFunction  # deferred: start-up

    try:
        return int(ActivationFunction[name.upper()])
    except KeyError:
        raise FormatError("activation function has no code of its own; give one", got=repr(name)) from None


def variable_json(variable: Variable) -> dict[str, object]:
    """Return a variable as `def.json` holds it."""
    out: dict[str, object] = {"type": variable.kind, "var_id": variable.var_id}
    if variable.kind == "dge-table":
        out["list"] = list(variable.entries)
    elif variable.kind != "state-buffer":
        out["ops"] = []
    optional = {
        "size": variable.size,
        "alignment": variable.alignment,
        "file_name": variable.file_name,
        "backing_variable_off": variable.backing_offset,
        "fabric_path": variable.fabric_path,
        "referenced_var_id": variable.referenced_var_id,
    }
    return out | {key: value for key, value in optional.items() if value is not None}


def queue_json(queue: Queue) -> dict[str, object]:
    """Return a queue as `def.json` holds it."""
    out: dict[str, object] = {
        "type": queue.kind,
        "owner": queue.owner,
        "num_queues": queue.num_queues,
        "fabric_path": queue.fabric_path,
    }
    if queue.semaphores:
        out["semaphore_set"] = list(queue.semaphores)
    if queue.semaphore is not None:
        out["semaphore"] = queue.semaphore
    if queue.scratch_size is not None:
        out["dynamic_dma"] = {
            "SB_scratch_partition_offset": queue.scratch_offset or 0,
            "SB_scratch_partition_size": queue.scratch_size,
        }
    return out


def reservation_json(reservation: Reservation) -> dict[str, object]:
    """Return a reservation as `def.json` holds it."""
    return {
        "base_partition": reservation.base_partition,
        "offset": reservation.offset,
        "partitions": reservation.partitions,
        "size": reservation.size,
        "type": reservation.kind,
    }


def json_bytes(value: Mapping[str, object]) -> bytes:
    """Return a JSON member, keys sorted."""
    return indented_json(value, 1, sort_keys=True).encode() + b"\n"


def tensor_json(tensor: TensorInfo) -> dict[str, object]:
    """Return a tensor as `tensor_map.json` holds it."""
    dims = list(tensor.shape)
    out: dict[str, object] = {
        "dtype": tensor.dtype,
        "is_const": tensor.kind == "constant",
        "layer_name": tensor.name,
        "sim_format": "NC",
        "sim_shape": dims,
        "tf_file": f"value_{tensor.name}.npy",
        "tf_format": "NC",
        "tf_shape": dims,
    }
    if tensor.kind in ("input", "output"):
        out["kind"] = tensor.kind
    return out


def block_json(block: DmaBlock) -> dict[str, object]:
    """Return a DMA block as the engine's JSON holds it."""
    out: dict[str, object] = {"id": block.block_id, "queue": block.queue}
    optional = {
        "#comment": block.comment,
        "semaphore": block.semaphore,
        "event": block.event,
        "remote_semaphores": list(block.remote_semaphores) or None,
    }
    out |= {key: value for key, value in optional.items() if value is not None}
    out["desc"] = list(map(descriptor_json, block.descriptors))
    return out
