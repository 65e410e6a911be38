"""Session, cores and models: nrt.h, nrt_version.h, nrt_status.h, and what nrt_experimental.h says of models."""

from __future__ import annotations

from typing import Any

from emulator.runtime.errors import StatusError, invalid
from emulator.runtime.model import Model
from emulator.runtime.tensor import TensorSet
from formats.nrt.status import NrtStatus
from neurontools.libnrt.calls import does
from neurontools.libnrt.console import VERSION
from neurontools.libnrt.library import Library

__all__: list[str] = []

_NAMES: dict[int, bytes] = {int(status): status.name.encode() for status in NrtStatus}

_ARCH_NAMES = {"trn1": "Trn1", "inf2": "Inf2", "trn2": "Trn2", "trn3": "Trn3"}


@does("nrt_get_status_as_str")
def status_as_text(library: Library, status: int) -> Any:
    """Return the name of a status; the text stays for the life of the library."""
    key = ("status", status)
    found = library.kept.get(key)
    if found is None:
        found = library.kept[key] = library.ffi.new("char[]", _NAMES.get(status, b"NRT_UNKNOWN"))
    return found


@does("nrt_get_version")
def version(library: Library, into: Any, size: int) -> None:
    """Fill in the version: 2.0, as nrt.h says, and ours in the detail."""
    library.need(into)
    found = library.ffi.new("nrt_version_t *")
    found.rt_major, found.rt_minor = 2, 0
    # Shorter by the zero at the end, here and below.
    found.rt_detail = VERSION.encode()[:127]
    # A program that was compiled with another version of the header may have a structure of another size.
    library.ffi.memmove(into, found, min(size, library.ffi.sizeof("nrt_version_t")))


@does("nrt_get_instance_info")
def instance_info(library: Library, into: Any, size: int) -> None:
    """Fill in the instance."""
    library.need(into)
    instance = library.instance()
    found = library.ffi.new("nrt_instance_info_t *")
    found.family, found.size = instance.family, instance.size
    found.arch_name = _ARCH_NAMES[instance.chip].encode()
    found.device_revision = b"0"
    library.ffi.memmove(into, found, min(size, library.ffi.sizeof("nrt_instance_info_t")))


@does("nrt_init")
def init(library: Library, framework: int, framework_version: Any, layer_version: Any) -> None:
    """Begin a session; names of frameworks change nothing."""
    library.open()


@does("nrt_close")
def close(library: Library) -> None:
    """End the session."""
    library.close()


@does("nrt_get_total_nc_count", "nrt_get_total_vnc_count")
def total_cores(library: Library, into: Any) -> None:
    """Count the logical cores of the instance."""
    library.need(into)
    into[0] = library.total_cores()


@does("nrt_get_visible_nc_count", "nrt_get_visible_vnc_count")
def visible_cores(library: Library, into: Any) -> None:
    """Count the logical cores of the process."""
    library.need(into)
    options = library.options()
    if options.visible[-1] >= library.total_cores():
        raise StatusError(NrtStatus.NRT_RESOURCE, f"{options.instance.name} has {library.total_cores()} cores")
    into[0] = len(options.visible)


def _load(library: Library, data: Any, size: int, core: int, into: Any, world: tuple[int, int] | None) -> None:
    library.need(into, data)
    # The bytes are the caller's only until the call returns.
    library.give(into, library.runtime.load(bytes(library.ffi.buffer(data, size)), core, world=world), "nrt_model_t *")


@does("nrt_load")
def load(library: Library, data: Any, size: int, core: int, count: int, into: Any) -> None:
    """Load a model; the count of cores is deprecated and means nothing."""
    _load(library, data, size, core, into, None)


@does("nrt_load_collectives")
def load_collectives(library: Library, data: Any, size: int, core: int, count: int, rank: int, ranks: int,
                     into: Any) -> None:  # fmt: skip
    """Load a model that is one rank of several."""
    _load(library, data, size, core, into, (rank, ranks))


def model_of(library: Library, pointer: Any) -> Model:
    """Return the model of a handle."""
    return library.handles.get(library.number(pointer), Model)


def set_of(library: Library, pointer: Any) -> TensorSet:
    """Return the tensor set of a handle."""
    return library.handles.get(library.number(pointer), TensorSet)


@does("nrt_unload")
def unload(library: Library, model: Any) -> None:
    """Unload a model."""
    library.runtime.unload(library.handles.take(library.number(model), Model))


@does("nrt_get_model_nc_count", "nrt_get_model_vnc_count", "nrt_get_model_instance_count")
def model_cores(library: Library, model: Any, into: Any) -> None:
    """Count the logical cores of a model, and the threads that gain by executing it: one."""
    library.need(into)
    model_of(library, model)
    into[0] = 1


@does("nrt_get_model_info")
def model_info(library: Library, model: Any, into: Any, size: int, written: Any) -> None:
    """Fill in where a model is, as far as the caller's structure goes."""
    library.need(into, written)
    found = library.ffi.new("nrt_model_info_t *")
    found.vnc = model_of(library, model).core
    written[0] = min(size, library.ffi.sizeof("nrt_model_info_t"))
    library.ffi.memmove(into, found, written[0])


@does("nrt_get_model_tensor_info")
def tensor_info(library: Library, model: Any, into: Any) -> None:
    """Give the tensors of a model, in memory that `nrt_free_model_tensor_info` takes back."""
    library.need(into)
    tensors = model_of(library, model).tensors
    sizeof = library.ffi.sizeof  # of the array's head: the elements of a flexible array do not count
    block = library.allocate(sizeof("nrt_tensor_info_array_t") + sizeof("nrt_tensor_info_t") * len(tensors))
    array = library.ffi.cast("nrt_tensor_info_array_t *", block)
    array.tensor_count = len(tensors)
    shapes = []
    for entry, each in zip((array.tensor_array[n] for n in range(len(tensors))), tensors, strict=True):
        entry.name = each.name.encode()[:255]
        entry.usage, entry.size, entry.dtype = int(each.output), each.nbytes, each.dtype
        shape = library.allocate(4 * len(each.shape))
        shapes.append(shape)
        entry.shape, entry.ndim = library.ffi.cast("uint32_t *", shape), len(each.shape)
        for index, length in enumerate(each.shape):
            entry.shape[index] = length
    library.block(block, *shapes)
    into[0] = array


@does("nrt_free_model_tensor_info")
def free_tensor_info(library: Library, array: Any) -> None:
    """Free what `nrt_get_model_tensor_info` gave."""
    library.free_block(array)


@does("nrt_execute")
def execute(library: Library, model: Any, inputs: Any, outputs: Any) -> None:
    """Execute once."""
    library.runtime.execute(model_of(library, model), set_of(library, inputs), set_of(library, outputs))


@does("nrt_execute_repeat")
def execute_repeat(library: Library, model: Any, inputs: Any, outputs: Any, repeat: int) -> None:
    """Execute several times."""
    library.runtime.execute(
        model_of(library, model), set_of(library, inputs), set_of(library, outputs), repeat, "nrt_execute_repeat"
    )


@does("nrt_get_vnc_memory_stats")
def memory_stats(library: Library, core: int, into: Any, size: int, written: Any) -> None:
    """Fill in the device memory of a core, as far as the caller's structure goes."""
    library.need(into, written)
    found = library.ffi.new("nrt_vnc_memory_stats_t *")
    found.bytes_used, found.bytes_limit = library.runtime.memory_stats(core)
    written[0] = min(size, library.ffi.sizeof("nrt_vnc_memory_stats_t"))
    library.ffi.memmove(into, found, written[0])


@does("nrt_host_device_id_get")
def host_device(library: Library, device: int, into: Any) -> None:
    """Give the number of a device on the host: the same, as no container stands between."""
    library.need(into)
    if not 0 <= device < library.runtime.instance.devices:
        raise invalid(f"there are {library.runtime.instance.devices} devices, not {device}")
    into[0] = device


@does("nrt_host_device_id_rid_map_get")
def routing_ids(library: Library, count: Any, into: Any) -> None:
    """Give the routing number of each device: its own."""
    library.need(count, into)
    devices = library.runtime.instance.devices
    if count[0] < devices:
        raise invalid(f"a table of {count[0]} for {devices} devices")
    for device in range(devices):
        into[device] = device
    count[0] = devices
