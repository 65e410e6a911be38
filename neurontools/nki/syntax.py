"""What the text of a kernel tells of a place in it: the loops around a line, the variable that a value becomes."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice
from types import CodeType, FrameType

from formats.named_tuple import NamedTuple
from formats.neff.visits import Loop

__all__ = ["NAMED", "assigned_name", "loops_of"]

_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_KNOWN = 1 << 14  # places of calls whose names are kept
# What names, loops or results hang on, and what holds none of these inside; most of a tree is the latter.
_TOLD = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.For, ast.While, ast.ListComp, ast.SetComp,
                   ast.DictComp, ast.GeneratorExp, ast.Return, ast.Assign, ast.AnnAssign, ast.NamedExpr})  # fmt: skip
_LEAVES = frozenset({ast.Name, ast.Constant, ast.Load, ast.Store, ast.alias})
_Position = tuple[int, int, int, int]  # line and column of the first character, and of the one behind the last


NAMED: dict[tuple[int, int], tuple[CodeType, str, bool]] = {}
"""What a call's value becomes, by the identity of its code and its instruction, as far as `assigned_name` was asked."""


class _Block(NamedTuple):
    """Lines that a loop repeats, in the function of a name and first line."""

    first: int
    last: int
    function: tuple[str, int]
    loop: Loop


class _Text(NamedTuple):
    """What is known of a part of a file; `returns` are where values of calls leave functions as they are."""

    blocks: tuple[_Block, ...]
    assigned: tuple[tuple[_Position, str, tuple[str, int]], ...]
    returns: tuple[_Position, ...]


_NOTHING = _Text((), (), ())


@lru_cache(maxsize=16)
def _statements(file: str) -> list[ast.stmt]:
    """Return the outermost statements of a file; whole trees are large, so few are kept."""
    try:
        return ast.parse("".join(linecache.getlines(file))).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


@lru_cache(maxsize=256)
def _spans(file: str) -> list[tuple[int, int]]:
    """Return the first and last line of each of the outermost statements, decorators with it."""
    return [
        (min([one.lineno, *(each.lineno for each in getattr(one, "decorator_list", ()))]), _last(one))
        for one in _statements(file)
    ]


def _text_at(file: str, line: int) -> _Text:
    """Return what is known of the outermost statement of a line, or of several that share it."""
    # A build looks at a few functions of files that may have hundreds.
    found = [_text_of(file, number) for number, (first, last) in enumerate(_spans(file)) if first <= line <= last]
    if len(found) == 1:
        return found[0]
    return _Text(*(tuple(chain.from_iterable(parts)) for parts in zip(_NOTHING, *found, strict=True)))


@lru_cache(maxsize=1 << 10)
def _text_of(file: str, number: int) -> _Text:
    """Return what is known of an outermost statement of a file."""
    blocks: list[_Block] = []
    assigned: list[tuple[_Position, str, tuple[str, int]]] = []
    returns: list[_Position] = []
    waiting: list[tuple[ast.AST, tuple[str, int]]] = [(_statements(file)[number], ("<module>", 1))]
    while waiting:
        node, function = waiting.pop()
        if type(node) in _TOLD:
            function = _tell(node, function, blocks, assigned, returns)
        for field in node._fields:
            value = getattr(node, field)
            for child in value if type(value) is list else (value,):
                if isinstance(child, ast.AST) and type(child) not in _LEAVES:
                    waiting.append((child, function))
    blocks.sort(key=lambda block: (block.first, -block.last))
    return _Text(tuple(blocks), tuple(assigned), tuple(returns))


def _tell(
    node: ast.AST,
    function: tuple[str, int],
    blocks: list[_Block],
    assigned: list[tuple[_Position, str, tuple[str, int]]],
    returns: list[_Position],
) -> tuple[str, int]:
    """Add what a node tells; return the function that what it holds belongs to."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name, min([node.lineno, *(each.lineno for each in node.decorator_list)])
    if isinstance(node, ast.Lambda):
        returns.append(_position(node.body))
        return "<lambda>", node.lineno
    if isinstance(node, ast.For):
        names = _names(node.target)
        blocks.append(_Block(node.body[0].lineno, _last(node.body[-1]), function, Loop(node.lineno, names)))
    elif isinstance(node, ast.While):
        names = tuple(dict.fromkeys(_names(node.test)))
        blocks.append(_Block(node.lineno, _last(node.body[-1]), function, Loop(node.lineno, names)))
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for part in node.generators:
            own = Loop(node.lineno, _names(part.target))
            blocks.append(_Block(node.lineno, _last(node), ("<comprehension>", node.lineno), own))
    elif isinstance(node, ast.Return) and node.value is not None:
        returns.append(_position(node.value))
    assigned += [(*pair, function) for pair in _assigned(node)]
    return function


def _names(node: ast.expr) -> tuple[str, ...]:
    return tuple(each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _last(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno


def _position(node: ast.expr) -> _Position:
    return node.lineno, node.col_offset, _last(node), node.end_col_offset or 0


def _assigned(node: ast.AST) -> Iterator[tuple[_Position, str]]:
    """Yield where the values of an assignment stand, each with the variable that it becomes."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _pairs(target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield from _pairs(node.target, node.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[_Position, str]]:
    if isinstance(target, ast.Tuple | ast.List):
        whole = any(isinstance(each, ast.Starred) for each in target.elts)
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) and not whole:
            for one, own in zip(target.elts, value.elts, strict=True):
                yield from _pairs(one, own)
        else:
            for one in target.elts[:1]:  # what unpacks one call's tensors; each gets a number behind the name
                yield from _pairs(one, value)
        return
    while isinstance(target, ast.Subscript | ast.Starred):
        target = target.value
    name = target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""
    if name:
        yield _position(value), name


@lru_cache(maxsize=1 << 14)
def loops_of(code: CodeType, line: int) -> tuple[Loop, ...]:
    """Return the loops around a line in a function, from the outermost on; none where there is no text of it."""
    if code.co_name in _COMPREHENSIONS:
        own = "<comprehension>", code.co_firstlineno
        return tuple(each.loop for each in _text_at(code.co_filename, line).blocks
                     if each.function == own and each.first <= line <= each.last)  # fmt: skip
    own = code.co_name, code.co_firstlineno
    return tuple(each.loop for each in _text_at(code.co_filename, line).blocks
                 if each.function == own and each.first <= line <= each.last)  # fmt: skip


def assigned_name(frame: FrameType | None, bottom: FrameType | None) -> str:
    """Return the variable that the value of what a frame calls becomes, "" where it becomes none.

    What a function returns is named where the function was called, up to the frame `bottom`.
    """
    while frame is not None and frame is not bottom:
        # By identity, asked for at each tile: the hash of a code goes through all of its constants and names.
        code = frame.f_code
        key = id(code), frame.f_lasti
        found = NAMED.get(key)
        if found is None:
            if len(NAMED) >= _KNOWN:
                NAMED.clear()
            found = NAMED[key] = (code, *_look(code, frame.f_lasti))  # kept alive with its number
        _, name, returned = found
        if name or not returned:
            return name
        frame = frame.f_back
    return ""


def _look(code: CodeType, instruction: int) -> tuple[str, bool]:
    found = next(islice(code.co_positions(), instruction // 2, None), None)
    if found is None or None in found:
        return "", False
    line, end_line, column, end_column = (each or 0 for each in found)
    here = line, column, end_line, end_column
    text = _text_at(code.co_filename, line)
    comprehension = code.co_name in _COMPREHENSIONS  # a call of its own, part of the function around it
    own = code.co_name, code.co_firstlineno
    around = [(span, name) for span, name, function in text.assigned
              if (comprehension or function == own) and _within(here, span)]  # fmt: skip
    if around:
        # the innermost of nested assignments begins last
        return max(around)[1], False
    return "", comprehension or any(_within(here, span) for span in text.returns)


def _within(inner: _Position, outer: _Position) -> bool:
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]
