"""What `neurontools compile diff` does: compile what is not compiled, run both sides, put them side by side."""

from __future__ import annotations

from pathlib import Path

from formats.whole_files import passing_folder
from neurontools.command.output import Report
from neurontools.compiler.diffing import CompileDifference, Side, differences, options_of, pass_changes, side_of
from neurontools.compiler.driver import compile_file
from neurontools.compiler.pipeline import PASSES
from neurontools.compiler.report_command import reported
from neurontools.compiler.reporting import CompileReport

__all__ = ["compared"]


def compared(one: tuple[Path, str], other: tuple[Path, str], inputs: str, out: Report) -> CompileDifference:
    """Return two sides, each a file and its options as text, next to each other."""
    sides: list[Side] = []
    reports: list[CompileReport] = []
    dumps: list[dict[str, str]] = []
    with passing_folder("diff") as folder:
        for number, (file, text) in enumerate((one, other)):
            neff, options = file, None
            if file.suffix != ".neff":
                options = options_of(text)
                made, _ = compile_file(file, options, dump_after=PASSES)
                neff = folder / f"{number}.neff"
                neff.write_bytes(made.neff)
                dumps.append(made.dumps)
            found = reported(neff, inputs, out)
            reports.append(found)
            sides.append(side_of(str(file), found, neff.stat().st_size, options))
    passes = pass_changes(dumps[0], dumps[1]) if len(dumps) == len(sides) else ()
    return differences((sides[0], sides[1]), reports, passes)
