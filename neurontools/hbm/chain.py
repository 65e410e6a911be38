"""A chain of models as a file says it: tensors with their places, steps in order. TOML, or JSON of the same shape.

[[tensor]]
name = "x"
size = "4MiB"
place = "cpu"                       # or "device"

[[step]]
model = "encoder"
inputs = ["x"]
outputs = [{ name = "y", size = "1MiB" }]

[[step]]
host = ["y"]                        # the program looks at y
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import typer

from formats.errors import FormatError, NotFoundError
from formats.named_tuple import NamedTuple
from neurontools.command.files import open_neff_file, read_text
from neurontools.memory.machine import parse_bytes

__all__ = ["Chain", "Step", "read_chain"]

_MOST = 10_000
_PLACES = ("cpu", "device")


class Step(NamedTuple):
    """One step: a model with what it reads and makes, or (without a model) tensors that the host reads."""

    model: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Chain(NamedTuple):
    """A whole chain: bytes of every tensor, places of those that are there from the beginning, steps."""

    sizes: dict[str, int]
    places: dict[str, str]
    steps: tuple[Step, ...]


def read_chain(path: Path) -> Chain:
    """Return the chain in a file; FormatError names the step and the field that is wrong."""
    where = str(path)
    text = read_text(path)
    try:
        found: Any = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not {'JSON' if path.suffix == '.json' else 'TOML'}: {error}", path=where) from None
    root = _object(found, where, "chain", ("tensor", "step"))
    sizes: dict[str, int] = {}
    places: dict[str, str] = {}
    for number, one in enumerate(_list(root.get("tensor", []), where, "tensor"), 1):
        field = f"tensor {number}"
        entry = _object(one, where, field, ("name", "size", "place"))
        name = _text(entry.get("name"), where, field)
        if name in sizes:
            raise FormatError(f"{name!r} is there twice", path=where, field=field)
        sizes[name] = _size(entry.get("size"), where, field)
        places[name] = entry.get("place", "cpu")
        if places[name] not in _PLACES:
            raise FormatError(
                "unknown place", path=where, field=field, expected="cpu or device", got=repr(places[name])[:40]
            )
    known = set(places)
    steps = [_step(one, f"step {number}", path, sizes, known)
             for number, one in enumerate(_list(root.get("step", []), where, "step"), 1)]  # fmt: skip
    if not steps:
        raise FormatError("a chain without a step", path=where)
    return Chain(sizes, places, tuple(steps))


def _step(one: Any, field: str, path: Path, sizes: dict[str, int], known: set[str]) -> Step:
    where = str(path)
    looks = isinstance(one, dict) and "host" in one
    entry = _object(one, where, field, ("host",) if looks else ("model", "neff", "inputs", "outputs"))
    if looks:
        inputs = tuple(_text(name, where, field) for name in _list(entry["host"], where, field))
        outputs: list[str] = []
        model = ""
    else:
        names = [_text(entry[key], where, field) for key in ("model", "neff") if key in entry]
        model = names[0] if names else _text(None, where, field)
        inputs = tuple(_text(name, where, field) for name in _list(entry.get("inputs", []), where, field))
        outputs = []
        of_file = _of_file(path.parent / entry["neff"]) if "neff" in entry else []
        for number, each in enumerate(_list(entry.get("outputs", []), where, field)):
            row = _object({"name": each} if isinstance(each, str) else each, where, field, ("name", "size"))
            name = _text(row.get("name"), where, field)
            given = of_file[number] if "size" not in row and number < len(of_file) else None
            nbytes = given if given is not None else _size(row.get("size"), where, field)
            if sizes.setdefault(name, nbytes) != nbytes:
                raise FormatError(
                    f"{name!r} had {sizes[name]:,} bytes before", path=where, field=field, got=f"{nbytes:,}"
                )
            outputs.append(name)
    missing = next((name for name in inputs if name not in known), None)
    if missing is not None:
        raise NotFoundError(f"{where}: {field}: no tensor {missing!r} at that point")
    known |= set(outputs)
    return Step(model, inputs, tuple(outputs))


def _of_file(path: Path) -> list[int | None]:
    """Return the bytes of a file's outputs in call order, None where the file does not say."""
    neff = open_neff_file(path)
    variables = neff.subgraphs[0].variables
    return [variables[one.name].size if one.name in variables else None for one in neff.outputs]


def _object(value: Any, where: str, field: str, keys: tuple[str, ...]) -> dict[str, Any]:
    strange = next((key for key in value if key not in keys), None) if isinstance(value, dict) else "no table"
    if strange is not None:
        raise FormatError(
            "unknown key", path=where, field=field, expected=f"one of {', '.join(keys)}", got=str(strange)[:60]
        )
    return dict(value)


def _list(value: Any, where: str, field: str) -> list[Any]:
    if not isinstance(value, list) or len(value) > _MOST:
        raise FormatError("not an array", path=where, field=field, expected=f"at most {_MOST:,} items")
    return value


def _text(value: Any, where: str, field: str) -> str:
    if not isinstance(value, str) or not value:
        raise FormatError("not a name", path=where, field=field, got=repr(value)[:60])
    return value


def _size(value: Any, where: str, field: str) -> int:
    try:
        found = value if isinstance(value, int) and not isinstance(value, bool) else parse_bytes(str(value))
    except typer.BadParameter as error:
        raise FormatError(error.message, path=where, field=field) from None
    if found < 0:
        raise FormatError("not a size", path=where, field=field, got=found)
    return found
