"""What lies in a compile cache: its entries, what is wrong with each, and their removal.

Caches of AWS's compiler are read too: of their keys, which hash in a way that is not public, nothing is checked.
Source: compiler.md 5.5.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Literal

from formats.errors import FormatError, NeuronError, NotFoundError, UnsupportedError
from formats.named_tuple import NamedTuple
from neurontools.compiler.cache_keys import DEFAULT_ROOT, key_of

__all__ = ["Entry", "State", "cache_root", "entries", "problems", "remove", "unlock"]

State = Literal["complete", "locked", "incomplete", "left over"]
_OURS = "neuronxcc-neurontools-"
_MODULES = ("model.hlo_module.pb", "model.hlo.pb", "model.hlo_module.pb.gz")
_MOST = 64 << 20  # of a JSON file beside a module


class Entry(NamedTuple):
    """One folder of a cache: its key, the compiler that wrote it, its bytes, when it was written."""

    key: str
    compiler: str
    path: str
    state: State
    size: int
    modified: float

    def unlocked(self) -> Entry:
        """Return the entry as it will be without its locks."""
        return self._replace(state=_finished(Path(self.path))) if self.state == "locked" else self


def cache_root(given: Path | None) -> Path:
    """Return the cache that an option names, else NEURON_COMPILE_CACHE_URL, else the documented place."""
    text = str(given) if given is not None else os.environ.get("NEURON_COMPILE_CACHE_URL", "") or str(DEFAULT_ROOT)
    if text.startswith("s3:"):
        raise UnsupportedError(f"the cache {text} lies in S3; only folders are read")
    root = Path(text)
    if not root.exists():
        raise NotFoundError(f"{root}: no such cache")
    if not root.is_dir():
        raise FormatError("not a folder", path=text, field="--cache_dir")
    return root


def entries(root: Path) -> Iterator[Entry]:
    """Yield every entry of all compiler versions by name, and folders that an interrupted compilation left."""
    for place in sorted((*root.glob("neuronxcc-*/MODULE_*"), *root.glob("neuronxcc-*/.new-*"))):
        if place.is_symlink() or not place.is_dir():
            continue
        files = [one for one in place.rglob("*") if one.is_file() and not one.is_symlink()]
        written = max((one.stat().st_mtime for one in files), default=place.stat().st_mtime)
        size = sum(one.stat().st_size for one in files)
        yield Entry(place.name, place.parent.name, str(place), _state(place), size, written)


def _state(place: Path) -> State:
    if place.name.startswith("."):
        return "left over"
    if _locks(place):
        return "locked"
    return _finished(place)


def _finished(place: Path) -> State:
    return "complete" if (place / "model.done").exists() else "incomplete"


def _locks(place: Path) -> list[Path]:
    return sorted(place.glob("*.lock"))


def problems(entry: Entry) -> Iterator[str]:
    """Yield what is wrong with an entry: files that are missing, cannot be read, or are not what they were."""
    place = Path(entry.path)
    if entry.state == "left over":
        yield "left over from a compilation that did not end"
        return
    for lock in _locks(place):
        yield f"{lock.name}: a compilation is under way, or left its lock behind"
    if not (place / "model.done").exists():
        yield "model.done: missing, the entry is not complete"
    module = next((place / one for one in _MODULES if (place / one).exists()), None)
    if module is None:
        yield "model.hlo_module.pb: missing"
    elif module.suffix == ".pb":
        yield from _module(module)
    yield from _neff(place / "model.neff")
    flags = yield from _json(place / "compile_flags.json")
    if entry.compiler.startswith(_OURS):
        told = yield from _json(place / "report.json")
        neff = place / "model.neff"
        if isinstance(told, dict) and neff.is_file() and told.get("sha256") != _hash(neff):
            yield "model.neff: not the file that was written, its hash differs"
        if isinstance(flags, dict) and module is not None and key_of(module.read_bytes(), flags) != entry.key:
            yield f"{module.name}, compile_flags.json: not those of the key, which hashes both"


def _module(path: Path) -> Iterator[str]:
    from formats.hlo.verify import need_valid  # deferred: start-up
    from neurontools.hlo.opening import open_module  # deferred: start-up

    try:
        need_valid(open_module(path))
    except NeuronError as error:
        yield f"{path.name}: {_short(error, path)}"


def _neff(path: Path) -> Iterator[str]:
    from formats.neff import open_neff  # deferred: start-up

    if not path.exists():
        yield "model.neff: missing"
        return
    try:
        wrong = [one for one in open_neff(path).verify() if one.severity == "error"]
    except NeuronError as error:
        yield f"{path.name}: {_short(error, path)}"
        return
    yield from (f"{path.name}: {one.message}" for one in wrong[:1])


def _json(path: Path) -> Generator[str, None, Any]:
    """Yield what is wrong with a JSON file, and return what it holds."""
    if not path.exists():
        yield f"{path.name}: missing"
        return None
    if path.stat().st_size > _MOST:
        yield f"{path.name}: {path.stat().st_size} bytes, at most {_MOST} were expected"
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        yield f"{path.name}: no JSON"
        return None


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _short(error: NeuronError, path: Path) -> str:
    return str(error).removeprefix(f"{path}: ")


def unlock(entry: Entry) -> None:
    """Delete the locks of an entry."""
    for lock in _locks(Path(entry.path)):
        lock.unlink(missing_ok=True)


def remove(entry: Entry) -> None:
    """Delete an entry; model.done goes first, so that an interrupted removal leaves no entry that counts."""
    (Path(entry.path) / "model.done").unlink(missing_ok=True)
    shutil.rmtree(entry.path)
