"""Compiled modules that are kept, in the layout of the Neuron compile cache.

    <folder>/neuronxcc-<version>/MODULE_<graph>+<flags>/
        model.hlo_module.pb  compile_flags.json  model.neff  model.done

Source: compiler.md 5.5. `report.json` beside them is ours. An entry counts when model.done is there.
"""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import tempfile
from pathlib import Path

from formats.whole_files import umask
from neurontools.builder.report import CoreReport, Report
from neurontools.compiler.cache_keys import key_of
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.pipeline import Compiled
from neurontools.compiler.precision import Cast
from neurontools.compiler.signature import Names
from neurontools.version import __version__

__all__ = ["CompileCache"]

_NEFF, _DONE, _FLAGS, _MODULE, _REPORT = (
    "model.neff", "model.done", "compile_flags.json", "model.hlo_module.pb", "report.json",
)  # fmt: skip


class CompileCache:
    """A folder of kept modules."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / f"neuronxcc-neurontools-{__version__}"

    @staticmethod
    def key(module: bytes, options: CompileOptions) -> str:
        """Return the name of an entry: a hash of the module's bytes, and one of the options."""
        return key_of(module, options._asdict())

    def find(self, module: bytes, options: CompileOptions) -> Compiled | None:
        """Return a module that was kept; anything wrong with the entry makes it none."""
        place = self.folder / self.key(module, options)
        try:
            if not (place / _DONE).exists():
                return None
            told = json.loads((place / _REPORT).read_text(encoding="utf-8"))
            neff = (place / _NEFF).read_bytes()
            cores = tuple(CoreReport(**one) for one in told["cores"])
            made = Compiled(
                neff, Names(tuple(told["inputs"]), tuple(told["outputs"])),
                tuple((dtype, tuple(shape)) for dtype, shape in told["results"]),
                Report(told["name"], told["target"], bool(told["extended"]), cores),
                tuple(Cast(*one) for one in told["casts"]), {}, told["listing"],
            )  # fmt: skip
            return made if hashlib.sha256(neff).hexdigest() == told["sha256"] else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def keep(self, module: bytes, options: CompileOptions, made: Compiled) -> None:
        """Keep a module; the entry appears whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        place = self.folder / self.key(module, options)
        beside = Path(tempfile.mkdtemp(prefix=".new-", dir=self.folder))
        try:
            (beside / _MODULE).write_bytes(module)
            (beside / _NEFF).write_bytes(made.neff)
            (beside / _FLAGS).write_text(json.dumps(options._asdict()), encoding="utf-8")
            told = {
                "inputs": made.names.inputs,
                "outputs": made.names.outputs,
                "results": made.results,
                "name": made.report.name,
                "target": made.report.target,
                "extended": made.report.extended,
                "cores": [one._asdict() for one in made.report.cores],
                "casts": made.casts,
                "listing": made.listing,
                "sha256": hashlib.sha256(made.neff).hexdigest(),
            }
            (beside / _REPORT).write_text(json.dumps(told), encoding="utf-8")
            (beside / _DONE).touch()
            beside.chmod(0o777 & ~umask())  # mkdtemp makes private folders; a cache is for everybody
            if place.exists():
                shutil.rmtree(place, ignore_errors=True)
            try:
                beside.rename(place)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise  # else another process has just kept the same
        finally:
            shutil.rmtree(beside, ignore_errors=True)  # what has become the entry is not there any more
