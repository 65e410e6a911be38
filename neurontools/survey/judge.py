"""One file of a survey: opened, its words decoded and encoded again, verified, and executed where that is wanted.

Whatever is wrong with a file is part of its record; nothing here raises for bad input.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from formats.errors import NeuronError

if TYPE_CHECKING:
    from formats.neff import Neff
    from formats.neff.coverage import Coverage

__all__ = ["Options", "judge", "unread"]

_SHOWN_PROBLEMS = 20


class Options(NamedTuple):
    """How files are judged: executed or not, with what seed, and at most how many bytes and completions."""

    execute: bool = False
    seed: int = 0
    max_bytes: int = 2 << 30
    max_steps: int = 2_000_000


def judge(path: str, options: Options) -> dict[str, Any]:
    """Return the record of one file: plain data, the same keys for every file."""
    record = unread(path)
    try:
        record["bytes"] = Path(path).stat().st_size
        neff = _open(path)
        record.update(_identity(neff))
        record["words"] = _words(neff)
        problems = neff.verify()
        record["problems"] = [f"{one.where}: {one.message}" for one in problems if one.severity == "error"]
        record["problem_count"] = len(record["problems"])
        record["problems"] = record["problems"][:_SHOWN_PROBLEMS]
        record["executed"] = _execute(neff, options) if options.execute else None
    except NeuronError as error:
        record["error"] = " ".join(str(error).split())
    except OSError as error:
        record["error"] = f"{path}: {(error.strerror or str(error)).lower()}"
    except MemoryError:
        record["error"] = f"{path}: not enough memory for this file"
    return record


def unread(path: str, error: str | None = None) -> dict[str, Any]:
    """Return the record of a file of which nothing is known but what went wrong."""
    return {
        "path": path,
        "bytes": None,
        "compiler": None,
        "checked": None,
        "target": None,
        "lnc": None,
        "dialect": None,
        "words": None,
        "problem_count": 0,
        "problems": [],
        "executed": None,
        "error": error,
    }


def _open(path: str) -> Neff:
    from formats.neff import open_neff

    return open_neff(path)


def _identity(neff: Neff) -> dict[str, Any]:
    from formats.neff.compilers import checked_compiler, is_own

    version = neff.info.tool_version if neff.info is not None else None
    dialects = {graph.dialect for graph in neff.subgraphs}
    how = "checked" if checked_compiler(neff) is not None else "own" if is_own(version) else "unchecked"
    return {
        "compiler": version or None,
        "checked": how,
        "target": neff.target.name,
        "lnc": neff.lnc,
        "dialect": "extended" if "extended" in dialects else "neuron",
    }


def _words(neff: Neff) -> dict[str, Any]:
    from formats.neff.coverage import coverage

    found: Coverage = coverage(neff)
    tables = {
        name: {key: asdict(one) for key, one in getattr(found, name).items()}
        for name in ("unknown", "inexact", "inconsistent", "unnamed")
    }
    counts = {name: getattr(found, name) for name in ("words", "decoded", "reencoded", "consistent")}
    return {**counts, "opcodes": dict(found.names.most_common()), **tables}


def _execute(neff: Neff, options: Options) -> dict[str, Any]:
    """Return how an execution ended; inputs are random numbers between -1 and 1, integers are zero.

    Files that need more memory than allowed are left out, and say so.
    """
    from formats.neff.memory import device_memory

    # Microcode and rings take nothing here; inputs and outputs stand in the host's arrays too.
    taken = {one.name: one.bytes for one in device_memory(neff)}
    need = taken["Model Constants"] + 2 * taken["Tensors"] + taken["Shared Scratchpad"] + taken["Scratchpad"]
    if need > options.max_bytes:
        return _ended("skipped", f"needs {need:,} bytes of device memory, {options.max_bytes:,} allowed")
    from neurontools.uninterrupted import import_numpy

    import_numpy()

    from emulator.errors import EmulatorError
    from emulator.runtime import run
    from formats.errors import FormatError

    try:
        result = run(neff, _inputs(neff, options.seed), seed=options.seed, timing=False, max_steps=options.max_steps)
    except (EmulatorError, FormatError) as error:
        return _ended("refused", " ".join(str(error).split()))
    if result.fault is not None:
        return _ended("fault", result.fault.message, result)
    if result.hang is not None:
        return _ended("unfinished" if "limit" in result.hang.reason else "hang", result.hang.reason, result)
    return _ended("finished", None, result)


def _ended(how: str, reason: str | None, result: Any = None) -> dict[str, Any]:
    return {
        "how": how,
        "reason": reason,
        "instructions": result.stats.instructions if result is not None else 0,
        "transfers": result.stats.transfers if result is not None else 0,
        "seconds": round(result.stats.seconds, 3) if result is not None else 0.0,
    }


def _inputs(neff: Neff, seed: int) -> dict[str, Any]:
    import numpy as np

    from emulator.dtypes import numpy_dtype
    from formats.dtypes import Dtype

    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {}
    for tensor in neff.inputs:
        dtype = numpy_dtype(Dtype.from_numpy_name(tensor.dtype))
        if dtype.kind in "iub":
            arrays[tensor.name] = np.zeros(tensor.shape, dtype)
        else:
            arrays[tensor.name] = (rng.random(tensor.shape, np.float32) * 2 - 1).astype(dtype)
    return arrays
