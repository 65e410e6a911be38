"""Variables of the environment that a launch asks for, as they are at that moment."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["switch"]

_PLAIN = os.environ.__class__
_keys: dict[str, Any] = {}


def switch(name: str, default: str = "") -> str:
    """Return a variable, `default` where it is not set.

    `os.environ.get` encodes a name, raises an error where it is not set and catches it, in six functions. Hardly any
    of these is set, and each launch asks for seven.
    """
    environ = os.environ
    if environ.__class__ is _PLAIN:
        key = _keys.get(name)
        if key is None:
            key = _keys[name] = environ.encodekey(name)
        held = getattr(environ, "_data", None)  # a private name: without it, the usual way
        if held is not None and key not in held:
            return default
    return environ.get(name, default)
