"""The statements of a source file: which lines belong together, for breakpoints in the middle of a call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from formats.errors import NeuronError

__all__ = ["Reader", "statement_around"]

Reader = Callable[[str], "list[str]"]  # the lines of a source file; NeuronError where they may not or cannot be read


def statement_around(read: Reader, file: str, line: int) -> tuple[int, int] | None:
    """Return the first and last line of the simple statement around a line; None where none is known."""
    try:
        lines = read(file)
    except NeuronError:
        return None
    return _statement(lines, line)


def _statement(lines: Sequence[str], line: int) -> tuple[int, int] | None:
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = None
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                last = child.end_lineno or child.lineno
                if child.lineno <= line <= last:
                    body = getattr(child, "body", None)
                    if body is None:
                        found = child.lineno, last
                    # The head of a compound statement, such as the lines of an `if`, without its body.
                    elif line < body[0].lineno:
                        found = child.lineno, body[0].lineno - 1
                    waiting.append(child)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                waiting.append(child)
    return found
