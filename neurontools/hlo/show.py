"""`neurontools hlo show`: a module as HLO text."""

from __future__ import annotations

from typing import Annotated

import typer

from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.hlo.opening import HloFile, open_module

_ELEMENTS = 64


class InstructionRow(NamedTuple):
    """One instruction."""

    name: str
    opcode: str
    shape: str
    operands: tuple[str, ...]
    text: Annotated[str, "the instruction as HLO text"]
    source: Annotated[str | None, "file and line of the model, where the module says it"]


class ComputationRow(NamedTuple):
    """One computation."""

    name: str
    entry: bool
    root: str
    instructions: tuple[InstructionRow, ...]


class Shown(NamedTuple):
    """The result of `hlo show`."""

    name: str
    computations: tuple[ComputationRow, ...]


def show(
    file: HloFile,
    computation: Annotated[
        str | None, typer.Option("--computation", metavar="NAME", help="Show this one only.", show_default=False)
    ] = None,
    elements: Annotated[
        int, typer.Option("--elements", metavar="N", min=0, help="Leave out constants of more elements.")
    ] = _ELEMENTS,
    sources: Annotated[bool, typer.Option("--sources", help="Put the model's line behind each instruction.")] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="Print every element and all metadata: text to read again.")
    ] = False,
    json: Json = False,
) -> None:
    """Show a module as HLO text.

    Files may be hlo.pb (a module, or one in a snapshot), HLO text, and StableHLO as text or bytecode where jaxlib is
    installed.
    """
    with report("hlo show", json, file=file, computation=computation) as out:
        from formats.hlo.text import print_instruction, print_module  # deferred: start-up

        module = open_module(file)
        chosen = [each for each in module.computations if computation in (None, each.name)]
        if not chosen:
            names = ", ".join(each.name for each in module.computations[:8])
            raise NotFoundError(f"{file}: there is no computation {computation!r}; there are {names}")
        most = None if whole else elements

        def lines() -> list[str]:
            if whole and computation is None:
                return print_module(module).splitlines()
            found = [f"HloModule {module.name}"]
            for each in chosen:
                found += ["", f"{'ENTRY ' if each is module.entry else ''}{each.name} {{"]
                for one in each.instructions:
                    source = module.source(one) if sources else None
                    text = print_instruction(one, most_elements=most, metadata=whole)
                    found.append(
                        f"  {'ROOT ' if one is each.root else ''}{text}" + (f"  // {source}" if source else "")
                    )
                found.append("}")
            return found

        out.lines = lines
        if json:
            out.result = Shown(module.name, tuple(
                ComputationRow(each.name, each is module.entry, each.root.name, tuple(
                    InstructionRow(one.name, one.opcode, str(one.shape), tuple(o.name for o in one.operands),
                                   print_instruction(one, most_elements=most, metadata=whole),
                                   str(module.source(one)) if module.source(one) else None)
                    for one in each.instructions
                )) for each in chosen
            ))  # fmt: skip


app = command_app(show, result=Shown)
