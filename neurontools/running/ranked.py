"""What `neurontools run --ranks` does with a script or a NEFF: the same program on every rank, or one for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from formats.named_tuple import NamedTuple
from formats.neff import open_neff
from neurontools.command.exits import ExitStatus
from neurontools.command.output import Report, note, write_whole
from neurontools.dump.wanted import rank_observers
from neurontools.program.configuration import RunConfiguration
from neurontools.program.execution import Execution, outcome
from neurontools.program.interruption import interruptible
from neurontools.program.kinds import Kind, refuse_misplaced
from neurontools.program.opening import Program, open_program
from neurontools.program.rank_arrays import RANK, inputs_of_ranks, path_of_rank, save_ranks
from neurontools.program.ranked_script import Asked, RankedScript, Together
from neurontools.running.files import Kept
from neurontools.running.ranked_results import RankedScriptRun, ranked_run
from neurontools.running.ranked_view import ranked_lines
from neurontools.running.rows import unwritten_notes

if TYPE_CHECKING:
    from emulator.machine.ranks.machine import Packets
    from emulator.runtime.ranks import RankedResult, Ranks
    from emulator.settings import Settings
    from formats.neff import Neff

__all__ = ["NOBODY", "Watching", "execute_file", "files_of", "kind_of", "launch_ranks", "run_ranked",
           "script_of_ranks", "time_ranked"]  # fmt: skip

_WORST = (ExitStatus.INTERRUPTED, ExitStatus.UNSUPPORTED, ExitStatus.FAULT, ExitStatus.OK)


def run_ranked(
    file: Path, configuration: RunConfiguration, where: Ranks, kept: Kept, out: Report, cluster: str | None = None
) -> None:
    """Run whatever a file holds on several ranks, and put what came of it into the report."""
    watching = Watching(cluster=cluster)
    if kind_of(file, configuration, where) is Kind.SCRIPT:
        _run_script(file, configuration, where, kept, out, watching)
    else:
        _run_programs(files_of(file, where), configuration, where, kept, out, watching)


def time_ranked(file: Path, configuration: RunConfiguration, where: Ranks, out: Report) -> None:
    """Find out how long NEFFs take on several ranks, and put that into the report."""
    from emulator.runtime.timed_ranks import time_ranks  # deferred: start-up

    if kind_of(file, configuration, where) is Kind.SCRIPT:
        raise typer.BadParameter("a script computes with what its launches return: save its NEFF (--save-neff)",
                                 param_hint="--time-only")  # fmt: skip
    files = files_of(file, where)
    alone = replace(configuration, inputs="zeros", inputs_from=None, given={})
    programs = [open_program(each, alone) for each in files]
    neffs = [programs[rank % len(programs)].neff for rank in range(where.ranks)]

    def inputs() -> list[dict[str, Any]]:
        arrays, notes = inputs_of_ranks(neffs, configuration)
        out.warn(*notes)
        return arrays

    settings = replace(configuration, target=None, lnc=None).bounded().settings()
    found = time_ranks(neffs, inputs, where, settings, guard=interruptible)
    if found.apart:
        out.warn(f"each rank was emulated on its own: {found.apart}")
    elif configuration.inputs is not None:
        out.warn("inputs were not read: they decide nothing of the times")
    run = out.result = ranked_run(found, [Execution(programs[0].name, one) for one in found.results])
    out.lines = lambda: ranked_lines(f"{files[0].name} on {where.ranks} ranks of {found.instance}, time only", run)
    out.status = _status(found)


class Watching(NamedTuple):
    """Who watches each rank beside the checks, the sizes of packets, and whether transfers of CC-cores are kept.

    On a Dask cluster, given by its scheduler's address, nobody watches. `change` makes another program of each file;
    `after` sees what ran, with which inputs, and what came of it, before a script goes on.
    """

    watch: Callable[[int], Sequence[Any]] = lambda rank: ()
    packets: Packets | None = None
    record: bool = False
    cluster: str | None = None
    change: Callable[[Neff], Neff] = lambda neff: neff
    after: Callable[[Sequence[Neff | None], Sequence[dict[str, Any]], Settings, RankedResult], object] = (
        lambda neffs, inputs, settings, found: None
    )


NOBODY = Watching()


def execute_file(
    file: Path, configuration: RunConfiguration, where: Ranks, out: Report, watching: Watching = NOBODY
) -> list[tuple[RankedResult, list[Execution]]]:
    """Run whatever a file holds on several ranks; return what came of each launch, or of the one run.

    A launch that faults or hangs is the last one; a script that fails otherwise raises, or leaves a status.
    """
    from neurontools.nki.errors import KernelFaultError  # deferred: start-up

    if kind_of(file, configuration, where) is not Kind.SCRIPT:
        return [_run_files(files_of(file, where), configuration, where, out, watching)[1:]]
    done: list[tuple[RankedResult, list[Execution]]] = []

    def together(asked: list[Asked | None]) -> tuple[RankedResult, list[Execution]]:
        done.append(launch_ranks(asked, configuration, where, watching))
        return done[-1]

    script = script_of_ranks(file, configuration, where, together)
    try:
        if any(script.run(aside=True)):
            out.status = ExitStatus.FINDING
    except KernelFaultError:
        pass  # the last of `done` has it
    _tell_failed(script, out)
    return done


def files_of(file: Path, where: Ranks) -> list[Path]:
    """Return the one file of all ranks, or one for each."""
    return [path_of_rank(file, rank) for rank in range(where.ranks if RANK in str(file) else 1)]


def script_of_ranks(file: Path, configuration: RunConfiguration, where: Ranks, together: Together) -> RankedScript:
    """Return a script that runs for every rank; its first launch of all says whether the machine has so many."""
    from emulator.runtime.ranks import machine_of, most_ranks  # deferred: start-up

    def look(asked: Asked) -> int:
        return machine_of([open_neff(asked.neff)], where).ranks_per_node

    per_node = most_ranks(where, configuration.target, configuration.lnc).ranks_per_node
    return RankedScript(file, configuration, where.ranks, together, per_node, look)


def kind_of(file: Path, configuration: RunConfiguration, where: Ranks) -> Kind:
    """Return what the files of all ranks are; BadParameter for what ranks cannot run together.

    InputError where no machine that is asked for has so many ranks.
    """
    from emulator.runtime.ranks import most_ranks  # deferred: start-up

    most_ranks(where, configuration.target, configuration.lnc)
    files = files_of(file, where)
    kinds = {refuse_misplaced(each, configuration) for each in files}
    if configuration.record is not None:
        raise typer.BadParameter("a recording holds one rank", param_hint="--record")
    if Kind.RECORDING in kinds:
        raise typer.BadParameter("a recording is of one rank", param_hint="--ranks")
    if kinds == {Kind.SCRIPT} and len(files) == 1:
        return Kind.SCRIPT
    if Kind.SCRIPT in kinds:
        raise typer.BadParameter("one script runs for all ranks and asks RANK of its environment", param_hint="FILE")
    return Kind.NEFF


def _run_programs(
    files: Sequence[Path], configuration: RunConfiguration, where: Ranks, kept: Kept, out: Report, watching: Watching
) -> None:
    programs, found, made = _run_files(files, configuration, where, out, watching)
    if kept.neff is not None:
        for rank, program in enumerate(programs):
            with write_whole(path_of_rank(kept.neff, rank)) as beside:
                beside.write_bytes(program.neff.to_bytes())
    if kept.outputs is not None and found.ok:
        save_ranks(kept.outputs, [result.outputs for result in found.results])
    _tell(out, made)
    run = out.result = ranked_run(found, made)
    out.lines = lambda: ranked_lines(f"{files[0].name} on {where.ranks} ranks of {found.instance}", run)
    out.status = _status(found)


def _run_script(
    file: Path, configuration: RunConfiguration, where: Ranks, kept: Kept, out: Report, watching: Watching
) -> None:
    from neurontools.nki.errors import KernelFaultError  # deferred: start-up

    done: list[tuple[RankedResult, list[Execution]]] = []

    def together(asked: list[Asked | None]) -> tuple[RankedResult, list[Execution]]:
        pair = launch_ranks(asked, configuration, where, watching)
        done.append(pair)
        if kept.outputs is not None and pair[0].ok:
            save_ranks(kept.outputs, [result.outputs for result in pair[0].results])
        return pair

    script = script_of_ranks(file, configuration, where, together)
    try:
        statuses = script.run(aside=out.as_json)
    except KernelFaultError:
        out.status = _status(done[-1][0])
        statuses = [int(out.status)] * where.ranks
        if not out.as_json:
            note(f"neurontools: {done[-1][1][0].name}: execution failed")
            for line in ranked_lines("", ranked_run(*done[-1])):
                note(line)
    _tell_failed(script, out)
    out.result = RankedScriptRun(tuple(statuses), tuple(ranked_run(*pair) for pair in done))
    for _, made in done:
        _tell(out, made)
    if out.status is ExitStatus.OK:
        out.exit_code = max(statuses)
    if kept.outputs is not None and not done:
        out.warn("the script launched no kernel: nothing was saved")


def _run_files(
    files: Sequence[Path], configuration: RunConfiguration, where: Ranks, out: Report, watching: Watching = NOBODY
) -> tuple[list[Program], RankedResult, list[Execution]]:
    """Run one file on all ranks, or one on each; return the programs, the result, and an execution for each rank."""
    from emulator.runtime.ranks import machine_of  # deferred: start-up

    alone = replace(configuration, inputs="zeros", inputs_from=None, given={})
    programs = [open_program(each, alone) for each in files]
    made = [watching.change(each.neff) for each in programs]
    neffs = [made[rank % len(made)] for rank in range(where.ranks)]
    machine_of(neffs, where)  # before anything is said of inputs that no machine takes
    inputs, notes = inputs_of_ranks(neffs, configuration)
    out.warn(*notes)
    return programs, *_execute(programs[0].name, list(neffs), inputs, configuration, where, watching)


def launch_ranks(
    asked: list[Asked | None], configuration: RunConfiguration, where: Ranks, watching: Watching = NOBODY
) -> tuple[RankedResult, list[Execution]]:
    """Run the launches that the scripts of all ranks have come to."""
    name = next(one.name for one in asked if one is not None)
    neffs = [None if one is None else open_neff(one.neff) for one in asked]
    inputs = [{} if one is None else one.inputs for one in asked]
    return _execute(name, neffs, inputs, configuration, where, watching)


def _execute(
    name: str, neffs: Sequence[Neff | None], inputs: Sequence[dict[str, Any]], configuration: RunConfiguration,
    where: Ranks, watching: Watching,
) -> tuple[RankedResult, list[Execution]]:  # fmt: skip
    """Run one program on each rank; return the result, and an execution for each rank."""
    from emulator.machine.machine import Machine  # deferred: start-up
    from emulator.machine.ranks.machine import USUAL_PACKETS  # deferred: start-up
    from emulator.runtime.ranks import execute_ranks, usual_instance  # deferred: start-up

    lnc = max((len(neff.subgraphs) for neff in neffs if neff is not None), default=1)
    first = next(neff for neff in neffs if neff is not None)
    machine = Machine(where.instance or usual_instance(first), nodes=where.nodes, lnc=lnc)
    places = [machine.place(rank) for rank in range(min(where.ranks, machine.ranks))]
    dumpers = rank_observers(name, configuration.dump_dir, [(place.chip, place.core * lnc) for place in places])
    settings = replace(configuration, target=None, lnc=None).bounded().settings()
    if watching.cluster is not None:
        from emulator.runtime.spread_ranks import spread_ranks  # deferred: start-up
        from neurontools.running.fleet import fleet  # deferred: start-up

        with fleet(watching.cluster) as (count, sites):
            found = spread_ranks(neffs, inputs, where, settings, count, sites, guard=interruptible)
        return found, [Execution(name, result) for result in found.results]
    found = execute_ranks(
        neffs, inputs, where, settings, checks=configuration.checks, guard=interruptible, record=watching.record,
        watch=lambda rank: [*dumpers[rank], *watching.watch(rank)], packets=watching.packets or USUAL_PACKETS,
    )  # fmt: skip
    watching.after(neffs, inputs, settings, found)
    made = []
    for result, mine in zip(found.results, dumpers, strict=True):
        directory = next((one.directory for one in mine), None)
        made.append(Execution(name, result, directory, tuple(text for one in mine for text in one.notes)))
    return found, made


def _tell_failed(script: RankedScript, out: Report) -> None:
    """Warn of scripts that ended with a status: which ranks a traceback was of, and who launches nothing more."""
    texts: dict[int, list[int]] = {}
    for rank, status in sorted(script.failed.items()):
        texts.setdefault(status, []).append(rank)
    for status, ranks in texts.items():
        who = f"rank {ranks[0]}" if len(ranks) == 1 else f"{len(ranks)} ranks, {ranks[0]} first,"
        out.warn(f"the script of {who} ended with status {status}")


def _tell(out: Report, made: Sequence[Execution]) -> None:
    """Warn of what ranks had to say, once where several say the same."""
    texts: dict[str, list[int]] = {}
    for rank, one in enumerate(made):
        for text in (*one.notes, *(item.message for item in one.result.warnings), *unwritten_notes(one.result)):
            texts.setdefault(text, []).append(rank)
    for text, ranks in texts.items():
        some = sorted(set(ranks))
        who = f"rank {some[0]}" if len(some) == 1 else f"{len(some)} ranks, {some[0]} first"
        out.warn(f"{who}: {text}")


def _status(found: RankedResult) -> ExitStatus:
    """Return the exit status: that of the worst rank."""
    statuses = {outcome(result) for result in found.results}
    return next(status for status in _WORST if status in statuses)
