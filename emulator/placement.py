"""Where the variables of a NEFF live: HBM allocations shared by name, constants, scratchpad, tables of addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from emulator.dma.transfer import Limit
from emulator.errors import LoadError
from formats.dtypes import Dtype
from formats.named_tuple import NamedTuple
from formats.neff import Neff, Subgraph, TensorInfo, Variable

__all__ = ["DeviceTensor", "HbmLike", "Placement", "Table", "place"]

_ADDRESS_BYTES = 8
_DEFAULT_ALIGNMENT = 4096
# Variables that both cores of a pair see as one; the rest belongs to one physical core.
_SHARED_KINDS = ("input", "output", "tmp-buf")


class HbmLike(Protocol):
    """What the loader needs of device memory."""

    def allocate(self, nbytes: int, name: str, align: int = ...) -> int:
        """Reserve bytes and return their device address."""
        ...

    def write(self, address: int, data: bytes | npt.NDArray[np.uint8]) -> None:
        """Store bytes and mark them written."""
        ...


class DeviceTensor(NamedTuple):
    """A variable in device memory; `dtype` is a NumPy name, "" with an empty shape where the file gives none."""

    name: str
    address: int
    nbytes: int
    dtype: str
    shape: tuple[int, ...]
    kind: str

    @property
    def limit(self) -> Limit:
        """Return the range that transfers of this variable may touch."""
        return Limit(self.name, self.address, self.nbytes)


class Table(NamedTuple):
    """A table of addresses that DMA words index; `entries` are the variables in order, `limits` their ranges."""

    name: str
    address: int
    entries: tuple[DeviceTensor, ...]
    limits: tuple[Limit, ...]  # of the entries


class Placement(NamedTuple):
    """The variables of one subgraph: by name, by var_id (the state buffer is not among them), and its table."""

    by_name: Mapping[str, DeviceTensor]
    by_id: Mapping[int, DeviceTensor]
    state_buffers: frozenset[int]
    table: Table | None
    scratchpad: int


def place(neff: Neff, hbm: HbmLike) -> tuple[list[Placement], dict[str, DeviceTensor]]:
    """Allocate everything the file names; return one placement per subgraph, and the shared tensors by name.

    Constants are written, inputs and outputs are left as they are. Raises LoadError naming the variable that cannot be
    placed.
    """
    shared: dict[str, DeviceTensor] = {}
    known = {tensor.name: tensor for tensor in (*neff.inputs, *neff.outputs)}
    return [_place_subgraph(subgraph, hbm, shared, known) for subgraph in neff.subgraphs], shared


def _place_subgraph(
    subgraph: Subgraph, hbm: HbmLike, shared: dict[str, DeviceTensor], known: Mapping[str, TensorInfo]
) -> Placement:
    names = {**subgraph.tensors, **known}
    variables = subgraph.variables
    found: dict[str, DeviceTensor] = {}
    scratch = _scratchpad(subgraph, hbm)
    for variable in variables.values():
        if variable.kind in ("state-buffer", "dge-table", "pointer"):
            continue
        if variable.kind not in ("input", "output", "file", "virtual", "tmp-buf"):
            raise LoadError(f"{subgraph.name}: variable {variable.name!r} has the unknown type {variable.kind!r}")
        if variable.size is None or variable.size < 0:
            raise LoadError(f"{subgraph.name}: variable {variable.name!r} ({variable.kind}) has no size")
        found[variable.name] = _place_variable(
            subgraph, variable, variable.size, hbm, shared, names.get(variable.name), scratch
        )
    by_id = {variables[name].var_id: tensor for name, tensor in found.items()}
    for variable in variables.values():
        if variable.kind == "pointer":
            target = by_id.get(-1 if variable.referenced_var_id is None else variable.referenced_var_id)
            if target is None:
                raise LoadError(
                    f"{subgraph.name}: pointer {variable.name!r} refers to variable {variable.referenced_var_id}, "
                    "which the definition does not have"
                )
            found[variable.name] = by_id[variable.var_id] = _addresses(variable, (target,), hbm)
    table = None
    for variable in variables.values():
        if variable.kind == "dge-table":
            table = _place_table(subgraph, variable, by_id, hbm)
    buffers = frozenset(v.var_id for v in variables.values() if v.kind == "state-buffer")
    return Placement(found, by_id, buffers, table, scratch)


def _scratchpad(subgraph: Subgraph, hbm: HbmLike) -> int:
    """Allocate the scratchpad: max(offset + size) over the virtual variables (runtime.md 3.1)."""
    need = 0
    for variable in subgraph.variables.values():
        if variable.kind == "virtual":
            if variable.backing_offset is None or variable.size is None:
                raise LoadError(f"{subgraph.name}: virtual variable {variable.name!r} lacks its backing offset or size")
            need = max(need, variable.backing_offset + variable.size)
    return hbm.allocate(need, f"{subgraph.name}/scratchpad", align=_DEFAULT_ALIGNMENT) if need else 0


def _place_variable(
    subgraph: Subgraph,
    variable: Variable,
    size: int,
    hbm: HbmLike,
    shared: dict[str, DeviceTensor],
    info: TensorInfo | None,
    scratch: int,
) -> DeviceTensor:
    name, kind = variable.name, variable.kind
    dtype, shape = _form(info, size)
    if kind == "virtual":
        return DeviceTensor(name, scratch + (variable.backing_offset or 0), size, dtype, shape, kind)
    if kind in _SHARED_KINDS:
        earlier = shared.get(name)
        if earlier is not None:
            if earlier.nbytes != size:
                raise LoadError(
                    f"{subgraph.name}: variable {name!r} has {size} bytes here and {earlier.nbytes} in another subgraph"
                )
            return earlier
    align = _alignment(subgraph, variable)
    label = name if kind in _SHARED_KINDS else f"{subgraph.name}/{name}"
    tensor = DeviceTensor(name, hbm.allocate(size, label, align=align), size, dtype, shape, kind)
    if kind in _SHARED_KINDS:
        shared[name] = tensor
    elif kind == "file":
        payload = subgraph.constant(variable)
        if len(payload) != size:
            raise LoadError(f"{subgraph.name}: constant {name!r} holds {len(payload)} bytes, the variable {size}")
        hbm.write(tensor.address, payload)
    return tensor


def _form(info: TensorInfo | None, size: int) -> tuple[str, tuple[int, ...]]:
    """Return element type and shape where the file gives them and they account for the variable's bytes."""
    if info is None:
        return "", ()
    total = Dtype.from_numpy_name(info.dtype).size
    for length in info.shape:
        total *= length
    return (info.dtype, info.shape) if total == size else ("", ())


def _alignment(subgraph: Subgraph, variable: Variable) -> int:
    align = variable.alignment or 0
    if align < 0 or align & (align - 1):
        raise LoadError(f"{subgraph.name}: variable {variable.name!r} has alignment {align}, no power of two")
    return max(align, _DEFAULT_ALIGNMENT)


def _place_table(subgraph: Subgraph, variable: Variable, by_id: Mapping[int, DeviceTensor], hbm: HbmLike) -> Table:
    missing = [entry for entry in variable.entries if entry not in by_id]
    if missing:
        raise LoadError(
            f"{subgraph.name}: table {variable.name!r} lists variable {missing[0]}, which the definition does not have"
        )
    entries = tuple(by_id[entry] for entry in variable.entries)
    limits = tuple(entry.limit for entry in entries)
    return Table(variable.name, _addresses(variable, entries, hbm).address, entries, limits)


def _addresses(variable: Variable, targets: tuple[DeviceTensor, ...], hbm: HbmLike) -> DeviceTensor:
    """Allocate and fill 64-bit addresses. How the runtime lays a table out is unknown; this form is ours."""
    data = b"".join(target.address.to_bytes(_ADDRESS_BYTES, "little") for target in targets)
    address = hbm.allocate(max(len(data), _ADDRESS_BYTES), variable.name, align=_DEFAULT_ALIGNMENT)
    if data:
        hbm.write(address, data)
    return DeviceTensor(variable.name, address, len(data), "uint64", (len(targets),), variable.kind)
