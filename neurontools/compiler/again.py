"""Compile a NEFF's own graph again with other options, as `overlap whatif` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.errors import FormatError, UnsupportedError
from formats.neff.fields import load
from formats.neff.operations import FLAGS, GRAPH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from formats.neff import Neff
    from neurontools.compiler.options import CompileOptions

__all__ = ["compile_again", "flags_of"]

_MOST = 1 << 16  # bytes of the member with options
_SHIFTS = (("all-gather", "weights", "early_ag_shift"), ("reduce-scatter", "gradients", "late_rs_shift"))


def flags_of(neff: Neff, path: str) -> CompileOptions:
    """Return the options that a NEFF of this compiler was compiled with; UnsupportedError where it has no graph."""
    from neurontools.compiler.options import CompileOptions, check_options  # deferred: start-up

    if GRAPH not in neff.archive:
        raise UnsupportedError(f"{path} carries no graph ({GRAPH}), so collectives cannot be called at other places or "
                               "on other streams: compile its module with `neurontools compile`")  # fmt: skip
    given: dict[str, Any] = {"limits": "ours"}
    if FLAGS in neff.archive:
        data = neff.need(FLAGS)
        if len(data) > _MOST:
            raise FormatError("options of the compilation are too long", path=path, field=FLAGS,
                              expected=f"at most {_MOST:,} bytes", got=f"{len(data):,}")  # fmt: skip
        given = load(data, f"{path}: {FLAGS}").raw
        unknown = given.keys() - set(CompileOptions._fields)
        if unknown:
            raise FormatError("unknown option of the compilation", path=path, field=FLAGS,
                              expected=", ".join(CompileOptions._fields), got=min(unknown)[:40])  # fmt: skip
    options = CompileOptions(**{"target": neff.target.name, "lnc": len(neff.subgraphs), **given})
    check_options(options)
    return options


def compile_again(neff: Neff, path: str, changes: Mapping[str, Any]) -> Neff:
    """Return the program of a NEFF's graph with some options changed; errors as of `flags_of`, and of the compiler.

    UnsupportedError where nothing of the graph can be shifted as the options say.
    """
    from formats.hlo import read_hlo  # deferred: start-up
    from formats.neff import open_neff  # deferred: start-up
    from neurontools.compiler.pipeline import compile_module  # deferred: start-up

    options = flags_of(neff, path)._replace(**changes)
    made = compile_module(read_hlo(neff.need(GRAPH)), options)
    for opcode, what, name in _SHIFTS:
        if changes.get(name, -1) >= 0 and opcode not in made.movable:
            raise UnsupportedError(f"{path} has nothing to shift: its graph has no {opcode} of {what} outside of loops")
    return open_neff(made.neff)
