"""Tensors by name: variables in HBM and the builder's tiles on chip, with NumPy's slices."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from emulator.placement import DeviceTensor
from emulator.session.errors import UsageError
from emulator.session.memory import chip_bytes, elements, hbm_bytes
from emulator.session.results import TensorRow, TensorValue
from emulator.session.tiles import Tile, read_tiles
from formats.dtypes import Dtype
from formats.errors import NotFoundError
from formats.isa.operand import PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE

if TYPE_CHECKING:
    from emulator.device import Device

__all__ = ["NAMED", "Tensors", "parse_index"]

NAMED = re.compile(r"\s*([^\[\]]+?)\s*(?:\[(.*)\])?\s*", re.DOTALL)


def parse_index(text: str) -> Any:
    """Return the index that NumPy's slice text means: numbers, slices, `...`, `None`; UsageError for anything else."""
    try:
        tree = ast.parse(f"_[{text}]", mode="eval").body
        if not isinstance(tree, ast.Subscript) or not isinstance(tree.value, ast.Name):
            raise UsageError(f"[{text}] is no index")
        return _index(tree.slice, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"[{text}] is no index") from None


def _index(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(_index(item, text) for item in node.elts)
    if isinstance(node, ast.Slice):
        return slice(*(None if part is None else _index(part, text) for part in (node.lower, node.upper, node.step)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        if type(node.operand.value) is int:
            return -node.operand.value
    elif isinstance(node, ast.Constant) and (node.value is None or node.value is ... or type(node.value) is int):
        return node.value
    raise UsageError(f"[{text}] is no index: numbers, slices, ... and None are")


class Tensors:
    """What the program calls its data."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._tiles: dict[int, tuple[Tile, ...]] = {}

    def tiles(self, core: int) -> tuple[Tile, ...]:
        """Return the tiles of a core, none where the file has no map."""
        if core not in self._tiles:
            loaded = self.device.cores[core].loaded
            self._tiles[core] = () if loaded is None else read_tiles(loaded.subgraph)
        return self._tiles[core]

    def _variables(self, core: int) -> dict[str, DeviceTensor]:
        loaded, model = self.device.cores[core].loaded, self.device.model
        own = {} if loaded is None else dict(loaded.placement.by_name)
        return {**({} if model is None else model.tensors), **own}

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
            begun = [tile for tile in named if self._begun(tile, core)]
            alive = [tile for tile in begun if self._alive(tile, core)]
            return (alive or begun or named[:1])[-1]
        from difflib import get_close_matches

        names = self.names(core)
        near = get_close_matches(name, names, n=3) or names[:8]
        raise NotFoundError(
            f"no tensor {name!r}; " + (f"there is {', '.join(near)}" if near else "the file names none")
        )

    def _pc(self, core: int, engine: str) -> int:
        return self.device.cores[core].engines[engine].pc if engine in self.device.cores[core].engines else -1

    def _begun(self, tile: Tile, core: int) -> bool:
        return any(self._pc(core, engine) >= first for engine, (first, _) in tile.pcs.items())

    def _alive(self, tile: Tile, core: int) -> bool:
        return any(self._pc(core, engine) <= last for engine, (_, last) in tile.pcs.items())

    def value(self, text: str, core: int) -> TensorValue:
        """Return the elements that "name" or "name[slice]" selects, as they are now.

        Raises UsageError for a bad index, NotFoundError for an unknown name or an index out of bounds.
        """
        matched = NAMED.fullmatch(text)
        if matched is None:
            raise UsageError(f"{text!r} is no TENSOR or TENSOR[slice]")
        name, index = matched[1], matched[2]
        found = self.find(name, core)
        if isinstance(found, Tile):
            dtype = Dtype.from_numpy_name(found.dtype)
            data, written = chip_bytes(
                self.device, core, found.space, found.partition, found.partitions, found.offset, found.partition_bytes
            )
            shape, space = found.shape, f"nc{core} {found.space}"
            if data.size != found.partitions * found.partition_bytes:
                raise NotFoundError(f"tile {name!r} lies outside of {found.space}")
        else:
            # Without element type and shape in the file a variable is its bytes.
            dtype = Dtype.from_numpy_name(found.dtype or "uint8")
            shape, space = (found.shape if found.dtype else (found.nbytes,)), "HBM"
            data, written = hbm_bytes(self.device, found.address, found.nbytes)
        values, complete = elements(data, written, dtype, shape)
        if index is not None:
            chosen = parse_index(index)
            try:
                values, complete = values[chosen], complete[chosen]
            except (IndexError, TypeError, ValueError) as error:
                raise NotFoundError(f"{name}[{index}]: {error} (shape {list(shape)})") from None
        missing = complete.size - int(complete.sum())
        return TensorValue(name, "" if index is None else f"[{index}]", space, values, missing)

    def rows(self) -> Iterator[TensorRow]:
        """Yield every tensor: shared ones once, those of a core with its number, then the tiles."""
        shared = {} if self.device.model is None else self.device.model.tensors
        for item in shared.values():
            yield _row(item, None)
        for core in self.device.cores:
            for name, item in ({} if core.loaded is None else core.loaded.placement.by_name).items():
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
