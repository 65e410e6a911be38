"""Memories of a core dump: what is there, and values in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from formats.errors import NotFoundError
from neurontools.render.core import plain
from neurontools.render.table import bytes_text, table

if TYPE_CHECKING:
    import numpy as np

    from emulator.session import Examined, TensorValue
    from formats.core import Core

__all__ = ["Found", "listing", "listing_lines", "read", "value_lines", "values"]

_MOST = 100_000  # values that JSON gets


class Found(NamedTuple):
    """Values at a place: `value` is what the debugger's `x` or `print` gives."""

    place: str
    value: Examined | TensorValue

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """Return the values."""
        value: Any = self.value
        found: np.ndarray[Any, Any] = value.array if hasattr(value, "array") else value.values
        return found


def listing(core: Core) -> dict[str, Any]:
    """Return memories, allocations and tensors with how much of each is written and stored."""
    return {
        "memories": [plain(window) for window in core.windows],
        "allocations": [plain(allocation) for allocation in core.allocations],
        "tensors": [plain(tensor) for tensor in core.tensors],
    }


def listing_lines(data: dict[str, Any]) -> list[str]:
    """Return `core memory` for people."""
    rows = [
        [m["space"], m["core"], m["engine"] or "-", hex(m["base"]), bytes_text(m["rows"] * m["row_bytes"]),
         m["written"], m["stored"]]
        for m in data["memories"]
    ]  # fmt: skip
    lines = table(("memory", "core", "engine", "address", "size", "written", "in the dump"), rows)
    kept = [[a["name"], hex(a["address"]), a["nbytes"], a["written"], a["stored"]] for a in data["allocations"]]
    if kept:
        lines += ["", *table(("in HBM", "address", "bytes", "written", "in the dump"), kept)]
    tensors = [
        [t["name"], t["kind"], t["space"] + ("" if t["core"] is None else f" nc{t['core']}"),
         f"{t['dtype'] or 'bytes'}{t['shape']}",
         hex(t["address"]) if t["space"] == "HBM" else f"{t['partition']}:{t['address']:#x}"]
        for t in data["tensors"]
    ]  # fmt: skip
    return [*lines, *(["", *table(("tensor", "kind", "in", "type", "address"), tensors)] if tensors else [])]


def read(core: Core, place: str, count: int, format: str) -> Found:
    """Return what stands at an address, or the elements of a tensor.

    Raises NotFoundError for places that do not exist and bytes that the dump does not hold, UsageError for text that
    means nothing.
    """
    from emulator.session import open_core_session
    from emulator.session.memory import parse_spot
    from emulator.session.names import parse_core

    session = open_core_session(core)
    chosen, rest = parse_core(place.strip())
    if chosen is not None:
        session.focus(chosen)
    if "[" not in place:
        try:
            spot = parse_spot(session.device, place.strip(), session.state().focus[0])
        except NotFoundError as error:
            raise NotFoundError(str(error).replace("`info memory`", "`core memory`")) from None
        if spot is not None:
            return Found(place, session.examine(place, count, format))
    return Found(place, session.tensor(rest))


def values(found: Found, output: Path | None) -> dict[str, Any]:
    """Return values for JSON; those that go to a file are not repeated."""
    from neurontools.render.session import plain as plain_result

    data = {"place": found.place, "output": output, **plain_result(found.value)}
    array = found.array
    key = "array" if "array" in data else "values"
    data.pop(key)
    many = output is not None or array.size > _MOST
    listed = None if many else plain_result(array)["values"]
    return {**data, "dtype": array.dtype.name, "shape": list(array.shape), "values": listed}


def value_lines(found: Found, output: Path | None) -> list[str]:
    """Return values for people."""
    from neurontools.render.session import text_of

    if output is not None:
        return [f"{output}: {found.array.dtype.name}{list(found.array.shape)}"]
    return list(text_of(found.value))
