"""`neurontools hlo tokens strip`: a module without the tokens of its collectives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.command.files import need_place
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.hlo.opening import HloFile, open_module
from neurontools.hlo.tokens.threading import TokensResult
from neurontools.text.table import count


def strip(
    file: HloFile,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the module goes: hlo.pb.")],
    json: Json = False,
) -> None:
    """Take the tokens of the collectives out of a module."""
    with report("hlo tokens strip", json, file=file, output=output) as out:
        from formats.hlo import save_hlo  # deferred: start-up
        from formats.hlo.verify import need_valid  # deferred: start-up
        from neurontools.hlo.tokens.threading import strip_tokens  # deferred: start-up

        need_place(output)
        module = open_module(file)
        need_valid(module)
        changed = strip_tokens(module)
        save_hlo(output, module)
        out.result = TokensResult(changed, str(output))
        out.lines = lambda: [f"{output}: {count(changed, 'collective')} without a token now"]


app = command_app(strip, result=TokensResult)
