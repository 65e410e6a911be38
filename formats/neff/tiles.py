"""The builder's map of on-chip tiles: member `sgNN/tiles.json`, a list of objects, one per tile.

    {"name": "acc", "space": "PSUM", "partition": 0, "partitions": 128, "offset": 2048, "shape": [128, 512],
     "dtype": "float32", "pcs": {"PE": [12, 20], "DVE": [7, 7]}}

`partition` and `offset` (bytes) are where the first element lies, `shape` starts with `partitions`, the others lie
contiguously inside each partition; `pcs` gives, per engine, the first and last pc that touch the tile. One name may
stand several times, with disjoint lives. `lost`, where it stands, lists [engine, pc, name] of words that read bytes of
the tile which were overwritten through the tile of that name. The format is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from weakref import WeakKeyDictionary

from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neff import Subgraph
from formats.neff.fields import load_value

__all__ = ["Tile", "read_tiles"]

_FIELDS = {
    "name": str,
    "space": str,
    "partition": int,
    "partitions": int,
    "offset": int,
    "shape": list,
    "dtype": str,
    "pcs": dict,
}


# A file that is open runs more than once, and each check of a run asks for its tiles.
_READ: WeakKeyDictionary[Subgraph, tuple[Tile, ...]] = WeakKeyDictionary()


class Tile(NamedTuple):
    """One tile of the map."""

    name: str
    space: str
    partition: int
    partitions: int
    offset: int
    shape: tuple[int, ...]
    dtype: str
    pcs: Mapping[str, tuple[int, int]]
    lost: tuple[tuple[str, int, str], ...] = ()

    @property
    def partition_bytes(self) -> int:
        """Return the bytes the tile takes in each partition."""
        return _bytes_of(self.shape, self.dtype)


@lru_cache(1 << 10)
def _bytes_of(shape: tuple[int, ...], dtype: str) -> int:
    return prod(shape[1:]) * Dtype.from_numpy_name(dtype).size


def read_tiles(subgraph: Subgraph) -> tuple[Tile, ...]:
    """Return the tiles of a subgraph, none where the file has no map; FormatError where the map is malformed."""
    found = _READ.get(subgraph)
    if found is None:
        found = _READ[subgraph] = _read(subgraph)
    return found


def _read(subgraph: Subgraph) -> tuple[Tile, ...]:
    if not subgraph.has("tiles.json"):
        return ()
    path = subgraph.member("tiles.json")
    items = load_value(subgraph.parsed_bytes("tiles.json"), path)
    if not isinstance(items, list):
        raise FormatError("tile map is not a list", path=path)
    return tuple(_tile(item, f"tile {number}", path) for number, item in enumerate(items))


def _tile(item: object, where: str, path: str) -> Tile:
    if not isinstance(item, dict):
        raise FormatError("tile is not an object", path=path, field=where)
    for key, kind in _FIELDS.items():
        if type(item.get(key)) is not kind:  # a truth value is no number here
            raise FormatError(
                "tile has no such field, or one of another type",
                path=path,
                field=f"{where}.{key}",
                expected=kind.__name__,
            )
    shape, pcs = item["shape"], item["pcs"]
    if not shape or not all(type(n) is int and n > 0 for n in shape) or shape[0] != item["partitions"]:
        raise FormatError("shape of a tile does not start with its partitions", path=path, field=f"{where}.shape")
    if item["space"] not in ("SBUF", "PSUM") or min(item["partition"], item["offset"]) < 0:
        raise FormatError("tile lies nowhere", path=path, field=where)
    for engine, span in pcs.items():
        if not (isinstance(span, list) and len(span) == 2 and all(type(n) is int for n in span)):
            raise FormatError("pc range is not two numbers", path=path, field=f"{where}.pcs.{engine}")
    lost = item.get("lost", [])
    if not isinstance(lost, list) or not all(
        isinstance(one, list) and [type(part) for part in one] == [str, int, str] for one in lost
    ):
        raise FormatError("lost bytes are not [engine, pc, name]", path=path, field=f"{where}.lost")
    return Tile(
        item["name"],
        item["space"],
        item["partition"],
        item["partitions"],
        item["offset"],
        tuple(shape),
        Dtype.from_numpy_name(item["dtype"]).numpy_name,
        {e: (s[0], s[1]) for e, s in pcs.items()},
        tuple(map(tuple, lost)),
    )
