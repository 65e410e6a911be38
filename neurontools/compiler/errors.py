"""Errors of the compiler: a documented code, the operation, its source line, what is allowed."""

from __future__ import annotations

from formats.errors import FormatError, NeuronError, UnsupportedError
from neurontools.compiler.graph import Node, Origin

__all__ = ["CompileError", "KernelError", "UnsupportedGraphError", "failed", "no_lowering"]


class CompileError(FormatError):
    """Say which documented rule of the compiler a graph or an argument breaks; `code` is as EVRF035."""

    def __init__(self, code: str, what: str, origin: Origin | None = None) -> None:
        self.code, self.origin = code, origin
        super().__init__(f"[NCC_{code}] {_located(what, origin)}")


class UnsupportedGraphError(UnsupportedError):
    """Say which operation of a graph this compiler does not do; `code` is the documented one for such a case."""

    def __init__(self, code: str, what: str, origin: Origin | None = None) -> None:
        self.code, self.origin = code, origin
        super().__init__(f"[NCC_{code}] {_located(what, origin)}")


class KernelError(NeuronError, RuntimeError):
    """Tell that a compiled function faulted or hung when it ran."""


def _located(what: str, origin: Origin | None) -> str:
    if origin is None:
        return what
    place = f" at {origin.file}:{origin.line}" if origin.line else ""
    return f"%{origin.name}: {what}{place}"


def failed(code: str, what: str, origin: Origin | None = None) -> CompileError:
    """Return the error of a documented code."""
    return CompileError(code, what, origin)


def no_lowering(node: Node, what: str) -> NeuronError:
    """Return the error for an operation that this compiler does not lower."""
    return UnsupportedGraphError("EUOC002", f"{what} is not supported", node.origin)
