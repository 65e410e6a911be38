"""What `neurontools run` asks of kernels that a script launches, and what those launches left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Launch", "RunOptions", "current", "using"]


class Launch(NamedTuple):
    """One kernel launch: the built file and what running it gave."""

    kernel: str
    neff: bytes
    result: Any
    dump: str | None = None  # the dump directory of a launch that failed


@dataclass
class RunOptions:
    """Settings of the emulator for every launch, and a place to note each launch.

    `lnc` is used for kernels launched without `kernel[n]`; `checks` and `hang_timeout_ps` are those of
    `emulator.runtime.run`; `dump_dir` is where failures are dumped; `on_launch` is called after each run, before faults
    are raised; `recorder` is called before each run with kernel, file and inputs, and returns an observer of it.
    """

    seed: int | None = None
    timing: bool = True
    lnc: int | None = None
    checks: tuple[str, ...] = ()
    hang_timeout_ps: int | None = None
    dump_dir: Path | None = None
    on_launch: Callable[[Launch], None] | None = None
    recorder: Callable[[str, bytes, dict[str, Any]], Any] | None = None
    launches: list[Launch] = field(default_factory=list)

    def note(self, kernel: str, neff: bytes, result: Any, dump: str | None = None) -> None:
        """Keep one launch."""
        launch = Launch(kernel, neff, result, dump)
        self.launches.append(launch)
        if self.on_launch is not None:
            self.on_launch(launch)


_current: RunOptions | None = None


def current() -> RunOptions | None:
    """Return the options of the running command, None outside `neurontools run`."""
    return _current


@contextmanager
def using(options: RunOptions) -> Iterator[RunOptions]:
    """Put options into force for a while."""
    global _current
    before, _current = _current, options
    try:
        yield options
    finally:
        _current = before
