"""Tensors by name: variables in HBM and the builder's tiles on chip, with NumPy's slices."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.dtypes import numpy_dtype
from emulator.fresh import fresh_pattern
from emulator.placement import DeviceTensor
from formats.dtypes import Dtype
from formats.errors import NotFoundError
from formats.neff.tiles import Tile
from formats.neuron_core import PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE
from formats.regions import Region
from neurontools.debugger.errors import UsageError
from neurontools.debugger.results import Array, TensorRow, TensorValue

if TYPE_CHECKING:
    from emulator.machine_view import MachineView
    from neurontools.debugger.graph_values import Looked
    from neurontools.debugger.graphs import Graphs

__all__ = ["NAMED", "Index", "Tensors", "parse_index"]

Index = Any  # what NumPy takes in brackets: numbers, slices, `...`, None, tuples of them
NAMED = re.compile(r"\s*([^\[\]]+?)\s*(?:\[(.*)\])?\s*", re.DOTALL)


def parse_index(text: str) -> Index:
    """Return the index that NumPy's slice text means: numbers, slices, `...`, `None`; UsageError for anything else."""
    try:
        tree = ast.parse(f"_[{text}]", mode="eval").body
        if not isinstance(tree, ast.Subscript) or not isinstance(tree.value, ast.Name):
            raise UsageError(f"[{text}] is not an index")
        return _index(tree.slice, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"[{text}] is not an index") from None


def _index(node: ast.expr, text: str) -> Index:
    if isinstance(node, ast.Tuple):
        return tuple(_index(item, text) for item in node.elts)
    if isinstance(node, ast.Slice):
        return slice(*(None if part is None else _index(part, text) for part in (node.lower, node.upper, node.step)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        # Not `isinstance`: True is an integer too.
        if type(node.operand.value) is int:
            return -node.operand.value
    elif isinstance(node, ast.Constant) and (node.value is None or node.value is ... or type(node.value) is int):
        return node.value
    raise UsageError(f"[{text}] is not an index: numbers, slices, ... and None are")


class Tensors:
    """What the program calls its data."""

    def __init__(self, device: MachineView, graphs: Graphs | None = None) -> None:
        self.device, self.graphs = device, graphs

    def tiles(self, core: int) -> Sequence[Tile]:
        """Return the tiles of a core, none where the file has no map."""
        return self.device.cores[core].tiles

    def _variables(self, core: int) -> dict[str, DeviceTensor]:
        return {**self.device.tensors, **self.device.cores[core].variables}

    def names(self, core: int) -> list[str]:
        """Return every name that `find` knows."""
        return list(dict.fromkeys([*self._variables(core), *(tile.name for tile in self.tiles(core))]))

    def find(self, name: str, core: int) -> DeviceTensor | Tile:
        """Return the variable or tile of a name; of several tiles the one that lives now, else the last that did.

        Raises NotFoundError that lists similar names.
        """
        variables = self._variables(core)
        if name in variables:
            return variables[name]
        named = [tile for tile in self.tiles(core) if tile.name == name]
        if named:
            return self._present(named, core)
        from difflib import get_close_matches  # deferred: start-up

        names = self.names(core)
        # Names of tiles are often numbered: who is off by one finds it here.
        near = get_close_matches(name, names, n=3) or names[:8]
        raise NotFoundError(
            f"no tensor {name!r}; " + (f"there is {', '.join(near)}" if near else "the file names none")
        )

    def facts(self, name: str, core: int) -> tuple[str, tuple[int, ...], str] | None:
        """Return element type, shape and memory of a tensor, None where there is none of that name."""
        try:
            found = self.find(name, core)
        except NotFoundError:
            return None
        return found.dtype, tuple(found.shape), found.space if isinstance(found, Tile) else "HBM"

    def at(self, region: Region) -> DeviceTensor | Tile | None:
        """Return the tensor that a region begins in; of several tiles as in `find`."""
        if region.space == "HBM":
            return next((item for item in self._variables(region.core).values() if self._holds(item, region)), None)
        found = [tile for tile in self.tiles(region.core) if self._holds(tile, region)]
        return self._present(found, region.core) if found else None

    def tile_at(self, region: Region, engine: str, pc: int) -> Tile | None:
        """Return the tile that a region of a word begins in, None where the file has none there."""
        spans = ((tile, tile.pcs.get(engine)) for tile in self.tiles(region.core) if self._holds(tile, region))
        return next((tile for tile, span in spans if span is not None and span[0] <= pc <= span[1]), None)

    def _present(self, tiles: list[Tile], core: int) -> Tile:
        begun = [tile for tile in tiles if self._begun(tile, core)]
        alive = [tile for tile in begun if self._alive(tile, core)]
        return (alive or begun or tiles[:1])[-1]

    def _pc(self, core: int, engine: str) -> int:
        return self.device.cores[core].engines[engine].pc if engine in self.device.cores[core].engines else -1

    def _begun(self, tile: Tile, core: int) -> bool:
        return any(self._pc(core, engine) >= first for engine, (first, _) in tile.pcs.items())

    def _alive(self, tile: Tile, core: int) -> bool:
        return any(self._pc(core, engine) <= last for engine, (_, last) in tile.pcs.items())

    def value(self, text: str, core: int) -> TensorValue:
        """Return the elements that "name" or "name[slice]" selects, as they are now; errors as in `elements`."""
        return self.elements(text, core)[0]

    def elements(self, text: str, core: int) -> tuple[TensorValue, Array | None]:
        """Return the elements that "name" or "name[slice]" selects, and which are written whole (None for all).

        Raises UsageError for a bad index, NotFoundError for an unknown name or an index out of bounds.
        """
        matched = NAMED.fullmatch(text)
        if matched is None:
            raise UsageError(f"{text!r} is not a TENSOR or TENSOR[slice]")
        name, index = matched[1], matched[2]
        note = ""
        if name.startswith("%"):
            values, there, space, note = self._operation(name, core)
            plane = None if there is None else there[..., None]
        else:
            values, plane, space = self._view(self.find(name, core), core)
        shape = values.shape
        chosen = () if index is None else parse_index(index)
        parts = chosen if isinstance(chosen, tuple) else (chosen,)
        try:
            # A copy: what was printed or displayed must not change while the device goes on.
            picked = np.array(values[parts])
            rest = (*parts, slice(None)) if ... in parts else parts
            complete = None if plane is None else plane[rest].all(axis=-1)
        except (IndexError, TypeError, ValueError) as error:
            raise NotFoundError(f"{name}[{index}]: {error} (shape {list(shape)})") from None
        missing = 0 if complete is None else complete.size - int(complete.sum())
        if index is not None and picked.ndim == 0:
            picked = picked[()]
        return TensorValue(name, "" if index is None else f"[{index}]", space, picked, missing, note), complete

    def _operation(self, name: str, core: int) -> Looked:
        """Return the result of an operation of the graph as it is now."""
        from neurontools.debugger.graph_values import look  # deferred: start-up

        if self.graphs is None:
            raise NotFoundError(f"no operation {name}: a core dump does not hold the graph")
        return look(self, *self.graphs.find(name, core), core)

    def raw(self, name: str, core: int) -> tuple[Array, Array | None]:
        """Return the bytes of a variable, and which are written (None for all)."""
        found = self._variables(core).get(name)
        if found is None:
            raise NotFoundError(f"no tensor {name!r}")
        values, plane, _ = self._view(found, core)
        return values.reshape(-1).view(np.uint8), None if plane is None else plane.reshape(-1)

    def of(self, device: MachineView) -> Tensors:
        """Return the tensors of a device that runs the same program."""
        return self if device is self.device else Tensors(device, self.graphs)

    def store(self, name: str, core: int, parts: tuple[Index, ...], values: Array) -> None:
        """Write elements, and note them written; errors as in `elements`."""
        found = self.find(name, core)
        if not isinstance(found, Tile):
            held = self.device.hbm.find(found.address)
            if held is None:
                raise NotFoundError(f"{name} has no memory")
            held.data  # noqa: B018  # comes into being: without, a look gives a copy
        target, plane, _ = self._view(found, core)
        target[parts] = values
        if plane is not None:
            plane[(*parts, slice(None)) if ... in parts else parts] = True

    def need_inside(self, tile: Tile, core: int) -> None:
        """Raise NotFoundError for a tile that the file has beyond the end of its memory."""
        rows, width = self.device.cores[core].memory.array(tile.space).shape
        if tile.partition + tile.partitions > rows or tile.offset + tile.partition_bytes > width:
            raise NotFoundError(f"tile {tile.name!r} lies outside of {tile.space}")

    def _view(self, found: DeviceTensor | Tile, core: int) -> tuple[Array, Array | None, str]:
        """Return a view of the elements, the written plane by element and byte (None for all), and the memory."""
        if isinstance(found, Tile):
            kind = numpy_dtype(Dtype.from_numpy_name(found.dtype))
            memory = self.device.cores[core].memory
            data, written = memory.array(found.space), memory.written(found.space)
            rows = slice(found.partition, found.partition + found.partitions)
            columns = slice(found.offset, found.offset + found.partition_bytes)
            self.need_inside(found, core)
            shape = found.shape
            values = data[rows, columns].view(kind).reshape(shape)
            return values, written[rows, columns].reshape(*shape, kind.itemsize), f"nc{core} {found.space}"
        # Without element type and shape in the file a variable is its bytes.
        kind = numpy_dtype(Dtype.from_numpy_name(found.dtype or "uint8"))
        shape = found.shape if found.dtype else (found.nbytes,)
        held = self.device.hbm.find(found.address) if found.nbytes else None
        if held is None or not held.touched:  # a look does not create an allocation
            fresh = np.frombuffer(fresh_pattern(found.dtype), np.uint8)
            data, blank = np.resize(fresh, found.nbytes), np.zeros(found.nbytes, np.bool_)
            return data.view(kind).reshape(shape), blank.reshape(*shape, kind.itemsize), "HBM"
        bytes_of = slice(found.address - held.address, found.address - held.address + found.nbytes)
        plane = None if held.whole else held.written[bytes_of].reshape(*shape, kind.itemsize)
        return held.data[bytes_of].view(kind).reshape(shape), plane, "HBM"

    @staticmethod
    def _holds(found: DeviceTensor | Tile, region: Region) -> bool:
        if isinstance(found, Tile):
            return (
                region.space == found.space
                and found.partition <= region.first < found.partition + found.partitions
                and found.offset <= region.byte < found.offset + found.partition_bytes
            )
        return region.space == "HBM" and found.address <= region.byte < found.address + found.nbytes

    def rows(self) -> Iterator[TensorRow]:
        """Yield every tensor: shared ones once, those of a core with its number, then the tiles."""
        shared = self.device.tensors
        for item in shared.values():
            yield _row(item, None)
        for core in self.device.cores:
            for name, item in core.variables.items():
                if shared.get(name) is not item:
                    yield _row(item, core.index)
            for tile in self.tiles(core.index):
                base, stride = (
                    (0, SBUF_PARTITION_STRIDE) if tile.space == "SBUF" else (PSUM_BASE, PSUM_PARTITION_STRIDE)
                )
                yield TensorRow(
                    tile.name,
                    tile.space,
                    core.index,
                    "tile",
                    tile.dtype,
                    tile.shape,
                    base + tile.partition * stride + tile.offset,
                    tile.partitions * tile.partition_bytes,
                )


def _row(item: DeviceTensor, core: int | None) -> TensorRow:
    return TensorRow(item.name, "HBM", core, item.kind, item.dtype, item.shape, item.address, item.nbytes)
