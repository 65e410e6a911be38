"""Loops that run on the device: the body is traced once, and what it traced is carried out again and again there."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache

from neurontools.builder.trace import LoopEndOp, LoopOp
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import OpenLoop, Tracer, kernel_frame, kernel_line

__all__ = ["begin", "end", "while_test"]


def begin(t: Tracer, condition: NkiTensor, *, counting: bool, key: object = None) -> OpenLoop:
    """Begin a loop that goes on while the number in a tile is above 0 (`counting`), or is not 0."""
    if t.ordered:
        raise t.error("a loop on the device cannot stand inside nl.no_reorder(); put no_reorder inside its body")
    source = kernel_line()
    t.loop_edges.append(len(t.ops))
    t.ops.append(LoopOp(condition.base_view, counting, source))
    loop = OpenLoop(source, key, frozenset(t.cache))
    t.loops.append(loop)
    return loop


def end(t: Tracer, loop: OpenLoop) -> None:
    """End the body of a loop, which must be the innermost open one."""
    if not t.loops or t.loops[-1] is not loop:
        inner = t.loops[-1].source if t.loops else loop.source
        raise t.error("a loop on the device is left by break or return, which its branches cannot follow", inner)
    t.loops.pop()
    # A constant tile that the body made first is there only if the loop has had a turn.
    for name in t.cache.keys() - loop.cached:
        if isinstance(t.cache[name], NkiTensor) and t.cache[name].on_chip:
            del t.cache[name]
    t.loop_edges.append(len(t.ops))
    t.ops.append(LoopEndOp(loop.source))


def while_test() -> object | None:
    """Return what tells the `while` statement whose test the kernel evaluates just now; None where it is another one.

    Python asks for the truth of `while register:` before the first turn and after each; the caller begins the loop
    the first time and ends it the second.
    """
    frame = kernel_frame()
    if frame is None:
        return None
    code = frame.f_code
    # `f_lasti` counts bytes, of which an instruction has two
    place = next((p for i, p in enumerate(code.co_positions()) if i == frame.f_lasti // 2), None)
    statement = None if place is None else _while_statements(code.co_filename).get(place)
    return None if statement is None else (frame, statement)


@lru_cache(maxsize=256)
def _while_statements(file: str) -> dict[tuple[int | None, ...], int]:
    """Return the `while` statements of a file whose test is one value, by (line, end line, column, end column).

    Python 3.11 gives the place of the statement to the jump that asks for the truth of its test, later ones that of
    the test; both are keys of the statement's line.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    found: dict[tuple[int | None, ...], int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.While) and isinstance(node.test, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
            for part in (node, node.test):
                found[part.lineno, part.end_lineno, part.col_offset, part.end_col_offset] = node.lineno
    return found
