"""Core dumps of executions that fail in libnrt or nrtpy: the configured collector is called as the runtime calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from emulator.runtime.session import Failure
from formats.errors import FormatError
from formats.whole_files import passing_folder
from neurontools.dump.call import Call
from neurontools.dump.hook import DumpSettings, hand_over
from neurontools.libnrt.console import console

__all__ = ["collector"]


def collector(environ: Mapping[str, str]) -> Callable[[Failure], object] | None:
    """Return what is to be called for a failure, None where the variables want no dump."""
    settings = DumpSettings.of(environ)
    if settings is None:
        return None

    def collect(failure: Failure) -> None:
        call = Call(
            failure.device, settings.local, settings.prefix, failure.model.name, environ,
            status=failure.status, location=failure.call, place=(failure.core.device, failure.core.physical[0]),
        )  # fmt: skip
        try:
            with passing_folder("core") as folder:
                _, notes = hand_over(call, failure.log, failure.events, environ, folder)
        except (OSError, FormatError) as error:
            notes = [f"no dump: {' '.join(str(error).split())}"]
        for note in notes:
            console("console", f"libnrt (neurontools): {note}")

    return collect
