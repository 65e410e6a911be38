"""What the Neuron runtime would say when it loads a NEFF: the checks in its order, each with its source.

A check passes, fails with the status that the runtime returns, or cannot be decided from the file alone ("open"); the
first failure is the prediction. Sources: runtime.md 2, 3, 11, formats.md 2, 3, AWS Neuron documentation by page.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from formats.errors import FormatError, NeuronError, NotFoundError
from formats.named_tuple import NamedTuple
from formats.neff_versions import NEFF_VERSIONS
from formats.neuron_core import DMA_RINGS, WORD
from formats.nrt.status import NrtStatus as S
from formats.numerals import version_numbers
from formats.targets import Target
from neurontools.command.results import LEFT_OUT
from neurontools.text.table import count

if TYPE_CHECKING:
    from formats.neff import Neff
    from formats.neff.memory import Category
    from formats.ntff import Ntff

__all__ = ["Check", "LoadPrediction", "Machine", "parse_version", "predict"]

_RELEASE_NOTES = "AWS Neuron documentation, runtime release notes, NEFF support table"
_OPERATORS = "AWS Neuron documentation, nrt-troubleshoot: unsupported hardware operator code"
_INSTANCES, _INSTANCES_SINCE = 512, (2, 31, 24, 0)
_SHOWN = 5


class Machine(NamedTuple):
    """Where the file is to be loaded: chip, physical cores per logical core, free logical cores, bytes in use.

    `runtime` is a version or None for the newest; `validate_hash` is NEURON_RT_VALIDATE_HASH.
    """

    target: Target
    lnc: int
    cores: int | None = None
    used_bytes: int = 0
    runtime: tuple[int, ...] | None = None
    validate_hash: bool = False


class MachineRow(NamedTuple):
    """A machine by names."""

    target: str
    lnc: int
    cores: int | None
    used_bytes: int
    runtime: str | None
    validate_hash: bool


class Check(NamedTuple):
    """One thing the runtime looks at; `status` is what a failure returns."""

    name: str
    outcome: Literal["pass", "fail", "open"]
    status: str | None
    message: str
    provenance: str
    cite: str


class MemoryRow(NamedTuple):
    """One category of the device memory that the file takes, beside what a capture's runtime recorded of it."""

    name: str
    bytes: int
    provenance: str
    cite: str
    captured: Annotated[int | None, LEFT_OUT, "bytes in the capture"] = None


class LoadPrediction(NamedTuple):
    """The result of `neff load-check`: the status with the reason for a failure, every check, the device memory."""

    status: str
    code: int
    reason: str | None
    machine: MachineRow
    checks: list[Check]
    memory: list[MemoryRow]
    memory_total: int
    memory_limit: int | None


def parse_version(text: str) -> tuple[int, ...]:
    """Return "2.31.24.0" as numbers; a FormatError says what is not a version."""
    found = version_numbers(text)
    if found is None:
        raise FormatError("not a version", expected="numbers and dots, such as 2.31.24.0", got=text)
    return found


def predict(neff: Neff, machine: Machine, capture: Ntff | None = None) -> LoadPrediction:
    """Return what the runtime of a machine would say to a file, memory beside that of a capture."""
    checks = [*_header(neff, machine), *_content(neff, machine)]
    failed = next((check for check in checks if check.outcome == "fail"), None)
    status = S.NRT_SUCCESS if failed is None or failed.status is None else S[failed.status]
    runtime = None if machine.runtime is None else _dotted(machine.runtime)
    memory = _memory(neff, machine, capture)
    return LoadPrediction(
        status.name,
        int(status),
        None if failed is None else failed.message,
        MachineRow(machine.target.name, machine.lnc, machine.cores, machine.used_bytes, runtime, machine.validate_hash),
        checks,
        memory,
        sum(one.bytes for one in memory),
        _limit(machine),
    )


def _header(neff: Neff, machine: Machine) -> Iterator[Check]:
    header = neff.header
    missing = header.header_size + header.data_size - neff.size
    yield _verdict(
        "header",
        missing <= 0,
        S.NRT_INVALID,
        "header and file agree on the size",
        f"the file is {missing:,} bytes shorter than its header says",
        "inferred",
        "public header nrt_status.h: NRT_INVALID is an invalid NEFF",
    )
    yield _version(neff, machine)
    if machine.validate_hash:
        yield _hash(neff)
    unknown = [name for name in header.features if name.startswith("unknown-")]
    if unknown:
        bits = ", ".join(name.removeprefix("unknown-") for name in unknown)
        message = f"it is not known which runtimes support feature bit {bits}"
        yield Check("features", "open", None, message, "observed", "formats.md 2.4")
    else:
        message = "features: " + (", ".join(header.features) or "none")
        yield Check("features", "pass", None, message, "inferred", "formats.md 2.4")


def _version(neff: Neff, machine: Machine) -> Check:
    version = neff.header.neff_version
    text = _dotted(version)
    since = NEFF_VERSIONS.get(version)
    if since is None:
        known = ", ".join(map(_dotted, NEFF_VERSIONS))
        message = f"NEFF version {text} is none that a documented runtime loads ({known})"
        return _failed("version", S.NRT_UNSUPPORTED_NEFF_VERSION, message, "documented", _RELEASE_NOTES)
    return _verdict(
        "version",
        machine.runtime is None or machine.runtime >= since,
        S.NRT_UNSUPPORTED_NEFF_VERSION,
        f"NEFF version {text} is loaded by runtimes since {_dotted(since)}",
        f"NEFF version {text} needs a runtime since {_dotted(since)}",
        "documented",
        _RELEASE_NOTES,
    )


def _hash(neff: Neff) -> Check:
    from formats.neff.hashing import matching_variant  # deferred: start-up

    try:
        variant = matching_variant(neff.header.hash, neff.archive.data())
    except FormatError as error:
        return _failed("hash", S.NRT_INVALID, str(error), "inferred", "formats.md 2.3")
    return _verdict(
        "hash",
        variant is not None,
        S.NRT_INVALID,
        f"hash fits the data ({variant})",
        "hash does not fit the data, and NEURON_RT_VALIDATE_HASH is set",
        "inferred",
        "formats.md 2.3",
    )


def _content(neff: Neff, machine: Machine) -> Iterator[Check]:
    try:
        problems = neff.verify()
        target = neff.target
        for graph in neff.subgraphs:
            _ = graph.definition  # read now, so that damage is reported here
    except NeuronError as error:
        # Nothing inside a broken archive can be looked at.
        yield _failed("content", S.NRT_INVALID, str(error), "documented", "public header nrt_status.h")
        return
    fits = target.generation == machine.target.generation
    yield _verdict(
        "target",
        fits,
        S.NRT_FAILURE,
        f"made for {target.generation} ({target.arch_code})",
        f"made for {target.generation} ({target.arch_code}), the chip is {machine.target.name} "
        f"({machine.target.generation})",
        "documented",
        "AWS Neuron documentation, nrtpy-troubleshooting: NRT_FAILURE; it prints code 6, which is "
        "NRT_HW_ERROR in nrt_status.h",
    )
    yield _verdict(
        "lnc",
        neff.lnc == machine.lnc,
        S.NRT_INVALID,
        f"LNC {neff.lnc} as configured",
        f"made for LNC {neff.lnc}, configured is {machine.lnc} (NEURON_LOGICAL_NC_CONFIG)",
        "inferred",
        "runtime.md 1.1, 2.2: compiler and runtime must agree on LNC; the status is not documented",
    )
    needed = max(1, neff.header.requested_tpb_count)
    free = machine.cores
    yield _verdict(
        "cores",
        free is None or needed <= free,
        S.NRT_LOAD_NOT_ENOUGH_NC,
        f"needs {count(needed, 'logical core')}",
        f"needs {count(needed, 'logical core')}, {free} free",
        "documented",
        "AWS Neuron documentation, nrt-troubleshoot",
    )
    # Both have checks of their own above.
    errors = [one for one in problems if one.severity == "error" and one.where not in ("header", "hash")]
    more = f" and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
    yield _verdict(
        "content",
        not errors,
        S.NRT_INVALID,
        "members, streams, variables and descriptors are consistent",
        "; ".join(f"{one.where}: {one.message}" for one in errors[:_SHOWN]) + more,
        "documented",
        "public header nrt_status.h: NRT_INVALID is an invalid NEFF, instruction or DMA descriptor",
    )
    yield from _words(neff)
    yield from _queues(neff, machine)
    yield _hbm(neff, machine)


def _words(neff: Neff) -> Iterator[Check]:
    from formats import isa  # deferred: start-up

    # Without our extension words, which share an opcode and have codes of their own.
    known = {cls.OPCODE for cls in isa.CLASSES if cls.CODE < 0}
    strange: dict[int, str] = {}
    extended = [graph.name for graph in neff.subgraphs if graph.dialect == "extended"]
    for graph in neff.subgraphs:
        for engine in graph.streams:
            try:
                # The first byte of each slot. The later slots of long words count too: an opcode that is unknown is
                # only reported as open.
                opcodes = set(graph.stream_bytes(engine)[::WORD])
            except FormatError:
                continue  # reported under "content"
            for code in opcodes - known:
                strange.setdefault(code, f"{graph.name}/{engine}")
    if extended:
        message = f"{', '.join(extended)}: extension words of neurontools, which no AWS runtime knows"
        yield _failed("instructions", S.NRT_INVALID, message, "ours", _OPERATORS)
    elif strange:
        names = ", ".join(f"0x{code:02x} ({place})" for code, place in sorted(strange.items())[:_SHOWN])
        message = f"opcodes that this toolkit does not know: {names}"
        yield Check("instructions", "open", None, message, "observed", _OPERATORS)
    else:
        yield Check("instructions", "pass", None, "every opcode is one of public files", "observed", "isa.md 6")


def _queues(neff: Neff, machine: Machine) -> Iterator[Check]:
    try:
        sets = {graph.name: len(graph.queues) for graph in neff.subgraphs}
        instances = sum(max(1, len(q.queue_instances)) for graph in neff.subgraphs for q in graph.queues.values())
    except FormatError:
        return  # reported under "content"
    name, most = max(sets.items(), key=lambda item: item[1], default=("", 0))
    yield _verdict(
        "queues",
        most <= DMA_RINGS,
        S.NRT_RESOURCE,
        f"{count(most, 'queue set')} on a core, {DMA_RINGS} rings on each DMA engine",
        f"{name} has {most} queue sets, a DMA engine has {DMA_RINGS} rings",
        "inferred",
        "runtime.md 1.1: 16 rings per DMA engine; the status is not documented",
    )
    old = machine.runtime is not None and machine.runtime < _INSTANCES_SINCE
    if instances > _INSTANCES:
        yield _verdict(
            "queue instances",
            not old,
            S.NRT_RESOURCE,
            f"{instances} queue-set instances",
            f"{instances} queue-set instances, runtimes before 2.31.24 take {_INSTANCES}",
            "documented",
            "runtime.md 2.1, runtime release notes",
        )


def _ledger(neff: Neff, machine: Machine) -> tuple[Category, ...]:
    from formats.neff.memory import device_memory  # deferred: start-up

    return device_memory(neff, machine.runtime)


def _memory(neff: Neff, machine: Machine, capture: Ntff | None) -> list[MemoryRow]:
    try:
        rows = [MemoryRow(*one) for one in _ledger(neff, machine)]
    except (FormatError, NotFoundError):
        rows = []
    if capture is None:
        return rows
    from neurontools.neff.captured_memory import captured_memory  # deferred: start-up

    taken = captured_memory(capture)
    rows = [one._replace(captured=taken.pop(one.name, 0)) for one in rows]
    cite = "in the capture only; not counted of a file"
    return rows + [MemoryRow(name, 0, "observed", cite, nbytes) for name, nbytes in taken.items()]


def _limit(machine: Machine) -> int | None:
    from emulator.arch import ARCHS  # deferred: start-up

    arch = ARCHS.get(machine.target.name)
    return None if arch is None else arch.hbm_bytes.whole


def _hbm(neff: Neff, machine: Machine) -> Check:
    limit = _limit(machine)
    cite = "runtime.md 3.1; formats.md 6.1; hardware.md 1.1"
    if limit is None:
        return Check("memory", "open", None, f"device memory of {machine.target.name} is not modelled", "ours", cite)
    try:
        ledger = _ledger(neff, machine)
    except (FormatError, NotFoundError) as error:
        return Check("memory", "open", None, f"cannot be counted: {error}", "ours", cite)
    total = sum(one.bytes for one in ledger)
    left = limit - machine.used_bytes
    largest = max(ledger, key=lambda one: one.bytes)
    return _verdict(
        "memory",
        total <= left,
        S.NRT_RESOURCE,
        f"takes {total:,} of {left:,} bytes of its HBM stack",
        f"takes {total:,} bytes, {left:,} are left of its HBM stack; most of it {largest.name} ({largest.bytes:,})",
        "inferred",
        cite,
    )


def _verdict(name: str, good: bool, status: S, passed: str, failed: str, provenance: str, cite: str) -> Check:
    if good:
        return Check(name, "pass", None, passed, provenance, cite)
    return _failed(name, status, failed, provenance, cite)


def _failed(name: str, status: S, message: str, provenance: str, cite: str) -> Check:
    return Check(name, "fail", status.name, message, provenance, cite)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
