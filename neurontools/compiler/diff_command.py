"""`neurontools compile diff`: two NEFFs, or one graph under two sets of options, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from neurontools.command.exits import ExitStatus
from neurontools.command.files import need_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.compiler.diffing import CompileDifference
from neurontools.text.table import bold, bytes_text, count, table

_NEFF = ".neff"


def view(found: CompileDifference, top: int) -> Iterator[str]:
    """Return two compilations for people."""
    for letter, side in zip("AB", found.sides, strict=True):
        given = ", ".join(f"{name}={value}" for name, value in side.options.items())
        words = ", ".join(f"{engine} {number}" for engine, number in sorted(side.words.items()))
        yield f"{letter}  {side.name}{f' ({given})' if given else ''}: {side.target}, {side.size:,} bytes, {words}"
    a, b = found.sides
    yield from table(["", "A", "B", "B / A"], [
        ["time", f"{a.time_ns / 1000:,.3f} us", f"{b.time_ns / 1000:,.3f} us", _ratio(a.time_ns, b.time_ns)],
        ["instructions", sum(a.words.values()), sum(b.words.values()),
         _ratio(sum(a.words.values()), sum(b.words.values()))],
        ["moved", bytes_text(a.moved), bytes_text(b.moved), _ratio(a.moved, b.moved)],
        ["through device memory", bytes_text(a.stored), bytes_text(b.stored), _ratio(a.stored, b.stored)],
    ])  # fmt: skip
    if found.passes:
        yield bold("passes")
        yield from table(["pass", "nodes A", "nodes B", ""], [
            [one.name, *one.nodes, "the same" if one.same else ", ".join(
                f"{opcode} {x} -> {y}" for opcode, (x, y) in one.opcodes.items()) or "other attributes"]
            for one in found.passes
        ])  # fmt: skip
    if found.same:
        yield "no operation differs"
        return
    yield bold(f"{count(len(found.operations), 'operation')} that differ")
    yield from table(["operation", "opcode", "words", "moved", "busy ns", "critical ns"], [
        [f"%{one.name}", one.opcode, _pair(*one.words), _pair(*map(bytes_text, one.bytes)),
         _pair(*(f"{ns:,.0f}" for ns in one.busy_ns)), _pair(*(f"{ns:,.0f}" for ns in one.critical_ns))]
        for one in found.operations[:top]
    ])  # fmt: skip
    if len(found.operations) > top:
        yield f"{len(found.operations) - top} more; --top shows them"


def _pair(one: object, other: object) -> str:
    return f"{one}" if one == other else f"{one} -> {other}"


def _ratio(one: float, other: float) -> str:
    return f"{other / one:.3f}" if one else "-"


def diff_graphs(
    one: Annotated[
        Path, typer.Argument(metavar="A", help="A NEFF that `compile` made, or an HLO module.", show_default=False)
    ],
    other: Annotated[
        Path | None, typer.Argument(metavar="[B]", help="The same; the module A again without it.", show_default=False)
    ] = None,
    options_a: Annotated[
        str, typer.Option("--a", metavar="NAME=VALUE,…", help="Options of A, as `neurontools.compile` takes them.")
    ] = "",
    options_b: Annotated[str, typer.Option("--b", metavar="NAME=VALUE,…", help="Options of B.")] = "",
    inputs: Annotated[
        str, typer.Option("--inputs", metavar="FILE|random[:SEED]", help="The inputs to run with (.npz), or random.")
    ] = "random",
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, help="Operations that the text shows.")] = 20,
    json: Json = False,
) -> None:
    """Compare two compilations of a graph: passes, operations, instructions, bytes, time.

    Two NEFFs, two modules, or one module under two sets of options (`--a`, `--b`: fields of the options of
    `neurontools.compile`, such as auto_cast=matmult,lnc=1). Both run on the emulator with the same inputs. Modules are
    compiled here, and every pass is compared too. The exit status is 1 where they differ.
    """
    second = one if other is None else other
    with report("compile diff", json, a=one, b=second, options_a=options_a, options_b=options_b, inputs=inputs) as out:
        if other is None and options_a == options_b:
            raise typer.BadParameter("one file and one set of options: nothing to compare", param_hint="[B]")
        for file, options, name in ((one, options_a, "--a"), (second, options_b, "--b")):
            if need_file(file).suffix == _NEFF and options:
                raise typer.BadParameter(f"{file.name} is compiled already", param_hint=name)
        from neurontools.command.uninterrupted import import_numpy  # deferred: start-up

        import_numpy()
        from neurontools.compiler.comparing import compared  # deferred: start-up

        found = compared((one, options_a), (second, options_b), inputs, out)
        out.result = found
        out.lines = lambda: view(found, top)
        out.status = ExitStatus.OK if found.same else ExitStatus.FINDING


app = command_app(diff_graphs, result=CompileDifference)
