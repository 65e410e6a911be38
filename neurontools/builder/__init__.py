"""The builder: traces of the front end become a NEFF.

It places tiles, expands operations into instruction words, derives what must wait for what from the bytes they share,
and writes streams, variables, queues and debug info.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neurontools.builder.errors import AllocationError, BuildError

if TYPE_CHECKING:
    from neurontools.builder.built import BuiltNeff, build
    from neurontools.builder.report import Report

__all__ = ["AllocationError", "BuildError", "BuiltNeff", "Report", "build"]

_LAZY = {"BuiltNeff": "built", "build": "built", "Report": "report"}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        from importlib import import_module  # deferred: start-up

        found = globals()[name] = getattr(import_module(f"neurontools.builder.{_LAZY[name]}"), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
