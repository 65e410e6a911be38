"""One file of a survey: opened, its words decoded and encoded again, verified, and executed if that is wanted.

Whatever is wrong with a file is part of its record; nothing here raises for bad input.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from formats.errors import NeuronError
from formats.named_tuple import NamedTuple
from neurontools.neff.surveying.records import Example, Execution, FileRecord, WordCounts

if TYPE_CHECKING:
    import numpy.typing as npt

    from formats.neff import Neff

__all__ = ["Options", "judge"]

_SHOWN_PROBLEMS = 20


class Options(NamedTuple):
    """How files are judged: executed or not, with what seed, and at most how many bytes and completions."""

    execute: bool = False
    seed: int = 0
    max_bytes: int = 2 << 30
    max_steps: int = 2_000_000


def judge(path: str, options: Options) -> FileRecord:
    """Return the record of one file."""
    from formats.neff import open_neff  # deferred: start-up

    record = FileRecord(path)
    try:
        record.bytes = Path(path).stat().st_size
        neff = open_neff(path)
        _identify(record, neff)
        record.words = _words(neff)
        problems = [f"{one.where}: {one.message}" for one in neff.verify() if one.severity == "error"]
        record.problem_count = len(problems)
        record.problems = problems[:_SHOWN_PROBLEMS]
        record.executed = _execute(neff, options) if options.execute else None
    except NeuronError as error:
        record.error = " ".join(str(error).split())
    except OSError as error:
        record.error = f"{path}: {(error.strerror or str(error)).lower()}"
    except MemoryError:
        record.error = f"{path}: not enough memory for this file"
    return record


def _identify(record: FileRecord, neff: Neff) -> None:
    from formats.neff.compilers import how_checked  # deferred: start-up

    version = neff.info.tool_version if neff.info is not None else None
    dialects = {graph.dialect for graph in neff.subgraphs}
    how, target, lnc = how_checked(neff), neff.target.name, neff.lnc
    # All or nothing: where one of them is damaged, none is recorded.
    record.compiler, record.checked, record.target, record.lnc = version or None, how, target, lnc
    record.dialect = "extended" if "extended" in dialects else "neuron"


def _words(neff: Neff) -> WordCounts:
    from formats.neff.coverage import coverage  # deferred: start-up

    found = coverage(neff)
    unknown, inexact, inconsistent, unnamed = (
        {key: Example(one.count, one.place, one.raw) for key, one in table.items()}
        for table in (found.unknown, found.inexact, found.inconsistent, found.unnamed)
    )
    counts = found.words, found.decoded, found.reencoded, found.consistent
    return WordCounts(*counts, dict(found.names.most_common()), unknown, inexact, inconsistent, unnamed)


def _execute(neff: Neff, options: Options) -> Execution:
    """Return how an execution ended; inputs are random numbers between -1 and 1, integers are zero.

    Files that need more memory than allowed are left out, and say so.
    """
    from formats.neff.memory import device_memory, scratchpad_need  # deferred: start-up

    # Microcode and rings take no memory here; inputs and outputs are in arrays of the host too.
    taken = {one.name: one.bytes for one in device_memory(neff)}
    shared = sum(scratchpad_need(graph) for graph in neff.subgraphs)
    need = taken["Model Constants"] + 2 * taken["Tensors"] + shared + taken["Scratchpad"]
    if need > options.max_bytes:
        return Execution("skipped", f"needs {need:,} bytes of device memory, {options.max_bytes:,} allowed")
    from neurontools.command.uninterrupted import import_numpy  # deferred: start-up

    import_numpy()

    from emulator.runtime import run  # deferred: start-up

    try:
        result = run(neff, _inputs(neff, options.seed), seed=options.seed, timing=False, max_steps=options.max_steps)
    except NeuronError as error:
        return Execution("refused", " ".join(str(error).split()))
    counts = result.stats.instructions, result.stats.transfers, round(result.stats.seconds, 3)
    if result.fault is not None:
        return Execution("fault", result.fault.message, *counts)
    if result.hang is not None:
        return Execution("unfinished" if "limit" in result.hang.reason else "hang", result.hang.reason, *counts)
    return Execution("finished", None, *counts)


def _inputs(neff: Neff, seed: int) -> dict[str, npt.NDArray[Any]]:
    import numpy as np

    from emulator.dtypes import numpy_dtype  # deferred: start-up
    from formats.dtypes import Dtype  # deferred: start-up

    rng = np.random.default_rng(seed)
    arrays: dict[str, npt.NDArray[Any]] = {}
    for tensor in neff.inputs:
        dtype = numpy_dtype(Dtype.from_numpy_name(tensor.dtype))
        if dtype.kind in "iub":
            arrays[tensor.name] = np.zeros(tensor.shape, dtype)
        else:
            arrays[tensor.name] = (rng.random(tensor.shape, np.float32) * 2 - 1).astype(dtype)
    return arrays
