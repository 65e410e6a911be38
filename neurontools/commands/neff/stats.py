"""`neurontools neff stats`: what a NEFF consists of, counted."""

from __future__ import annotations

from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json, NeffFile
from neurontools.files import open_neff_file
from neurontools.output import report


def stats(file: NeffFile, json: Json = False) -> None:
    """Count instructions, waits, transfers and bytes.

    Words by engine and instruction; an fp32 product counts its two passes, a transpose counts as none.
    """
    from neurontools.render.neff_stats import stats as found
    from neurontools.render.neff_stats import stats_lines

    with report("neff stats", json, file=file) as out:
        result = found(open_neff_file(file))
        out.result = result
        out.lines = lambda: stats_lines(result)


app = command_app(stats)
