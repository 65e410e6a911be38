"""`neurontools arch topo`: a drawing of an instance's wiring, as text or for Graphviz."""

from __future__ import annotations

from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.arch.rows import InstanceName
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report


class LinkRow(NamedTuple):
    """One two-way link."""

    a: int
    b: int
    axis: str
    kind: Annotated[str, "neuronlink, between-servers, sled-switch or rack-switch"]


class Drawing(NamedTuple):
    """The result of `arch topo`."""

    name: str
    wiring: str
    wiring_known: Annotated[str, "documented or inferred"]
    shape: tuple[int, ...]
    chips: int
    links: tuple[LinkRow, ...]
    labels: Annotated[tuple[int, ...] | None, "hypercube label of each chip; None where it is no hypercube"]
    text: Annotated[tuple[str, ...], "the drawing"]


def drawn(name: str, dot: bool) -> Drawing:
    """Return the wiring of an instance with its drawing; UnsupportedError where it has not been published."""
    from emulator.machine.cycles import hypercube_labels  # deferred: start-up
    from emulator.machine.instances import instance_of  # deferred: start-up
    from emulator.machine.topology import topology_of  # deferred: start-up
    from formats.errors import UnsupportedError  # deferred: start-up

    instance = instance_of(name)
    topology = topology_of(instance)
    try:
        labels: tuple[int, ...] | None = hypercube_labels(topology)
    except UnsupportedError:
        labels = None
    links = tuple(LinkRow(*link) for link in topology.links)
    empty = Drawing(instance.name, instance.wiring, instance.wiring_known, instance.shape, instance.chips, links,
                    labels, ())  # fmt: skip
    return empty._replace(text=tuple(_dot(empty) if dot else _ascii(empty)))


def _dot(found: Drawing) -> list[str]:
    lines = [f'graph "{found.name}" {{', "  node [shape=box];"]
    for chip in range(found.chips):
        label = f"nd{chip}" + ("" if found.labels is None else f"\\n{found.labels[chip]:0{_bits(found)}b}")
        lines.append(f'  nd{chip} [label="{label}"];')
    lines += [f'  nd{link.a} -- nd{link.b} [label="{link.axis}"];' for link in found.links]
    return [*lines, "}"]


def _bits(found: Drawing) -> int:
    return max(1, (found.chips - 1).bit_length())


def _ascii(found: Drawing) -> list[str]:
    if found.chips == 1:
        return ["nd0"]
    if found.wiring == "ring":
        return [" -- ".join(f"nd{chip}" for chip in range(found.chips)) + " -- (nd0)"]
    if found.wiring == "switched":
        sleds, size = found.shape
        rows = [f"sled {sled:2}: " + " ".join(f"nd{sled * size + at}" for at in range(size)) for sled in range(sleds)]
        return [*rows, f"chips of a sled meet at its switch, the {sleds} sleds at the switches of the rack"]
    down, across = found.shape[-2:]
    lines = []
    for server in range(found.chips // (down * across)):
        if len(found.shape) > 2:
            lines += [*([""] if server else []), f"server {server}; each chip is wired to its like in the next server"]
        lines += _grid(found, server * down * across, down, across)
    return lines


def _grid(found: Drawing, first: int, rows: int, columns: int) -> list[str]:
    """Return one torus: rows and columns close behind its edges, drawn as "~"."""
    width = 5 if found.labels is None else 7 + _bits(found)
    up = "".join("|".center(width) + "   " for _ in range(columns)).rstrip()
    lines = ["   " + up.replace("|", "~")]
    for row in range(rows):
        cells = [_cell(found, first + row * columns + column).center(width) for column in range(columns)]
        lines.append("~--" + "---".join(cells) + "--~")
        lines.append("   " + (up if row < rows - 1 else up.replace("|", "~")))
    return lines


def _cell(found: Drawing, chip: int) -> str:
    return f"nd{chip}" if found.labels is None else f"nd{chip} {found.labels[chip]:0{_bits(found)}b}"


def topo(
    instance: InstanceName,
    dot: Annotated[bool, typer.Option("--dot", help="Write a graph for Graphviz instead of text.")] = False,
    json: Json = False,
) -> None:
    """Draw how the chips of an instance are wired.

    Rings close behind the edges ("~").  Where the wiring is a hypercube each chip has its label: linked chips differ in
    one bit.
    """
    with report("arch topo", json, instance=instance, dot=dot) as out:
        out.result = found = drawn(instance, dot)
        out.lines = lambda: found.text


app = command_app(topo, result=Drawing)
