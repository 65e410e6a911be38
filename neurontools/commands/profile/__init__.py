"""`neurontools profile`: a group whose first command needs no name: `profile FILE` is `profile run FILE`."""

from __future__ import annotations

from typing import Any

import typer

from neurontools.commands.lazy import Entry, LazyGroup

LAZY: dict[str, Entry] = {
    "run": Entry("neurontools.commands.profile.run", "Show where the time goes, and what would save some of it."),
    "validate": Entry("neurontools.commands.profile.validate", "Emulate what was published, and compare the times."),
}


class Group(LazyGroup):
    """Takes what is no command's name for the arguments of `run`."""

    TABLE = LAZY

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Put the name of the first command where none is given."""
        if args and args[0] not in self.TABLE and args[0] != "--help":
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=Group,
    help="Show where the time of a program goes, and compare programs and what-ifs.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.callback()(lambda: None)  # without a callback or a command Typer refuses to make a group
