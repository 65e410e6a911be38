"""docs/libnrt.md: what the emulated runtime does, by function, status, variable and injected fault."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.runtime.failures import counters_of
from emulator.runtime.injection import INJECTIONS
from emulator.runtime.reached import REACHED
from emulator.runtime.variables import VARIABLES
from formats.cites import markdown
from neurontools.libnrt.functions import FUNCTIONS

__all__ = ["PATH", "files", "page"]

PATH = "docs/libnrt.md"


def files() -> dict[str, str]:
    """Return the page by its path."""
    return {PATH: page()}


def page() -> str:
    """Return the Markdown of the whole page."""
    return "\n".join([*_opening(), *_functions(), *_statuses(), *_variables(), *_injections()]) + "\n"


def _opening() -> Iterator[str]:
    missing = sum(bool(function.missing) for function in FUNCTIONS)
    yield from f"""<!-- Made by `python -m tools`; do not edit. -->
# The emulated runtime: libnrt.so.1, nrtpy

    pip install '.[nrt]'
    neurontools shim DIR
    cc program.c -I HEADERS -L DIR -lnrt && LD_LIBRARY_PATH=DIR ./program

`neurontools shim` compiles `libnrt.so.1` for the Python that runs it. Programs that are built against AWS's public
headers run unchanged; devices are emulated, words are executed as in `neurontools run`. `neurontools.nrt` has the names
of nrtpy over the same runtime; `PYTHONPATH=$(python -m neurontools.nrt)` makes `import nrtpy` that module.

Handles are numbers that are never followed: one that is unknown or gone gives NRT_INVALID_HANDLE. Calls may come from
any thread; executions of one logical core follow one another. An execution works on the bytes of the caller's tensors.
Lines of the log have the runtime's form: `neurontools err explain LOG...` reads them back, over many processes in one
timeline.

The instance is trn2.48xlarge unless NEURONTOOLS_INSTANCE_TYPE names another. NEURONTOOLS_CORE_LOCKS names a folder that
stands for the instance where several processes are to keep each other from their cores.

What is not as on a device: an execution starts with fresh SBUF, PSUM and scratchpads; the device addresses that a
program computes with are its own, those of `nrt_tensor_get_device_allocation_info` are the runtime's; a file for LNC 1
runs on one core of an LNC 2 instance unless a variable sets the LNC; ranks of collectives meet within one process only.

`nrt_async_sendrecv_*` moves tensors between programs over TCP; each logical core listens on the bootstrap port plus its
number, so that programs of one machine find each other.

`nrt_profile_start` and `nrt_profile_stop`, continuous profiling and `nrt_inspect_*` write NTFF of version 6, which
`neurontools ntff` reads: beside the emulator's own run every word and transfer has the same times. Nothing stands
before or after the compiler's words there, and the packets of a transfer share its engine's time evenly. A capture also
has the file (neff_*.neff) and the system trace (sys_trace.json); ntrace.pb, trace_info.pb, cpu_util.pb and host_mem.pb
have no published schema and are not written.

## Functions

{len(FUNCTIONS)} functions of the public headers are there; {missing} return the status that is given, and say so once
on standard error.
""".splitlines()


def _functions() -> Iterator[str]:
    yield "| header | function | |"
    yield "|---|---|---|"
    for function in FUNCTIONS:
        what = f"{function.status.name}: {function.missing}" if function.missing else "emulated"
        yield f"| {function.header} | `{function.name}` | {what} |"


def _statuses() -> Iterator[str]:
    yield "\n## Statuses, and how each comes about\n"
    yield "| status | call | how | known by |"
    yield "|---|---|---|---|"
    for row in REACHED:
        cite = markdown(row.cite, "reference")
        yield f"| {row.status.name} ({int(row.status)}) | `{row.call}` | {row.how} | {row.provenance}, {cite} |"


def _variables() -> Iterator[str]:
    yield "\n## Variables\n"
    yield "Honoured, without effect here (a line of the log says so), or removed from the runtime.\n"
    yield "| variable | here | what |"
    yield "|---|---|---|"
    for row in VARIABLES:
        yield f"| `{row.name}` | {row.effect} | {row.meaning} |"


def _injections() -> Iterator[str]:
    yield "\n## Injected faults\n"
    yield "`NEURONTOOLS_INJECT=KIND[@CORE][:COMPLETIONS]`, several with commas, or `Runtime.inject`; once each.\n"
    yield "| kind | status | counters below the core's stats |"
    yield "|---|---|---|"
    for each in INJECTIONS.values():
        counters = ", ".join(f"`{one}`" for one in counters_of(each.status))
        yield f"| `{each.kind}` | {each.status.name} ({int(each.status)}) | {counters} |"
