"""`neurontools hlo tokens check`: whether the collectives of each stream stand in a total order."""

from __future__ import annotations

from typing import Annotated

from formats.named_tuple import NamedTuple
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json, Quiet
from neurontools.command.output import report
from neurontools.hlo.opening import HloFile, open_module
from neurontools.text.table import count


class NeighboursRow(NamedTuple):
    """Two collectives of one stream that follow each other."""

    stream: int
    first: str
    second: str
    ordered: Annotated[bool, "whether the second needs the first's result, or a token from it"]


class TokensCheck(NamedTuple):
    """The result of `hlo tokens check`."""

    ordered: bool
    collectives: int
    with_token: int
    streams: tuple[int, ...]
    neighbours: tuple[NeighboursRow, ...]


def check(file: HloFile, json: Json = False, quiet: Quiet = False, error_exitcode: ErrorExitCode = None) -> None:
    """Prove that the collectives of each stream stand in a total order.

    Two ranks that run unordered collectives in different orders wait for each other for ever. The exit status is 1 when
    two of a stream are not ordered.
    """
    with report("hlo tokens check", json, quiet=quiet, file=file) as out:
        from formats.hlo.verify import need_valid  # deferred: start-up
        from neurontools.hlo.tokens.threading import collectives, order_of  # deferred: start-up

        module = open_module(file)
        need_valid(module)
        every = collectives(module.entry)
        rows = tuple(NeighboursRow(*each) for each in order_of(module.entry))
        loose = [each for each in rows if not each.ordered]
        streams = tuple(sorted({each.stream for each in every}))
        tokens = sum(each.has_token for each in every)
        found = TokensCheck(not loose, len(every), tokens, streams, rows)
        out.result = found
        out.lines = lambda: [
            *(f"stream {each.stream}: nothing orders %{each.first} and %{each.second}" for each in loose),
            f"{file.name}: {count(len(every), 'collective')} in {count(len(streams), 'stream')}, "
            + ("in a total order" if not loose else f"{count(len(loose), 'pair')} not ordered"),
        ]
        if loose:
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


app = command_app(check, result=TokensCheck)
