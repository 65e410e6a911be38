"""The result of an execution as data and as lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from formats.debug_stream import is_printed
from neurontools.render.table import bytes_text, count, duration, table

if TYPE_CHECKING:
    from formats.neff import Neff
    from neurontools.run_options import Launch

__all__ = ["launch", "launch_line", "named_outputs", "notices", "printed", "printed_lines", "result", "result_lines",
           "trouble_lines"]  # fmt: skip

_ELEMENTS = 64  # of a printed tensor, in JSON


def named_outputs(run: Any) -> dict[str, Any]:
    """Return the output arrays by name, without those that only carry what the program prints."""
    return {name: array for name, array in run.outputs.items() if not is_printed(name)}


def result(run: Any) -> dict[str, Any]:
    """Return a run's result as plain data; arrays as type, shape and range, never element by element."""
    return {
        "time_ps": run.time_ps,
        "outputs": [array_summary(name, array) for name, array in named_outputs(run).items()],
        "fault": None if run.fault is None else fault(run.fault),
        "hang": None if run.hang is None else hang(run.hang),
        "stats": stats(run.stats),
        "prints": [printed(item) for item in run.prints],
    }


def printed(item: Any) -> dict[str, Any]:
    """Return one event of the debug stream as plain data, with at most the first elements of its values."""
    import numpy as np

    summary = array_summary(item.prefix, item.values)
    first = np.asarray(item.values).reshape(-1)[:_ELEMENTS].astype(np.float64)
    return {
        "number": item.number,
        "time_ps": item.time_ps,
        "core": item.core,
        "prefix": item.prefix,
        "values": [float(value) if np.isfinite(value) else str(value) for value in first],
        **{key: value for key, value in summary.items() if key not in ("name", "bytes")},
    }


def printed_lines(item: Any) -> Iterator[str]:
    """Return one event of the debug stream for people: when, where, and the values behind their prefix."""
    yield f"{duration(item.time_ps)} nc{item.core}: {item.prefix} {item.values}"


def result_lines(title: str, run: Any) -> Iterator[str]:
    """Return a run's result for people."""
    for item in run.prints:
        yield from printed_lines(item)
    yield f"{title}: {verdict(run)}"
    if run.fault is not None or run.hang is not None:
        yield from trouble_lines(run)
        return
    yield stats_line(run.stats)
    rows = [array_summary(name, array) for name, array in named_outputs(run).items()]
    yield ""
    yield from table(
        ["output", "type", "shape", "size", "min", "mean", "max", "not finite"],
        [
            [
                r["name"],
                r["dtype"],
                _shape(r["shape"]),
                bytes_text(r["bytes"]),
                _number(r["min"]),
                _number(r["mean"]),
                _number(r["max"]),
                r["nonfinite"],
            ]
            for r in rows
        ],
    )


def trouble_lines(run: Any) -> Iterator[str]:
    """Return why a run did not end, for people."""
    if run.fault is not None:
        yield from fault_lines(run.fault)
    if run.hang is not None:
        yield from run.hang.text().splitlines()


def verdict(run: Any) -> str:
    """Return how a run ended, in a few words."""
    when = f"after {duration(run.time_ps)} of device time"
    if run.fault is not None:
        return f"faulted {when}"
    return f"hung {when}" if run.hang is not None else f"done {when}"


def fault(item: Any) -> dict[str, Any]:
    """Return a fault as plain data; what does not apply is None."""
    return {
        "kind": item.kind,
        "message": item.message,
        "core": None if item.core < 0 else item.core,
        "engine": item.engine or None,
        "pc": None if item.pc < 0 else item.pc,
        "instruction": item.instruction_text or None,
        "source": source(item.source),
        "operand": item.operand,
        "space": item.space,
        "address": None if item.address is None else list(item.address),
        "expected": item.expected,
        "got": item.got,
        "time_ps": None if item.time_ps < 0 else item.time_ps,
        "status": {"name": item.status.name, "code": int(item.status)},
    }


def fault_lines(item: Any) -> Iterator[str]:
    """Return a fault for people: what, where, by which instruction, and what would have been right."""
    data = fault(item)
    rows = {
        "at": None if data["engine"] is None else f"core {data['core']} {data['engine']} pc {data['pc']}",
        "word": data["instruction"],
        "source": None if data["source"] is None else f"{data['source']['file']}:{data['source']['line']}",
        "operand": data["operand"],
        "range": None
        if data["address"] is None
        else f"{data['space'] or ''} 0x{data['address'][0]:x} to 0x{data['address'][1]:x}".strip(),
        "allowed": data["expected"],
        "found": data["got"],
        "status": f"{data['status']['name']} ({data['status']['code']}), what the Neuron runtime returns",
    }
    yield f"fault: {data['message']}"
    yield from (f"  {key.ljust(7)}  {value}" for key, value in rows.items() if value is not None)


def source(item: Any) -> dict[str, Any] | None:
    """Return a source location as plain data, None where the file is not known."""
    file = getattr(item, "file", None)
    return {"file": str(file), "line": getattr(item, "line", None)} if file else None


def hang(item: Any) -> dict[str, Any]:
    """Return a hang as plain data: every waiter, and who could have signalled it."""
    return {
        "text": item.text(),
        "waits": [_record(wait) for wait in item.waits],
        "cycles": [list(c) for c in item.cycles],
    }


def notices(items: Iterable[Any], neff: Neff | None = None) -> list[str]:
    """Return what the device remarked on, a line each, with the source line where the file has one."""
    return [_notice(item, neff) for item in items]


def _notice(item: Any, neff: Neff | None) -> str:
    where = f"core {item.core} {item.engine} pc {item.pc}"
    if neff is not None:
        graph = neff.subgraphs[item.core] if item.core < len(neff.subgraphs) else None
        found = None
        if graph is not None and item.engine in graph.streams and item.pc < len(graph.streams[item.engine]):
            found = neff.source_of(item.engine, graph.streams[item.engine].offsets[item.pc] // 64, item.core)
        data = source(found)
        if data is not None:
            where += f" ({data['file']}:{data['line']})"
    return f"{where}: {item.message}"


def launch(item: Launch) -> dict[str, Any]:
    """Return one kernel launch as plain data."""
    return {
        "kernel": item.kernel,
        "neff_bytes": len(item.neff),
        **result(item.result),
        "warnings": notices(item.result.warnings),
        "dump": item.dump,
    }


def launch_line(item: Launch) -> str:
    """Return one line on a kernel launch."""
    return f"{item.kernel}: {verdict(item.result)}"


def array_summary(name: str, array: Any) -> dict[str, Any]:
    """Return what an array holds: type, shape, range over its finite values, and how many are not finite."""
    import numpy as np

    values = np.asarray(array)
    wide = values.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    some = bool(finite.size)
    return {
        "name": name,
        "dtype": values.dtype.name,
        "shape": list(values.shape),
        "bytes": values.nbytes,
        "min": float(finite.min()) if some else None,
        "mean": float(finite.mean()) if some else None,
        "max": float(finite.max()) if some else None,
        "nonfinite": int(wide.size - finite.size),
    }


def stats(item: Any) -> dict[str, Any]:
    """Return the counts of a run as plain data; words by core and engine."""
    return {
        "instructions": item.instructions,
        "transfers": item.transfers,
        "dma_bytes": item.dma_bytes,
        "seconds": round(item.seconds, 6),
        "words": {f"{core}.{engine}": number for (core, engine), number in item.words.items()},
    }


def stats_line(item: Any) -> str:
    """Return the counts of a run in one line."""
    return (
        f"{count(item.instructions, 'instruction')}, {count(item.transfers, 'transfer')} of "
        f"{bytes_text(item.dma_bytes)} in all, emulated in {item.seconds:.3f} s"
    )


def _record(item: Any) -> dict[str, Any]:
    from neurontools.render.neff import fields

    data = fields(item)
    if "could_signal" in data:
        data["could_signal"] = [
            _record(one) if hasattr(one, "_fields") or hasattr(one, "__dataclass_fields__") else list(one)
            for one in data["could_signal"]
        ]
    return data


def _shape(shape: Any) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"
