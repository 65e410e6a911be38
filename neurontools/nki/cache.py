"""Files that kernels were built into, kept for the next launch of the same kernel on arrays of the same shapes.

`NEURONTOOLS_LAUNCH_CACHE` decides: unset, launches are kept in memory; a folder keeps them for other processes too;
"0" or "off" keeps nothing.  `neurontools.nki.cache_key` says what makes two launches the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

from formats.errors import FormatError
from neurontools.nki.arguments import map_structure
from neurontools.nki.dtype import DType, dtype_of
from neurontools.trace import Source

__all__ = ["LaunchCache", "Look", "Prepared", "Returned", "clear", "find", "keep", "returned", "statistics"]

VARIABLE = "NEURONTOOLS_LAUNCH_CACHE"
_MOST_ENTRIES, _MOST_BYTES = 128, 256 << 20
_FORMAT = 1


@dataclass(frozen=True)
class Returned:
    """One tensor of a kernel's results: elements of the output called `name`, offset and strides in elements."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class Look(NamedTuple):
    """One output to look at after the run: `kind` is "assert" or "print"; `row` is its core's, None for all of it."""

    kind: str
    name: str
    shape: tuple[int, ...]
    row: int | None
    source: Source
    text: str


class Prepared(NamedTuple):
    """A launch that has been traced and built: all that running it takes besides the arrays.

    `inputs` are name and shape of each input; `written` the places of those that the kernel writes.
    """

    neff: bytes
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    written: tuple[int, ...]
    results: Any
    looks: tuple[Look, ...]


class LaunchCache:
    """Prepared launches by key, the least recently used leaving first; `hits` and `misses` count what was asked for."""

    def __init__(self) -> None:
        self.hits = self.misses = 0
        self._held: OrderedDict[str, Prepared] = OrderedDict()
        self._bytes = 0

    def find(self, key: str | None) -> Prepared | None:
        """Return the launch of a key, from memory or from the folder."""
        found = None
        setting = os.environ.get(VARIABLE, "")
        if key is not None and setting.lower() not in ("0", "off"):
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
            elif setting:
                found = _read(os.path.join(setting, f"{key}.launch"))
                if found is not None:
                    self._hold(key, found)
        self.hits += found is not None
        self.misses += found is None
        return found

    def keep(self, key: str | None, launch: Prepared) -> None:
        """Keep a launch, unless its results hold objects that another launch must not share."""
        setting = os.environ.get(VARIABLE, "")
        if key is None or setting.lower() in ("0", "off") or not _plain(launch.results):
            return
        self._hold(key, launch)
        if setting:
            _write(setting, key, launch)

    def clear(self) -> None:
        """Forget what is in memory."""
        self._held.clear()
        self._bytes = self.hits = self.misses = 0

    def _hold(self, key: str, launch: Prepared) -> None:
        if len(launch.neff) > _MOST_BYTES:
            return
        before = self._held.pop(key, None)
        self._bytes += len(launch.neff) - (0 if before is None else len(before.neff))
        self._held[key] = launch
        while len(self._held) > _MOST_ENTRIES or self._bytes > _MOST_BYTES:
            _, oldest = self._held.popitem(last=False)
            self._bytes -= len(oldest.neff)


_cache = LaunchCache()
find, keep, clear = _cache.find, _cache.keep, _cache.clear


def statistics() -> tuple[int, int]:
    """Return how many launches found a file ready, and how many did not."""
    return _cache.hits, _cache.misses


def _plain(results: Any) -> bool:
    """Tell whether results are tensors and constants in tuples, which nobody can change."""
    if isinstance(results, Returned) or results is None or type(results) in (bool, int, float, str):
        return True
    return type(results) is tuple and all(map(_plain, results))


def _write(folder: str, key: str, launch: Prepared) -> None:
    """Write a launch to the folder; a folder that cannot be written is none."""
    from formats.whole_files import write_beside

    head = {"inputs": launch.inputs, "written": launch.written, "looks": launch.looks,
            "results": _text(launch.results)}  # fmt: skip
    body = json.dumps(head).encode() + b"\n" + launch.neff
    first = json.dumps({"neurontools_launch": _FORMAT, "sha256": hashlib.sha256(body).hexdigest()}).encode()
    try:
        os.makedirs(folder, exist_ok=True)
        write_beside(os.path.join(folder, f"{key}.launch"), first + b"\n" + body)
    except (OSError, FormatError):
        return


def _text(results: Any) -> Any:
    if isinstance(results, Returned):
        return {"tensor": [results.name, str(results.dtype), results.shape, results.strides, results.offset]}
    return {"tuple": [_text(one) for one in results]} if isinstance(results, tuple) else {"value": results}


def _results(text: Any) -> Any:
    if "tensor" in text:
        name, dtype, shape, strides, offset = text["tensor"]
        return Returned(name, dtype_of(dtype), tuple(shape), tuple(strides), offset)
    return tuple(_results(one) for one in text["tuple"]) if "tuple" in text else text["value"]


def _read(path: str) -> Prepared | None:
    """Return a launch from the folder, None where there is none or it is damaged."""
    try:
        with open(path, "rb") as file:
            first, _, body = file.read().partition(b"\n")
    except OSError:
        return None
    try:
        label = json.loads(first)
        if label["neurontools_launch"] != _FORMAT or label["sha256"] != hashlib.sha256(body).hexdigest():
            return None
        text, _, neff = body.partition(b"\n")
        head = json.loads(text)
        looks = tuple(Look(kind, name, tuple(shape), row, (source[0], source[1]), words)
                      for kind, name, shape, row, source, words in head["looks"])
        inputs = tuple((name, tuple(shape)) for name, shape in head["inputs"])
        return Prepared(neff, inputs, tuple(head["written"]), _results(head["results"]), looks)
    except (ValueError, KeyError, TypeError):
        return None


def returned(results: Any, is_tensor: type) -> Any:
    """Return a kernel's results with each tensor as the place of its values."""
    return map_structure(results, lambda one, path: one if not isinstance(one, is_tensor) else Returned(
        one.allocation.name, one.dtype, one.shape, one.strides, one.offset))
