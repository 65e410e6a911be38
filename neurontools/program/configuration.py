"""One configuration of a run: every option that decides it, from the command line to the device."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.settings import Settings

__all__ = ["OPTIONS", "UNITS", "USUAL", "RunConfiguration"]

# How the command line spells each field; what is not here is no option.
OPTIONS: dict[str, str] = {
    "arguments": "ARGS",
    "launch": "--launch",
    "target": "--target",
    "lnc": "--lnc",
    "inputs": "--inputs",
    "inputs_from": "--inputs-from",
    "seed": "--seed",
    "timing": "--no-timing",
    "act": "--act",
    "hang_timeout_ps": "--hang-timeout",
    "max_steps": "--max-instructions",
    "limit_ps": "--limit",
    "max_seconds": "--max-time",
    "nki": "--nki",
    "precise_fp": "--precise-fp",
    "lenient": "--lenient",
    "schedule": "--schedule",
    "checks": "--tool",
    "dump_dir": "--dump-dir",
    "record": "--record",
}


# What a value of these fields is counted in, as the command line spells it.
UNITS: dict[str, str] = {"hang_timeout_ps": "ps", "limit_ps": "ps", "max_seconds": "s"}

# What ends a run that its caller has not bounded: completions, and seconds of this machine's time.
_USUAL_STEPS, _USUAL_SECONDS = 100_000_000, 600.0

# Fields that say nothing about the run itself, or that are spelled in a way of their own.
_BESIDE = ("arguments", "precise_fp", "checks", "dump_dir", "record")


@dataclass(frozen=True)
class RunConfiguration:
    """What decides a run beside its file.

    `arguments` are a script's, `launch` is the number of one of its launches, from 1, `nki` the package that it
    imports (auto, neurontools or installed), `precise_fp` its NKI_PRECISE_FP, and `lnc` counts for kernels that are
    launched without `kernel[n]`. A `lenient` run only warns of the hardware's limits that kernels break; with
    `schedule` operations of kernels go ahead of others that wait. `inputs` is an .npz, "zeros", "random" or
    "random:SEED", `inputs_from` a folder that the Neuron runtime dumped. Of `max_steps`, `limit_ps` and `max_seconds`,
    0 is a budget without end, None one that nobody chose. `checks` are those of `emulator.checks`; `dump_dir` is where
    failures are dumped, `record` where the run is recorded. The others are those of `emulator.settings.Settings`.
    `given` has the spelling of each option that the command line gave, even where its value is the default.
    """

    arguments: tuple[str, ...] = ()
    launch: int = 1
    target: str | None = None
    lnc: int | None = None
    inputs: str | None = None
    inputs_from: Path | None = None
    seed: int | None = None
    timing: bool = True
    act: str = "exact"
    hang_timeout_ps: int | None = None
    max_steps: int | None = None
    limit_ps: int | None = None
    max_seconds: float | None = None
    nki: str = "auto"
    precise_fp: str | None = None
    checks: tuple[str, ...] = ()
    dump_dir: Path | None = None
    record: Path | None = None
    lenient: bool = False
    schedule: bool = False
    given: Mapping[str, str] = field(default_factory=dict, compare=False)

    def chosen(self) -> dict[str, str]:
        """Return, by field, the spelling of every option that somebody chose."""
        values = zip(_FIELDS, _VALUES(self), _VALUES(USUAL), strict=True)
        changed = {name: OPTIONS[name] for name, value, usual in values if value != usual}
        return {**changed, **self.given}

    def settings(self) -> Settings:
        """Return the part of the configuration that the device is made with."""
        from emulator.settings import Settings  # deferred: start-up

        return Settings(self.target, self.seed, self.timing, self.act, self.hang_timeout_ps, self.max_steps or None,
                        self.limit_ps or None, self.max_seconds or None)  # fmt: skip

    def bounded(self, *, always: bool = False, steps: int = _USUAL_STEPS) -> RunConfiguration:
        """Return the configuration with a budget where nobody chose one: in continuous integration, or `always`."""
        if not always and os.environ.get("CI", "").lower() not in ("1", "true", "yes"):
            return self
        return replace(self, max_steps=steps if self.max_steps is None else self.max_steps,
                       max_seconds=_USUAL_SECONDS if self.max_seconds is None else self.max_seconds)  # fmt: skip

    def command_line(self, command: str, file: Path, *more: str, without: tuple[str, ...] = ()) -> str:
        """Return the command that runs a file in this configuration again, quoted for a shell.

        `more` are further options of the command, `without` fields that it has no option for.
        """
        words = ["neurontools", *command.split(), str(file)]
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name not in OPTIONS or one.name in (*_BESIDE, *without) or value == one.default:
                continue
            words.append(OPTIONS[one.name])
            if not isinstance(value, bool):
                words.append(f"{value}{UNITS.get(one.name, '')}")
        words += more
        words += ["--", *self.arguments] if self.arguments else []
        text = shlex.join(words)
        return text if self.precise_fp is None else f"NKI_PRECISE_FP={self.precise_fp} {text}"


USUAL = RunConfiguration()
_FIELDS = tuple(one.name for one in fields(USUAL) if one.name in OPTIONS)
_VALUES = attrgetter(*_FIELDS)
