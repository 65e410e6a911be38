"""`neurontools schema`: what the JSON documents of a command look like."""

from __future__ import annotations

from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.command.results import document_schema


class CommandRow(NamedTuple):
    """One command whose documents have a schema."""

    name: str
    summary: str


class Commands(NamedTuple):
    """The result of `schema` alone."""

    commands: list[CommandRow]


class CommandSchema(NamedTuple):
    """The result of `schema COMMAND`."""

    command: str
    schema: Annotated[dict[str, object], "the JSON Schema of what the command prints with --json, errors included"]


def schema(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND]", help="A command, such as neff info.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Print the JSON Schema of a command's documents.

    The schema describes what the command prints with --json, errors included.  It is derived from the type of the
    command's result.  Without a command the commands are listed.
    """
    from json import dumps  # deferred: start-up

    from neurontools.command.catalog import leaf_summaries, result_type  # deferred: start-up
    from neurontools.text.table import table  # deferred: start-up

    name = " ".join(command or ())
    with report("schema", json, command=name or None) as out:
        if name:
            described = CommandSchema(name, document_schema(name, result_type(name)))
            out.result = described
            out.lines = lambda: [dumps(described.schema, indent=2)]
        else:
            listed = Commands([CommandRow(*row) for row in leaf_summaries().items()])
            out.result = listed
            out.lines = lambda: table(["command", "summary"], listed.commands)


app = command_app(schema, result=Commands | CommandSchema)
