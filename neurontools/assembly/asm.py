"""`neurontools asm`: text to words, alone or in a NEFF."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.files import need_place, read_text
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, TargetName
from neurontools.command.output import report, write_whole
from neurontools.text.table import count


class Assembled(NamedTuple):
    """The result of `asm`: the file that was written, and the instructions of every engine."""

    output: str
    target: str
    dialect: str
    words: dict[str, int]
    size: int


def view(found: Assembled) -> list[str]:
    """Return the result in one line."""
    listed = ", ".join(f"{engine} {number}" for engine, number in found.words.items()) or "no instructions"
    return [
        f"{found.output}: {count(sum(found.words.values()), 'instruction')} for {found.target} ({listed}), "
        f"{found.size:,} bytes"
    ]


def asm(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A program in text.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file to write; the program's name with .neff (or .bin) when left out.",
            show_default=False,
        ),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Write the words of the one engine alone, as a .bin file does too.")
    ] = False,
    target: TargetName = None,
    json: Json = False,
) -> None:
    """Assemble a .s file into a NEFF or into raw instruction words.

    Words are written in the grammar that `neurontools disasm` prints.  Directives declare the rest: .target, .name,
    .dialect, .input, .output, .constant, .var, .queue, .dma, .engine, and labels; docs/assembler.md describes them.
    """
    from neurontools.assembly.assembler import parse_program  # deferred: start-up

    raw = raw or (output is not None and output.suffix == ".bin")
    output = output or file.with_suffix(".bin" if raw else ".neff")
    with report("asm", json, file=file, output=output, target=target, raw=raw) as out:
        program = parse_program(read_text(file), str(file), target)
        if raw:
            if len(program.words) != 1:
                raise typer.BadParameter(
                    f"a raw stream holds one engine; this program has {len(program.words)}", param_hint="--raw"
                )
            data = program.stream(next(iter(program.words)))
        else:
            from neurontools.assembly.assemble_neff import to_neff  # deferred: start-up

            data = to_neff(program)
        need_place(output)
        if output.exists() and output.samefile(file):
            raise typer.BadParameter(f"{output} is the program itself", param_hint="--output")
        with write_whole(output) as beside:
            beside.write_bytes(data)
        words = {engine: len(items) for engine, items in program.words.items()}
        found = Assembled(str(output), program.target.name, program.dialect, words, len(data))
        out.result = found
        out.lines = lambda: view(found)


app = command_app(asm, result=Assembled)
