"""Command groups that import a command's module only when that command is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from neurontools.command.table import TABLE, Listed

__all__ = ["CommandApp", "LazyGroup", "command_app", "rows_of"]


def rows_of(group: str) -> dict[str, Listed]:
    """Return the rows of the table that are commands and groups right below a group, by their last word."""
    before = f"{group} " if group else ""
    names = {name.removeprefix(before): name for name in TABLE if name.startswith(before)}
    return {name: TABLE[whole] for name, whole in names.items() if " " not in name}


class LazyGroup(TyperGroup):
    """A group whose help needs the table only; a subclass sets `GROUP`, its name without `neurontools`."""

    GROUP: ClassVar[str] = ""

    @property
    def rows(self) -> dict[str, Listed]:
        """Return the group's rows of the table."""
        return rows_of(self.GROUP)

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Put the name of the default command, where the group has one, before arguments that name no command."""
        rows = self.rows
        default = next((name for name, entry in rows.items() if entry.default), None)
        if default is not None and args and args[0] not in rows and args[0] != "--help":
            args = [default, *args]
        elif default is not None and not args and not _asks_for_arguments(self.get_command(ctx, default)):
            args = [default]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the table's order, which is the order people read."""
        return list(self.rows)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and return one command, or None."""
        entry = self.rows.get(cmd_name)
        if entry is None:
            return None
        command = self.commands.get(cmd_name)
        if command is None:
            whole = f"{self.GROUP} {cmd_name}".strip()
            app = import_module(entry.module).app if entry.module else _group_app(whole, entry.summary)
            command = typer.main.get_command(app)
            command.name = cmd_name
            self.commands[cmd_name] = command
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; an unknown one gets the nearest names."""
        if args and args[0] not in self.rows and not args[0].startswith("-"):
            from difflib import get_close_matches  # deferred: start-up

            near = get_close_matches(args[0], self.rows, n=2)
            ctx.fail(
                f"no command {args[0]!r} in {ctx.command_path!r}"
                + (f"; did you mean {' or '.join(near)}?" if near else "")
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands without importing one of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.rows.items()])


def _asks_for_arguments(command: Any) -> bool:
    return any(parameter.required for parameter in command.params)


def _group_app(group: str, summary: str) -> typer.Typer:
    """Return a Typer group over the table's rows below a group."""
    app = typer.Typer(
        cls=type("Group", (LazyGroup,), {"GROUP": group}),  # Typer makes it, and passes no arguments of ours
        help=summary,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    app.callback()(lambda: None)  # without a callback or a command Typer refuses to make a group
    return app


class CommandApp(typer.Typer):
    """A Typer application of one command that knows the type of its result (see `neurontools.command.results`)."""

    result: Any = None


class _Command(TyperCommand):
    """A command whose numbers are numbers: NaN is within every range that an option states, and beyond no tolerance."""

    def invoke(self, ctx: Any) -> Any:
        """Refuse options that are NaN, then call the command."""
        for one in self.params:
            value = ctx.params.get(one.name)
            if isinstance(value, float) and math.isnan(value):
                raise typer.BadParameter("nan is no number", ctx=ctx, param=one)
        return super().invoke(ctx)


def command_app(function: Callable[..., None], result: Any = None, *, default: bool = False) -> CommandApp:
    """Return a Typer application of one command, as `app` of the command's module; `result` is its result's type.

    A `default` command's name can be left out after its group's: the table of commands takes note of it.
    """
    app = CommandApp(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(no_args_is_help=False, cls=_Command)(function)
    app.result = result
    return app
