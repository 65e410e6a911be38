"""The settings of a run: all that decides what a device does, beside the program and its inputs."""

from __future__ import annotations

from formats.named_tuple import NamedTuple
from formats.targets import Target

__all__ = ["USUAL", "Settings"]


class Settings(NamedTuple):
    """How a program is to be run; the same program, inputs and settings give the same run.

    `target` is a chip of the program's generation, None for the one it was built for. `seed` shakes the schedule,
    `timing=False` gives every step the same time, `act` is "exact" (library functions) or "table" (the file's own,
    where it has them). `max_steps` (completions), `limit_ps` (emulated time) and `max_seconds` (this machine's time)
    end a run that does not end by itself, `hang_timeout_ps` one in which an engine waits longer than that.
    """

    target: Target | str | None = None
    seed: int | None = None
    timing: bool = True
    act: str = "exact"
    hang_timeout_ps: int | None = None
    max_steps: int | None = None
    limit_ps: int | None = None
    max_seconds: float | None = None


USUAL = Settings()
