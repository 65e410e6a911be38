"""`neurontools monitor run`: metrics of emulated sessions, as neuron-monitor streams them."""

from __future__ import annotations

import json as json_module
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formats.errors import NotFoundError, UnsupportedError
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import note, report
from neurontools.memory.states import Place, find_states
from neurontools.monitor.config import DEFAULT, read_config
from neurontools.monitor.report import Sample, make_report, sample
from neurontools.version import install_with

if TYPE_CHECKING:
    from emulator.runtime.ledger_state import MachineState


class MonitorReport(NamedTuple):
    """The result of `monitor run`: one report, of the shape that neuron-monitor's documentation shows."""

    report: dict[str, Any]


def sessions(place: Place) -> list[MachineState]:
    """Return the sessions that run, none where there are none."""
    try:
        return find_states(place)
    except NotFoundError:
        return []


def monitor_run(
    place: Place = None,
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config-file",
            "-c",
            metavar="FILE",
            help="Groups and periods; all, every 5 s, without.",
            show_default=False,
        ),
    ] = None,
    instance: Annotated[
        str, typer.Option("--instance", metavar="TYPE", help="Instance type, where no session says.")
    ] = ("trn2.48xlarge"),
    once: Annotated[bool, typer.Option("--once", help="Print one report, and end.")] = False,
    prometheus: Annotated[
        int | None,
        typer.Option(
            "--prometheus",
            metavar="PORT",
            min=1,
            max=65535,
            show_default=False,
            help="Serve the metrics of the public Grafana board on a port (extra `prometheus`).",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Stream metrics of emulated sessions as neuron-monitor does.

    Prints a line of JSON every period until it is interrupted.  CPUs and memory are this host's; the rest is of
    sessions that NEURONTOOLS_MACHINE shows.  With --json one report stands in this toolkit's envelope.
    """
    from emulator.machine.instances import instance_of  # deferred: start-up

    with report("monitor run", json, place=place, config=config_file, instance=instance) as out:
        config = DEFAULT if config_file is None else read_config(config_file)
        kind = instance_of(instance)

        def made(before: Sample) -> tuple[Sample, dict[str, Any]]:
            states = sessions(place)
            now = sample(states, monotonic())
            found = instance_of(states[0].instance) if states else kind
            lnc = states[0].ledger.lnc if states else found.chip.lnc.whole
            return now, make_report(now, before, config, found, lnc)

        before = sample(sessions(place), monotonic())
        if once or json:
            if before.states and not all(state.ended for state in before.states):
                sleep(min(1.0, config.period))
            out.result = MonitorReport(made(before)[1])
            out.lines = lambda: [json_module.dumps(out.result[0]) if isinstance(out.result, MonitorReport) else ""]
            return
        out.streamed = True
        show = _served(prometheus) if prometheus is not None else _printed
        with suppress(KeyboardInterrupt):
            while True:
                sleep(config.period)
                before, found = made(before)
                show(found)


def _printed(found: dict[str, Any]) -> None:
    print(json_module.dumps(found), flush=True)


def _served(port: int) -> Any:
    from neurontools.monitor.prometheus import MissingClientError, Served  # deferred: start-up

    try:
        served = Served(port)
    except MissingClientError:
        raise UnsupportedError(f"--prometheus needs prometheus-client: {install_with('prometheus')}") from None
    note(f"metrics on port {port}")
    return served.show


app = command_app(monitor_run, result=MonitorReport, default=True)
