"""The kinds of files that can be run, and the options that mean nothing to each of them."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import typer

from formats.errors import FormatError
from neurontools.command.files import need_file
from neurontools.program.configuration import OPTIONS, USUAL, RunConfiguration

__all__ = ["REFUSED", "Kind", "fitting", "kind_of", "refuse_misplaced"]


class Kind(Enum):
    """What a file is, as the commands that run programs tell them apart."""

    SCRIPT = "script"
    ASSEMBLY = "assembly"
    NEFF = "neff"
    RECORDING = "recording"
    CORE = "core"


_ONLY_SCRIPTS = {
    "arguments": "only a script takes arguments",
    "launch": "only a script launches kernels",
    "nki": "only a script imports nki",
    "precise_fp": "only a script is built here",
    "lenient": "only a script is built here",
    "schedule": "only a script is built here",
}
_SET_BY_A_RUN = (
    "target",
    "lnc",
    "inputs",
    "inputs_from",
    "seed",
    "timing",
    "act",
    "hang_timeout_ps",
    "max_steps",
    "limit_ps",
)
_OVER = "a core dump is one moment of a run that was"

# Why an option is refused, by kind of file and field of the configuration; every other one is honoured.
REFUSED: dict[Kind, dict[str, str]] = {
    Kind.SCRIPT: {
        "inputs": "a script makes its own inputs; --inputs is for a NEFF",
        "inputs_from": "a script makes its own inputs; --inputs-from is for a NEFF",
    },
    Kind.ASSEMBLY: _ONLY_SCRIPTS,
    Kind.NEFF: _ONLY_SCRIPTS,
    Kind.RECORDING: dict.fromkeys((*_SET_BY_A_RUN, *_ONLY_SCRIPTS), "a recording brings its own"),
    Kind.CORE: dict.fromkeys(
        (*_SET_BY_A_RUN, "max_seconds", *_ONLY_SCRIPTS, "checks", "dump_dir", "record", "journal"), _OVER
    ),
}


def kind_of(file: Path) -> Kind:
    """Return what a file is: by its first bytes where they tell, else by the end of its name."""
    if file.suffix == ".py":
        return Kind.SCRIPT
    with need_file(file).open("rb") as stream:
        first = stream.read(4)
    if first == b"\x7fELF":
        return Kind.CORE
    if first == b"PK\x03\x04":
        return Kind.RECORDING
    return Kind.ASSEMBLY if file.suffix == ".s" else Kind.NEFF


def refuse_misplaced(file: Path, configuration: RunConfiguration, *, cores: bool = False) -> Kind:
    """Return the kind of a file; BadParameter for an option that means nothing to it.

    A core dump is a FormatError but for a command that opens `cores` too.
    """
    kind = kind_of(file)
    if kind is Kind.CORE and not cores:
        raise FormatError("a core dump cannot be run; `neurontools debug FILE` opens it", path=str(file),
                          expected="a script, a NEFF, a .s program or a recording")  # fmt: skip
    chosen = configuration.chosen()
    for name, why in REFUSED[kind].items():
        if name in chosen:
            raise typer.BadParameter(why, param_hint=chosen[name])
    if "inputs" in chosen and "inputs_from" in chosen:
        raise typer.BadParameter("goes without --inputs", param_hint=chosen["inputs_from"])
    return kind


def fitting(file: Path, configuration: RunConfiguration, shared: tuple[str, ...] = tuple(OPTIONS)) -> RunConfiguration:
    """Return a configuration that two files share, without those `shared` options that mean nothing to this one."""
    refused = set(REFUSED[kind_of(file)]).intersection(shared)
    usual: dict[str, Any] = {name: getattr(USUAL, name) for name in refused}
    kept = {name: text for name, text in configuration.given.items() if name not in refused}
    return replace(configuration, given=kept, **usual)
