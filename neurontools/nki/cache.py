"""Files that kernels were built into, kept for the next launch of the same kernel on arrays of the same shapes.

`NEURONTOOLS_LAUNCH_CACHE` decides: unset, launches are kept in memory; a folder keeps them for other processes too;
"0" or "off" keeps nothing.  `neurontools.nki.cache_key` says what makes two launches the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neff.fields import Fields, load
from neurontools.builder.trace import Source
from neurontools.nki.arguments import map_structure
from neurontools.nki.dtype import NAMES, DType, dtype_of
from neurontools.nki.switches import switch

if TYPE_CHECKING:
    from formats.neff import Neff

__all__ = [
    "LaunchCache",
    "Look",
    "Prepared",
    "Returned",
    "clear",
    "find",
    "is_on",
    "keep",
    "opened",
    "returned",
    "statistics",
]

VARIABLE = "NEURONTOOLS_LAUNCH_CACHE"
# of the copies in memory; a folder is bounded by whoever owns it
_MOST_ENTRIES, _MOST_BYTES = 128, 256 << 20
# of files that stay open when nobody has them: to open one, and to decode it, takes longer than to find it
_MOST_OPEN, _LARGEST_OPEN = 8, 250_000
# raised when the file's layout changes: files of another number count as absent
_FORMAT = 2
_DEEPEST = 64  # levels of results


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

    `neff` is the file, open where it was just built: its bytes are only made where something keeps them.
    `inputs` are name and shape of each input; `written` the places of those that the kernel writes; `printed` the texts
    that tracing it printed.
    """

    neff: Neff | bytes
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    written: tuple[int, ...]
    results: Any
    looks: tuple[Look, ...]
    printed: tuple[str, ...] = ()


class LaunchCache:
    """Prepared launches by key, the least recently used leaving first; `hits` and `misses` count what was asked for."""

    def __init__(self) -> None:
        self.hits = self.misses = 0
        self._held: OrderedDict[str, Prepared] = OrderedDict()
        self._open: WeakValueDictionary[str, Neff] = WeakValueDictionary()
        self._left_open: OrderedDict[str, Neff] = OrderedDict()
        self._bytes = 0

    def find(self, key: str | None) -> Prepared | None:
        """Return the launch of a key, from memory or from the folder."""
        found = None
        setting = _setting()
        if key is not None and setting is not None:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
            elif setting:
                found = _read(os.path.join(setting, f"{key}.launch"))
                if found is not None:
                    self._hold(key, found)
        self.hits += found is not None
        self.misses += found is None
        # a list is its caller's alone
        return found if found is None else found._replace(results=_copied(found.results))

    def opened(self, key: str, launch: Prepared) -> Neff:
        """Return the file of a launch, which is only opened where nobody has it open; the last small ones stay so."""
        from formats.neff import open_neff  # deferred: start-up

        found = self._open.get(key)
        if found is None:
            found = self._open[key] = open_neff(launch.neff)
            if _size(launch) <= _LARGEST_OPEN:  # not one that was just built, which holds its traces
                self._left_open[key] = found
                if len(self._left_open) > _MOST_OPEN:
                    self._left_open.popitem(last=False)
        return found

    def keep(self, key: str | None, launch: Prepared, opened: Neff | None = None) -> None:
        """Keep a launch, unless its results hold objects that another launch must not share; `opened` is its file."""
        setting = _setting()
        if key is None or setting is None or not _plain(launch.results, set()):
            return
        # an open one holds the traces that it was built from
        whole = launch.neff if isinstance(launch.neff, bytes) else launch.neff.to_bytes()
        launch = launch._replace(neff=whole, results=_copied(launch.results))
        self._hold(key, launch)
        if opened is not None:
            self._open[key] = opened
        if setting:
            _write(setting, key, launch, whole)

    def clear(self) -> None:
        """Forget what is in memory."""
        self._held.clear()
        self._open.clear()
        self._left_open.clear()
        self._bytes = self.hits = self.misses = 0

    def _hold(self, key: str, launch: Prepared) -> None:
        size = _size(launch)
        if size > _MOST_BYTES:
            return
        before = self._held.pop(key, None)
        self._bytes += size - (0 if before is None else _size(before))
        self._held[key] = launch
        while len(self._held) > _MOST_ENTRIES or self._bytes > _MOST_BYTES:
            _, oldest = self._held.popitem(last=False)
            self._bytes -= _size(oldest)


def _size(launch: Prepared) -> int:
    """Return the bytes of a launch's file; one that is kept has them."""
    return len(launch.neff) if isinstance(launch.neff, bytes) else 0


_cache = LaunchCache()
find, keep, opened, clear = _cache.find, _cache.keep, _cache.opened, _cache.clear


def _setting() -> str | None:
    """Return the folder that keeps launches, "" where memory does alone, None where nothing does."""
    setting = switch(VARIABLE)
    return None if setting.lower() in ("0", "off") else setting


def is_on() -> bool:
    """Return whether anything is kept."""
    return _setting() is not None


def statistics() -> tuple[int, int]:
    """Return how many launches found a file ready, and how many did not."""
    return _cache.hits, _cache.misses


def _plain(results: Any, seen: set[int]) -> bool:
    """Return whether results are tensors and constants in tuples, lists and dictionaries by name, each list once."""
    if isinstance(results, Returned) or results is None or type(results) in (bool, int, float, str):
        return True
    if type(results) not in (tuple, list, dict) or (type(results) is not tuple and id(results) in seen):
        return False
    seen.add(id(results))
    if type(results) is not dict:
        return all(_plain(one, seen) for one in results)
    return all(type(name) is str and _plain(one, seen) for name, one in results.items())


def _copied(results: Any) -> Any:
    """Return results in lists and dictionaries of their own, for somebody who may change these."""
    kind = type(results)
    if kind is dict:
        return {name: _copied(one) for name, one in results.items()}
    return results if kind not in (tuple, list) else kind(map(_copied, results))


def _write(folder: str, key: str, launch: Prepared, neff: bytes) -> None:
    """Write a launch to the folder; a folder that cannot be written is none."""
    from formats.whole_files import write_beside  # deferred: start-up

    head = {"inputs": launch.inputs, "written": launch.written, "looks": launch.looks, "printed": launch.printed,
            "results": _text(launch.results)}  # fmt: skip
    body = json.dumps(head).encode() + b"\n" + neff
    first = json.dumps({"neurontools_launch": _FORMAT, "sha256": hashlib.sha256(body).hexdigest()}).encode()
    try:
        os.makedirs(folder, exist_ok=True)
        write_beside(os.path.join(folder, f"{key}.launch"), first + b"\n" + body)
    except (OSError, FormatError):
        return


def _text(results: Any) -> Any:
    if isinstance(results, Returned):
        return {"tensor": [results.name, str(results.dtype), results.shape, results.strides, results.offset]}
    if isinstance(results, dict):
        return {"dict": [{"name": name, **_text(one)} for name, one in results.items()]}
    kind = next((one for one in (tuple, list) if isinstance(results, one)), None)
    return {"value": results} if kind is None else {kind.__name__: [_text(one) for one in results]}


def _read(path: str) -> Prepared | None:
    """Return a launch from the folder, None where there is none or it is damaged."""
    try:
        with open(path, "rb") as file:
            first, _, body = file.read().partition(b"\n")
        label = load(first, path)
        if label.integer("neurontools_launch") != _FORMAT or label.text("sha256") != hashlib.sha256(body).hexdigest():
            return None
        text, _, neff = body.partition(b"\n")
        return _prepared(load(text, path), neff)
    except (OSError, FormatError):
        return None


def _prepared(head: Fields, neff: bytes) -> Prepared:
    """Return a launch; FormatError for a value of another kind, and for one that does not fit the file it is of."""
    from formats.neff import open_neff  # deferred: start-up

    opened = open_neff(neff)
    shapes = {one.name: one.shape for one in opened.inputs}
    sizes = {one.name: one.nbytes for one in opened.outputs}
    inputs = []
    for entry in head.array("inputs"):
        name, shape = _items(entry, 2, head)
        if not isinstance(name, str) or prod(_extents(shape, head)) != prod(shapes.get(name, (-1,))):
            raise head.fail("inputs", "the inputs of the file")
        inputs.append((name, _extents(shape, head)))
    looks = []
    for entry in head.array("looks"):
        kind, name, shape, row, source, words = _items(entry, 6, head)
        file, line = _items(source, 2, head)
        texts = all(isinstance(one, str) for one in (kind, name, file, words))
        numbers = type(line) is int and (row is None or (type(row) is int and 0 <= row < _extents(shape, head)[0]))
        if not texts or not numbers or name not in sizes:
            raise head.fail("looks", "outputs to look at")
        looks.append(Look(kind, name, _extents(shape, head), row, (file, line), words))
    written = head.integers("written")
    if any(not 0 <= place < len(inputs) or inputs[place][0] not in sizes for place in written):
        raise head.fail("written", "places of inputs")
    printed = head.array("printed")
    if not all(isinstance(one, str) for one in printed):
        raise head.fail("printed", "texts")
    results = _results(head.object("results"), sizes, 0)
    return Prepared(neff, tuple(inputs), written, results, tuple(looks), tuple(printed))


def _items(value: Any, count: int, head: Fields) -> list[Any]:
    if not isinstance(value, list) or len(value) != count:
        raise FormatError("damaged launch", path=head.where, expected=f"a list of {count}")
    return value


def _extents(value: Any, head: Fields, lowest: int = 0) -> tuple[int, ...]:
    if (
        not isinstance(value, list)
        or len(value) > 32
        or any(type(one) is not int or not lowest <= one < 1 << 63 for one in value)
    ):
        raise FormatError("damaged launch", path=head.where, expected="extents of an array")
    return tuple(value)


def _results(text: Fields, sizes: Mapping[str, int], depth: int) -> Any:
    """Return results: tensors inside of the outputs that they are of, constants, and what holds those."""
    if depth > _DEEPEST:
        raise text.fail("tuple", "fewer levels")
    for kind in (tuple, list):
        if kind.__name__ in text:
            return kind(_results(one, sizes, depth + 1) for one in text.objects(kind.__name__))
    if "dict" in text:
        return {one.text("name"): _results(one, sizes, depth + 1) for one in text.objects("dict")}
    if "tensor" not in text:
        value = text.raw.get("value")
        if value is not None and type(value) not in (bool, int, float, str):
            raise text.fail("value", "a constant")
        return value
    name, dtype, shape, strides, offset = _items(text.raw["tensor"], 5, text)
    shape, strides = _extents(shape, text), _extents(strides, text, -1 << 62)
    known = dtype_of(dtype) if isinstance(dtype, str) and dtype in NAMES else None
    if known is None or type(offset) is not int or len(shape) != len(strides) or name not in sizes:
        raise text.fail("tensor", "elements of an output")
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)] if all(shape) else []
    low = offset + sum(step for step in reach if step < 0)
    high = offset + sum(step for step in reach if step > 0)
    if low < 0 or (high + bool(prod(shape))) * known.numpy.itemsize > sizes[name]:
        raise text.fail("tensor", "elements inside of its output")
    return Returned(name, known, shape, strides, offset)


def returned(results: Any, is_tensor: type[Any]) -> Any:
    """Return a kernel's results with each tensor as the place of its values."""

    def place(one: Any, path: Any) -> Any:
        return (
            one
            if not isinstance(one, is_tensor)
            else Returned(one.allocation.name, one.dtype, one.shape, one.strides, one.offset)
        )

    return map_structure(results, place)
