"""`and`, `or` and chained comparisons of masks, which Python decides by the truth of one side.

The expression that asks is read from the kernel's source. Where each of its sides is a comparison that gives a mask,
the truth that Python gets makes it go on to the next side, and that comparison is joined to those before it.
"""

from __future__ import annotations

import ast
import linecache
import threading
from itertools import islice
from types import FrameType
from typing import Any

__all__ = ["asked", "joined"]


class _Asked(threading.local):
    """The side whose truth was asked last: the frame that asked, how it is joined to the next side, and the mask."""

    frame: FrameType | None = None
    sign = ""
    mask: Any = None


_LAST = _Asked()


def asked(mask: Any, kind: type, frame: FrameType) -> bool | None:
    """Return what makes Python go on to the next side of the expression in which it asks for a mask's truth.

    None where a side may be anything but a comparison that gives a `kind` of mask.
    """
    expression = _expression(frame)
    sides: list[ast.expr] = []
    sign = "&"
    if isinstance(expression, ast.BoolOp):
        sides, sign = expression.values, "&" if isinstance(expression.op, ast.And) else "|"
    elif isinstance(expression, ast.Compare) and len(expression.ops) == 2 and not mask.joined:
        # Asked of what is joined already, it is `if` or `not` that asks.
        middle = expression.comparators[0]
        sides = [ast.Compare(expression.left, expression.ops[:1], [middle]),
                 ast.Compare(middle, expression.ops[1:], expression.comparators[1:])]  # fmt: skip
    if not sides or not all(isinstance(one, ast.Compare) and len(one.ops) == 1 for one in sides):
        return None
    if any(isinstance(part, ast.Call | ast.NamedExpr) for one in sides for part in ast.walk(one)):
        return None  # to look at a side carries it out: what it calls may trace words
    for one in sides:
        code = compile(ast.fix_missing_locations(ast.Expression(one)), "<side>", "eval")
        if not isinstance(eval(code, frame.f_globals, dict(frame.f_locals)), kind):
            return None
    _LAST.frame, _LAST.sign, _LAST.mask = frame, sign, mask
    return sign == "&"


def joined(mask: Any, frame: FrameType) -> Any:
    """Return a mask that a comparison in a frame has made, joined to the side before it, if its truth was asked."""
    if _LAST.frame is not frame:
        return mask
    before, sign = _LAST.mask, _LAST.sign
    _LAST.frame = _LAST.mask = None
    result = before & mask if sign == "&" else before | mask
    result.joined = True
    return result


def _expression(frame: FrameType) -> ast.expr | None:
    """Return the expression of the instruction that a frame carries out, None where its source is not to be had."""
    first, last, left, right = next(
        islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None, None, None, None)
    )
    if first is None or last is None or left is None or right is None:
        return None
    lines = [linecache.getline(frame.f_code.co_filename, one).encode() for one in range(first, last + 1)]
    lines[-1] = lines[-1][:right]
    lines[0] = lines[0][left:]
    try:
        return ast.parse(f"({b''.join(lines).decode()})", mode="eval").body
    except (SyntaxError, ValueError):
        return None
