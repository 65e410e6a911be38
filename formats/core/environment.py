"""Where a process runs, as a dump keeps it: machine, packages, variables of the Neuron stack, never a secret."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping

from formats.core.records import EnvironmentNote

__all__ = ["collect", "packages", "public_variables"]

_KEPT = re.compile(r"(?:NEURON|NKI|NCCL|FI|XLA|TPU)_|OMPI_COMM_WORLD_|SLURM_|(?:RANK|WORLD_SIZE|LOCAL_RANK)$")
_SECRET = re.compile(r"SECRET|TOKEN|PASSW|CREDENTIAL|PRIVATE|API_?KEY|ACCESS_?KEY|AUTH|SIGNATURE|COOKIE", re.IGNORECASE)
# user:password@ of an address, and what looks like a key of AWS.
_HIDDEN = re.compile(r"(?<=://)[^/@\s]+@|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|(?<==)[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")
_DISTRIBUTION = re.compile(r"(.+)-([^-]+)\.(?:dist-info|egg-info)$")
_LONGEST = 4096


def public_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the Neuron stack; those whose names speak of secrets are left out, keys are blanked."""
    return {
        name: _public(value)
        for name, value in sorted(environ.items())
        if _KEPT.match(name) and not _SECRET.search(name)
    }


def _public(text: str) -> str:
    """Return a text without secrets; it is cut last, since a pattern does not find half a secret."""
    return _HIDDEN.sub("***", text)[:_LONGEST]


def packages(folders: Iterable[str]) -> dict[str, str]:
    """Return installed distributions and versions, by the names of their metadata folders; no file is opened."""
    found: dict[str, str] = {}
    for folder in folders:
        try:
            entries = os.listdir(folder or ".")
        except OSError:
            continue
        for entry in entries:
            if matched := _DISTRIBUTION.fullmatch(entry):
                found.setdefault(matched[1].replace("_", "-").lower(), matched[2])
    return dict(sorted(found.items()))


def collect(environ: Mapping[str, str] = os.environ, arguments: Iterable[str] | None = None) -> EnvironmentNote:
    """Return the environment of this process."""
    system = platform.uname()
    return EnvironmentNote(
        hostname=system.node,
        system=f"{system.system} {system.release} {system.machine}",
        python=platform.python_version(),
        packages=packages(sys.path),
        variables=public_variables(environ),
        arguments=tuple(map(_public, sys.argv if arguments is None else arguments)),
    )
