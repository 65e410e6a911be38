"""`neurontools hbm trace`: where the tensors of a chain of models end up, and what crosses PCIe on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json, Quiet
from neurontools.command.output import report
from neurontools.hbm.chain import Chain, read_chain
from neurontools.text.table import bytes_text, count, table


class TracedStep(NamedTuple):
    """One step: where its outputs go and because of which input, bytes each way, microseconds for them."""

    number: int
    model: str
    place: Annotated[str, "of the outputs: cpu or device; host for a step in which the program reads tensors"]
    because: Annotated[str | None, "the first input that was not on the device, where some other was, or had been"]
    to_device: int
    to_host: int
    microseconds: float


class Bounce(NamedTuple):
    """A tensor that a model made, that went to the host and came back to the device."""

    tensor: str
    made_by: str
    used_by: str
    bytes: int


class Traced(NamedTuple):
    """The result of `hbm trace`; `best` is what would cross if every tensor that a model reads began on the device."""

    steps: list[TracedStep]
    places: dict[str, str]
    to_device: int
    to_host: int
    microseconds: float
    bounces: list[Bounce]
    first_break: Annotated[str | None, "the first tensor that sent outputs to the host which a model reads again"]
    best_to_device: int
    best_to_host: int


def trace(chain: Chain, gigabytes: float) -> Traced:
    """Return what happens to a chain.

    Outputs stay on the device when every input is there; one input on the host sends all outputs to the host. An input
    on the host is copied to the device each time it is read (runtime.md 4).
    """
    steps, places, bounces = _walk(chain, chain.places, gigabytes)
    read = {name for step in chain.steps if step.model for name in step.inputs}
    begun = {name: "device" if name in read else place for name, place in chain.places.items()}
    once = sum(chain.sizes[name] for name, place in chain.places.items() if name in read and place == "cpu")
    best, _, _ = _walk(chain, begun, gigabytes)
    return Traced(
        steps, places, sum(one.to_device for one in steps), sum(one.to_host for one in steps),
        sum(one.microseconds for one in steps), bounces, _breaker(steps, bounces),
        once + sum(one.to_device for one in best), sum(one.to_host for one in best),
    )  # fmt: skip


def _walk(
    chain: Chain, begin: dict[str, str], gigabytes: float
) -> tuple[list[TracedStep], dict[str, str], list[Bounce]]:
    places = dict(begin)
    maker: dict[str, str] = {}
    steps: list[TracedStep] = []
    bounces: list[Bounce] = []
    seen: set[str] = set()  # what the host has a copy of already
    for number, step in enumerate(chain.steps, 1):
        if not step.model:
            names = [name for name in dict.fromkeys(step.inputs) if places[name] == "device" and name not in seen]
            down = sum(chain.sizes[name] for name in names)
            seen |= set(names)
            steps.append(TracedStep(number, "", "host", None, 0, down, down / gigabytes / 1000))
            continue
        outside = [name for name in dict.fromkeys(step.inputs) if places[name] == "cpu"]
        up = sum(chain.sizes[name] for name in outside)
        bounces += [Bounce(name, maker[name], step.model, chain.sizes[name]) for name in outside if name in maker]
        place = "cpu" if outside or not step.inputs else "device"
        down = sum(chain.sizes[name] for name in step.outputs) if place == "cpu" else 0
        for name in step.outputs:
            places[name], maker[name] = place, step.model
            seen.discard(name)
        steps.append(TracedStep(number, step.model, place, outside[0] if outside else None, up, down,
                                (up + down) / gigabytes / 1000))  # fmt: skip
    return steps, places, bounces


def _breaker(steps: list[TracedStep], bounces: list[Bounce]) -> str | None:
    if not bounces:
        return None
    return next((one.because for one in steps if one.model == bounces[0].made_by and one.because is not None), None)


def view(found: Traced) -> list[str]:
    """Return the steps with a bar for what crosses, the bounces, and what would be best."""
    most = max((one.to_device + one.to_host for one in found.steps), default=0) or 1
    rows = []
    for one in found.steps:
        up, down = round(24 * one.to_device / most), round(24 * one.to_host / most)
        rows.append([one.number, one.model or "(host reads)", one.place, one.because or "", one.to_device, one.to_host,
                     f"{one.microseconds:.1f}", ">" * up + "<" * down])  # fmt: skip
    lines = table(["step", "model", "outputs on", "because of", "to device", "to host", "us", ""], rows)
    lines.append(f"{bytes_text(found.to_device)} to the device, {bytes_text(found.to_host)} to the host, "
                 f"{found.microseconds:.1f} us")  # fmt: skip
    for each in found.bounces:
        lines.append(f"{each.tensor} of {each.made_by} goes to the host and back for {each.used_by}: "
                     f"{bytes_text(2 * each.bytes)}")  # fmt: skip
    if found.first_break is not None:
        lines.append(f"{found.first_break} is the first that keeps outputs off the device (runtime.md 4)")
    if (found.best_to_device, found.best_to_host) != (found.to_device, found.to_host):
        lines.append(f"moved to the device before the first step, once: {bytes_text(found.best_to_device)} to the "
                     f"device, {bytes_text(found.best_to_host)} to the host")  # fmt: skip
    return lines


def hbm_trace(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A chain of models, TOML or JSON.", show_default=False)],
    gigabytes: Annotated[
        float, typer.Option("--pcie-gbps", metavar="GB/S", min=0.001, help="Gigabytes a second over PCIe.")
    ] = 16.0,
    json: Json = False,
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
) -> None:
    """Trace where tensors of a chain of models lie, and what crosses PCIe.

    Outputs stay on the device when every input is there.  The exit status is 1 when a tensor goes to the host and back.
    """
    with report("hbm trace", json, quiet=quiet, file=file, pcie_gbps=gigabytes) as out:
        chain = read_chain(file)
        found = trace(chain, gigabytes)
        out.result = found
        out.lines = lambda: view(found)
        if found.bounces:
            out.warn(f"{count(len(found.bounces), 'tensor')} bounce through the host")
            out.status, out.exit_code = ExitStatus.FINDING, error_exitcode


app = command_app(hbm_trace, result=Traced)
