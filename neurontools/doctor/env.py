"""`neurontools doctor env`: whether the environment of a workload is what its author meant."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.exits import ExitStatus
from neurontools.command.files import open_neff_file, read_text
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Quiet
from neurontools.command.output import report
from neurontools.doctor.findings import KINDS, EnvironmentFinding, sarif_results
from neurontools.text.table import count

_FORMATS = ("text", "json", "sarif")
_SHOWN = re.compile(r"(?:NEURON|FI_|NKI_|XLA_)")


class Examined(NamedTuple):
    """The result of `doctor env`: what was looked at, what was found, the worst first."""

    instance: str
    lnc: int
    variables: Annotated[dict[str, str], "those that Neuron might read"]
    findings: list[EnvironmentFinding]


def examined(
    values: dict[str, tuple[str, int | None]], instance: str, neff: Path | None, taskset: str | None, nodes: int,
    here: bool,
) -> Examined:  # fmt: skip
    """Return what the rules find in some variables; lines of the file they came from go with the findings."""
    from emulator.machine.instances import instance_of  # deferred: start-up
    from formats.nrt.environment import parse_cpus  # deferred: start-up
    from neurontools.doctor.host import numa_nodes  # deferred: start-up
    from neurontools.doctor.rules import Workload, examine  # deferred: start-up

    kind = instance_of(instance)
    cpus = None if taskset is None else parse_cpus(taskset)
    if taskset is not None and cpus is None:
        raise typer.BadParameter(f"{taskset!r} is no list of CPUs such as 0-39,48", param_hint="--taskset")
    opened = None
    if neff is not None:
        opened = neff.name, open_neff_file(neff).lnc
    mine = {name: value for name, (value, _) in values.items() if _SHOWN.match(name)}
    chip = kind.chip
    work = Workload(mine, kind, chip.lnc.whole, kind.chips_per_server * chip.cores.whole, numa_nodes(kind), cpus,
                    opened, nodes, here)  # fmt: skip
    lines = {name: line for name, (_, line) in values.items()}
    findings = [one._replace(line=lines.get(one.variable)) for one in examine(work)]
    return Examined(kind.name, work.lnc, mine, findings)


def view(found: Examined) -> list[str]:
    """Return each finding with its reason, its fix and its source."""
    lines = [f"{found.instance}, LNC {found.lnc}: {count(len(found.variables), 'variable')}, "
             f"{count(len(found.findings), 'finding')}"]  # fmt: skip
    for one in found.findings:
        where = "" if one.line is None else f" (line {one.line})"
        lines += [f"{one.severity}: {one.message}{where}", f"  {one.kind}: {one.fix} ({one.cite})"]
    return lines


def doctor_env(
    instance: Annotated[str, typer.Option("--instance", metavar="TYPE", help="Instance type.")] = "trn2.48xlarge",
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from-file",
            metavar="FILE",
            help="Variables of a file (env, docker, shell) instead of mine.",
            show_default=False,
        ),
    ] = None,
    neff: Annotated[
        Path | None, typer.Option("--neff", metavar="FILE", help="A NEFF that is to be loaded.", show_default=False)
    ] = None,
    taskset: Annotated[
        str | None,
        typer.Option(
            "--taskset", metavar="CPUS", help="CPUs of the application, as for taskset --cpu-list.", show_default=False
        ),
    ] = None,
    nodes: Annotated[int, typer.Option("--nodes", metavar="N", min=1, help="Instances of the job.")] = 1,
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="text, json or sarif.")] = "text",
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
) -> None:
    """Check environment variables against everything that is documented of them.

    Unknown and removed names, values, cores, logical cores against chip and NEFF, scratchpad, profiling, CPUs and NUMA
    nodes, folders, the network.  The exit status is 1 when there is a finding that is no note.
    """
    from formats.nrt.environment import parse_environment  # deferred: start-up
    from neurontools.check.exchange import sarif_log  # deferred: start-up

    if form not in _FORMATS:
        raise typer.BadParameter(f"{form!r} is none of {', '.join(_FORMATS)}", param_hint="--format")
    with report("doctor env", json or form == "json", quiet=quiet, instance=instance, file=from_file, neff=neff) as out:
        values: dict[str, tuple[str, int | None]]
        if from_file is None:
            values = {name: (value, None) for name, value in os.environ.items()}
        else:
            values = dict(parse_environment(read_text(from_file).splitlines(), str(from_file)))
        found = examined(values, instance, neff, taskset, nodes, from_file is None)
        out.result = found
        bad = any(one.severity != "note" for one in found.findings)
        if bad:
            out.status, out.exit_code = ExitStatus.FINDING, error_exitcode
        if form == "sarif":
            rules = {f"doctor/{name}": kind.about for name, kind in KINDS.items()}
            results = sarif_results(found.findings, None if from_file is None else str(from_file))
            out.lines = lambda: sarif_log(rules, results, int(bad), [])
        else:
            out.lines = lambda: view(found)


app = command_app(doctor_env, result=Examined, default=True)
