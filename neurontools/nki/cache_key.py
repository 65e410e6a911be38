"""What a launch depends on, as one digest: the kernel's code, all it can reach, its arguments, and its surroundings.

A digest is a promise that tracing again would give the same file.  Whatever is not understood makes none: code that
looks at the outside world, writes variables of its surroundings, or reaches values of unknown kinds is traced again.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Iterable
from types import MethodType
from typing import Any

import formats
from formats.named_tuple import NamedTuple
from neurontools.nki.arguments import Arguments
from neurontools.nki.digest import Given, Unknown
from neurontools.nki.patches import replaced_names
from neurontools.nki.reach import reached

__all__ = ["Key", "key_of"]

_SWITCHES = ("NEURON_", "NEURONTOOLS_", "NKI_")


class Key(NamedTuple):
    """The digest of a launch; `may_print` tells whether tracing it may print, which is a part of what it comes to."""

    digest: str
    may_print: bool


def key_of(function: Any, arguments: Arguments, surroundings: Iterable[object]) -> Key | None:
    """Return the digest of a launch, None where one cannot be vouched for; `surroundings` are target, grid and such."""
    if sys.gettrace() is not None:
        return None  # somebody steps through the kernel
    given = Given()
    try:
        given.put(_package(), sys.version, *surroundings)
        given.values([f"{name}={os.environ[name]}" for name in sorted(os.environ) if name.startswith(_SWITCHES)])
        if isinstance(function, MethodType):  # made anew by whoever looks it up
            given.value(function.__self__)
            function = function.__func__
        given.arguments(arguments)
        walk = reached([function, *given.roots, *replaced_names()])
    except (Unknown, RecursionError):
        return None
    if walk.reason is not None:
        return None
    # An argument may be the very object that the kernel reaches by another way, too.
    common = sorted((given.seen[one], walk.seen[one]) for one in given.seen.keys() & walk.seen.keys())
    whole = hashlib.sha256(given.hash.digest() + walk.digest + repr(common).encode())
    return Key(whole.hexdigest(), walk.may_print)


@functools.cache
def _package() -> bytes:
    """Return the digest of name, size and time of each source file of this toolkit: another version builds others."""
    found = []
    for package in map(os.path.dirname, (str(formats.__file__), os.path.dirname(os.path.abspath(__file__)))):
        for folder, _, names in os.walk(package):
            for name in names:
                if name.endswith(".py"):
                    status = os.stat(os.path.join(folder, name))
                    found.append((os.path.join(folder, name), status.st_size, status.st_mtime_ns))
    # Each launch asks for it: of hundreds of files only the digest is handed on.
    return hashlib.sha256(repr(sorted(found)).encode("utf-8", "backslashreplace")).digest()
