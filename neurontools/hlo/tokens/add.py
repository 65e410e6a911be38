"""`neurontools hlo tokens add`: Order the collectives of a module by tokens."""

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


def add(
    file: HloFile,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the module goes: hlo.pb.")],
    json: Json = False,
) -> None:
    """Thread tokens through the collectives of a module.

    Each collective of a stream then depends on the one before; `stream_id` in the frontend attributes names the stream,
    0 where there is none. Those that have a token already are left alone.
    """
    with report("hlo tokens add", json, file=file, output=output) as out:
        from formats.hlo import save_hlo  # deferred: start-up
        from formats.hlo.verify import need_valid  # deferred: start-up
        from neurontools.hlo.tokens.threading import add_tokens  # deferred: start-up

        need_place(output)
        module = open_module(file)
        need_valid(module)
        changed = add_tokens(module)
        save_hlo(output, module)
        out.result = TokensResult(changed, str(output))
        out.lines = lambda: [f"{output}: {count(changed, 'collective')} got a token"]


app = command_app(add, result=TokensResult)
