"""Open a module in whatever form it comes: HLO proto, HLO text; StableHLO where jaxlib is installed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.errors import FormatError, UnsupportedError
from neurontools.version import install_with

if TYPE_CHECKING:
    from formats.hlo import Module

__all__ = ["HloFile", "open_module", "parse_bytes"]

HloFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="An HLO module: hlo.pb, HLO text or StableHLO.", show_default=False)
]

_BYTECODE = b"ML\xefR"
_MLIR = (b"module", b"#", b"builtin.module", b'"builtin.module"')
# Both kinds of text may begin with comments, of which a licence is hundreds of bytes; only HLO has those of C.
_COMMENTS = re.compile(rb"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
# A computation that no module is written around, as tests of XLA have them: the parser says what is missing.
_COMPUTATION = re.compile(rb"(?![^\n]*[\0-\x08\x0e-\x1f])(?:ENTRY\s+)?%?[A-Za-z_][\w.-]*\s*[({]")


def open_module(path: Path) -> Module:
    """Read a file.  Raises FormatError with its path, UnsupportedError for StableHLO without jaxlib."""
    from formats.hlo.reader import MOST_BYTES  # deferred: start-up

    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    try:
        return parse_bytes(data)
    except FormatError as error:
        raise error.at(path=str(path)) from None
    except UnsupportedError as error:
        raise UnsupportedError(f"{path}: {error}") from None


def parse_bytes(data: bytes) -> Module:
    """Return the module in bytes of any form."""
    from formats.hlo import read_hlo  # deferred: start-up

    begin = match.end() if (match := _COMMENTS.match(data)) else 0
    start = data[begin : begin + 200]
    is_mlir = data.startswith(_BYTECODE) or start.startswith(_MLIR)
    if start.startswith(b"HloModule") or (not is_mlir and _COMPUTATION.match(start)):
        from formats.hlo.text import parse_module  # deferred: start-up

        try:
            return parse_module(data.decode())
        except UnicodeDecodeError as error:
            raise FormatError("HLO text is not UTF-8", offset=error.start) from None
    if is_mlir:
        return _from_stablehlo(data)
    return read_hlo(data)


def _from_stablehlo(data: bytes) -> Module:
    """Return StableHLO, text or bytecode, as HLO: by the converter in jaxlib."""
    from formats.hlo import read_hlo  # deferred: start-up

    try:
        from jax._src.interpreters import mlir as interpreters  # deferred: optional jax
        from jax._src.lib import _jax  # deferred: optional jax
        from jaxlib.mlir import ir  # deferred: optional jaxlib
    except ImportError:
        raise UnsupportedError(
            f"StableHLO is read with jaxlib, which is not installed: {install_with('jax')}"
        ) from None
    with interpreters.make_ir_context() as context:
        try:
            module = ir.Module.parse(data, context)
        except ir.MLIRError as error:
            raise FormatError(f"is no StableHLO: {str(error).splitlines()[0][:200]}") from None
        text = module.operation.get_asm(enable_debug_info=True)
    try:
        converted = _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
    except ValueError as error:
        raise FormatError(f"cannot be converted to HLO: {str(error).splitlines()[0][:200]}") from None
    return read_hlo(converted.as_serialized_hlo_module_proto())
