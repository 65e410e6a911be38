"""`neurontools neff features`: what a NEFF asks of the runtime that loads it."""

from __future__ import annotations

from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json, NeffFile
from neurontools.files import open_neff_file
from neurontools.output import report


def features(file: NeffFile, json: Json = False) -> None:
    """List what a NEFF asks of the runtime.

    Bits of the header, and names in its definitions.  How the name of a bit is known stands beside it; a bit without a
    known name is unknown-N.
    """
    from neurontools.render.neff_features import feature_lines
    from neurontools.render.neff_features import features as found

    with report("neff features", json, file=file) as out:
        result = found(open_neff_file(file))
        out.result = result
        out.lines = lambda: feature_lines(result)


app = command_app(features)
