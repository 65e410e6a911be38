"""`neurontools mem plan`: whether models and tensors fit on an instance together, as the runtime would report it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.named_tuple import NamedTuple
from formats.nrt.memory import CATEGORIES
from formats.nrt.oom import table_file
from neurontools.command.exits import ExitStatus
from neurontools.command.files import need_folder, open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json, Quiet
from neurontools.command.output import report, write_whole
from neurontools.memory.machine import (
    Contiguous,
    InstanceName,
    MemoryMachine,
    PageSize,
    RuntimeVersion,
    machine_of,
    parse_bytes,
    scratchpad_text,
)
from neurontools.memory.plot import bar, legend
from neurontools.text.table import bytes_text

if TYPE_CHECKING:
    from emulator.runtime.memory import OutOfMemoryError, Stack
    from formats.neff import Neff

_PLACED = re.compile(r"(?:nc)?(\d{1,5}):(.+)", re.IGNORECASE)
_FIRST_MODEL = 1001  # ids as the documentation's table has them; the runtime's own are not documented


class StackUse(NamedTuple):
    """One HBM stack: bytes by category, in use and there, and the largest piece that is free."""

    device: int
    stack: int
    cores: list[int]
    categories: dict[str, int]
    used: int
    limit: int
    largest_gap: int


class FailedAllocation(NamedTuple):
    """What found no room: for which load or tensor, its bytes, what was free in all and in one piece."""

    what: str
    core: int
    usage: str
    bytes: int
    device: int
    stack: int
    free: int
    largest_gap: int
    fragmented: bool


class MemoryPlan(NamedTuple):
    """The result of `mem plan`; `log` is what the runtime prints, `tables` its tables by their files' names."""

    instance: str
    lnc: int
    scratchpad: str
    fits: bool
    failed: FailedAllocation | None
    stacks: list[StackUse]
    log: list[str]
    tables: dict[str, list[str]]
    reasons: list[str]


class _Step(NamedTuple):
    core: int
    text: str
    neff: Neff | None = None
    nbytes: int = 0
    profile: bool = False


def _placed(texts: list[str] | None, hint: str) -> list[tuple[int, str]]:
    found = []
    for text in texts or []:
        match = _PLACED.fullmatch(text)
        if match is None:
            raise typer.BadParameter(f"{text!r} is not like nc4:WHAT", param_hint=hint)
        found.append((int(match[1]), match[2]))
    return found


def plan(machine: MemoryMachine, steps: list[_Step]) -> MemoryPlan:
    """Return the ledger after all steps, or as it stood when one of them failed."""
    from emulator.runtime.ledger_views import oom_lines, oom_table  # deferred: start-up
    from emulator.runtime.memory import Category, OutOfMemoryError, Owner  # deferred: start-up
    from formats.nrt.oom import table_lines  # deferred: start-up

    ledger = machine.ledger
    failed, log = None, []
    started: set[int] = set()
    at = ""
    try:
        for number, step in enumerate(steps):
            stacks = machine.stacks(step.core)
            at = step.text
            if step.core not in started:
                ledger.start_core(step.core, stacks)
                started.add(step.core)
            if step.neff is not None:
                ledger.load(step.neff, Owner(step.core, _FIRST_MODEL + number), stacks)
            elif step.profile:
                ledger.start_profile(step.core, stacks, step.nbytes)
            else:
                ledger.allocate(Category.TENSORS, step.nbytes, stack=stacks[0], owner=Owner(step.core), name=at)
    except OutOfMemoryError as error:
        log = [f"TDRV:{function}  {text}" if function else text for function, text in oom_lines(ledger, error)]
        failed = _failure(at, error)
    stacks_used = sorted({one.allocation.stack for one in ledger.entries.values()})
    tables = {table_file(stack.device, stack.hbm): table_lines(oom_table(ledger, stack)) for stack in stacks_used}
    uses = [_use(machine, stack) for stack in stacks_used]
    pad = scratchpad_text(ledger.scratchpad)
    return MemoryPlan(machine.name, machine.lnc, pad, failed is None, failed, uses, log, tables,
                      _reasons(machine, failed, uses))  # fmt: skip


def _failure(what: str, error: OutOfMemoryError) -> FailedAllocation:
    largest = getattr(error, "largest", error.free)
    return FailedAllocation(what, error.owner.core, str(error.category), error.size, error.stack.device,
                            error.stack.hbm, error.free, largest, error.free >= error.size)  # fmt: skip


def _use(machine: MemoryMachine, stack: Stack) -> StackUse:
    from emulator.runtime.ledger_views import by_category  # deferred: start-up

    ledger = machine.ledger
    mine = [one for one in ledger.entries.values() if one.allocation.stack == stack]
    allocator = ledger.allocator(stack)
    return StackUse(stack.device, stack.hbm, sorted({one.allocation.owner.core for one in mine}), by_category(mine),
                    allocator.used, ledger.limit(stack), allocator.largest)  # fmt: skip


def _reasons(machine: MemoryMachine, failed: FailedAllocation | None, uses: list[StackUse]) -> list[str]:
    """Return what is behind a failure, as far as the ledger shows it, with what to do about it."""
    if failed is None:
        return []
    found = []
    here = next((one for one in uses if (one.device, one.stack) == (failed.device, failed.stack)), None)
    if here is not None and len(here.cores) > 1 and machine.lnc == 1:
        others = ", ".join(f"nc{core}" for core in here.cores if core != failed.core)
        found.append(f"{others} uses the same stack: with LNC 1 two cores share one (runtime.md 3.1)")
    if failed.fragmented and failed.usage == "shared scratchpad" and machine.ledger.scratchpad.contiguous:
        found.append(
            "the region cannot grow where it is; NEURON_RT_CONTIGUOUS_SCRATCHPAD=0 takes pages (runtime.md 3.1)"
        )
    elif failed.fragmented:
        found.append("enough bytes are free, but not in one piece")
    if here is not None:
        if here.categories["scratchpad"] > here.limit // 10 and not machine.ledger.scratchpad.contiguous:
            found.append("much private scratchpad: a larger page may share it, see `neurontools mem scratchpad`")
        if here.categories["profiler"]:
            found.append("profiler buffers take part of the stack: profile one model at a time (runtime.md 3.1)")
        key, most = max(here.categories.items(), key=lambda item: item[1], default=("", 0))
        label = next(one.label for one in CATEGORIES if one.key == key)
        found.append(f"most of the stack is {label}: {bytes_text(most)} of {bytes_text(here.limit)}")
    return found


def view(found: MemoryPlan) -> list[str]:
    """Return bars, the runtime's tables, and for a plan that does not fit what failed and why."""
    lines = [f"{found.instance}, LNC {found.lnc}, shared scratchpad in {found.scratchpad}: "
             + ("everything fits" if found.fits else "out of memory")]  # fmt: skip
    for one in found.stacks:
        cores = ", ".join(f"nc{core}" for core in one.cores)
        lines += [
            "",
            f"nd{one.device} hbm{one.stack} ({cores}): {bytes_text(one.used)} of {bytes_text(one.limit)}, "
            f"largest gap {bytes_text(one.largest_gap)}",
            f"  {bar(one.categories, one.limit)}",
            f"  {legend(one.categories)}",
        ]
    if found.failed is not None:
        lines += ["", f"{found.failed.what} does not fit; the runtime would print:", *found.log]
        lines += ["", *(f"- {reason}" for reason in found.reasons)]
    return lines


def mem_plan(
    instance: InstanceName = "trn2.48xlarge",
    lnc: Annotated[
        int | None,
        typer.Option("--lnc", metavar="N", min=1, max=2, help="NEURON_LOGICAL_NC_CONFIG.", show_default=False),
    ] = None,
    load: Annotated[
        list[str] | None,
        typer.Option("--load", metavar="ncN:FILE", help="Load a NEFF on a core; may be repeated.", show_default=False),
    ] = None,
    tensor: Annotated[
        list[str] | None,
        typer.Option(
            "--tensor",
            metavar="ncN:SIZE",
            help="Allocate a tensor (20GiB, 512MB); may be repeated.",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[
        list[int] | None,
        typer.Option(
            "--profile", metavar="N", min=0, help="Profile core N: its buffers; may be repeated.", show_default=False
        ),
    ] = None,
    runtime: RuntimeVersion = None,
    contiguous: Contiguous = None,
    page_size: PageSize = None,
    emit_log: Annotated[
        Path | None,
        typer.Option(
            "--emit-log",
            metavar="DIR",
            help="Write each stack's table there, named as the runtime does.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
) -> None:
    """Say whether models and tensors fit on an instance together.

    Loads come in the order given, then profiler buffers, then tensors; each is placed by the allocator that emulated
    sessions use. The exit status is 1 when something does not fit.
    """
    from formats.neff.memory import profiler_bytes  # deferred: start-up

    with report(
        "mem plan", json, quiet=quiet, instance=instance, lnc=lnc, load=load, tensor=tensor, runtime=runtime
    ) as out:
        machine = machine_of(instance, lnc, runtime, contiguous, page_size)
        steps = [_Step(core, f"{Path(name).name} on nc{core}", neff=open_neff_file(Path(name)))
                 for core, name in _placed(load, "--load")]  # fmt: skip
        for step in steps:
            if step.neff is not None and step.neff.lnc != machine.lnc:
                out.warn(f"{step.text} is made for LNC {step.neff.lnc}, the instance is set to LNC {machine.lnc}")
        buffers = profiler_bytes(machine.ledger.generation, machine.ledger.runtime)
        if profile and buffers is None:
            out.warn(f"no capture says what profiler buffers take on {machine.target}; 2 GiB is the documented figure")
        steps += [_Step(core, f"profile of nc{core}", nbytes=buffers or 2 << 30, profile=True)
                  for core in profile or []]  # fmt: skip
        steps += [_Step(core, f"tensor of {size} on nc{core}", nbytes=parse_bytes(size))
                  for core, size in _placed(tensor, "--tensor")]  # fmt: skip
        if not steps:
            raise typer.BadParameter("nothing to place: give --load, --tensor or --profile")
        found = plan(machine, steps)
        if emit_log is not None:
            for name, lines in found.tables.items():
                with write_whole(need_folder(emit_log) / name) as place:
                    place.write_text("\n".join([*lines, ""]))
        out.result = found
        out.lines = lambda: view(found)
        if not found.fits:
            out.status, out.exit_code = ExitStatus.FINDING, error_exitcode


app = command_app(mem_plan, result=MemoryPlan)
