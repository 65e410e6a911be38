"""`neurontools batch`: run, check and profile many programs, side by side."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from neurontools.command.exits import ExitStatus
from neurontools.command.files import need_place
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, Quiet
from neurontools.command.output import report, write_whole
from neurontools.text.table import count, duration, table
from neurontools.tuning.results import Batch


def _progress() -> Callable[[int, int, int], None] | None:
    """Return what counts tasks on a terminal."""
    if not sys.stderr.isatty():
        return None

    def tell(done: int, tasks: int, failed: int) -> None:
        print(f"\r{done} of {tasks}, {failed} failed  ", end="\r", file=sys.stderr, flush=True)

    return tell


def _lines(batch: Batch) -> Iterator[str]:
    rows = [[one.name, one.action, "" if one.time_ps is None else duration(one.time_ps), f"{one.seconds:.2f} s",
             one.what] for one in batch.results]  # fmt: skip
    yield from table(["program", "command", "emulated", "took", "outcome"], rows)
    yield ""
    yield f"{count(batch.tasks, 'task')}, {batch.failed} failed, {batch.seconds:.1f} s"


def batch(
    manifest: Annotated[Path, typer.Argument(metavar="MANIFEST", help="Which programs (TOML).", show_default=False)],
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, max=256, help="Programs at a time.")] = 1,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="Use a Dask cluster: its scheduler's address, or local.",
            show_default=False,
        ),
    ] = None,
    junit_file: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="Write a test report as JUnit XML.", show_default=False),
    ] = None,
    max_seconds: Annotated[
        float, typer.Option("--task-seconds", metavar="S", min=0.1, help="Budget of one command on this machine.")
    ] = 600.0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Run, check and profile many programs, side by side.

    The manifest is TOML: a table `[[program]]` with `file`, relative to the manifest, and `do`, some of "run", "check"
    and "profile"; `name`, `arguments` of a script and `options` of the commands are optional.  Each command runs in a
    process of its own.  The exit status is 1 when one of them ended with another status than 0.
    """
    with report("batch", json, quiet=quiet, manifest=manifest, cluster=cluster, junit=junit_file) as out:
        from neurontools.tuning.batch import junit, run_batch  # deferred: start-up

        if junit_file is not None:
            need_place(junit_file)
        found = out.result = run_batch(manifest, jobs=jobs, cluster=cluster, max_seconds=max_seconds,
                                       tell=None if quiet else _progress())  # fmt: skip
        out.lines = lambda: _lines(found)
        if junit_file is not None:
            with write_whole(junit_file) as beside:
                beside.write_text("\n".join(junit(found)) + "\n", encoding="utf-8")
        if found.failed:
            out.status = ExitStatus.FINDING


app = command_app(batch, Batch)
