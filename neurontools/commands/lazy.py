"""Command groups that import a command's module only when that command is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperGroup

__all__ = ["Entry", "LazyGroup", "command_app", "lazy_app"]


class Entry(NamedTuple):
    """Where a command lives, and the line that says what it does; the module's `app` holds the command."""

    module: str
    summary: str


class LazyGroup(TyperGroup):
    """A group whose help needs the table only; subclasses set `TABLE`."""

    TABLE: ClassVar[dict[str, Entry]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the table's order, which is the order people read."""
        return list(self.TABLE)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and return one command, or None."""
        entry = self.TABLE.get(cmd_name)
        if entry is None:
            return None
        command = self.commands.get(cmd_name)
        if command is None:
            command = typer.main.get_command(import_module(entry.module).app)
            command.name = cmd_name
            self.commands[cmd_name] = command
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; an unknown one gets the nearest names."""
        if args and args[0] not in self.TABLE and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.TABLE, n=2)
            ctx.fail(
                f"no command {args[0]!r} in {ctx.command_path!r}"
                + (f"; did you mean {' or '.join(near)}?" if near else "")
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands without importing one of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.TABLE.items()])


def lazy_app(table: dict[str, Entry], summary: str) -> typer.Typer:
    """Return a Typer group over a table of commands."""
    group = type("Group", (LazyGroup,), {"TABLE": table})
    app = typer.Typer(
        cls=group,
        help=summary,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    app.callback()(lambda: None)  # without a callback or a command Typer refuses to make a group
    return app


def command_app(function: Callable[..., None]) -> typer.Typer:
    """Return a Typer application of one command, as a table entry's module holds it."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(no_args_is_help=False)(function)
    return app
