"""Token threading: each collective of a stream takes a token from the one before and gives one on (compiler.md 2).

The token is a u32 scalar. A tuple of a collective's operands and the token passes a barrier, and so does one of its
result and the token: plain HLO, which no pass may reorder. Marks are frontend attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

from formats.errors import FormatError, UnsupportedError
from formats.named_tuple import NamedTuple
from formats.numerals import parse_decimal

if TYPE_CHECKING:
    from formats.hlo import Computation, Instruction, Module

__all__ = ["Collective", "Order", "TokensResult", "add_tokens", "collectives", "order_of", "strip_tokens"]

_MARK = "neurontools_token"


class TokensResult(NamedTuple):
    """The result of `hlo tokens add` and `hlo tokens strip`."""

    collectives: Annotated[int, "how many were changed"]
    output: str


class Collective(NamedTuple):
    """A collective, its stream and whether it has a token."""

    instruction: Instruction
    stream: int
    has_token: bool


class Order(NamedTuple):
    """Neighbours of one stream: whether the second cannot begin before the first has ended."""

    stream: int
    first: str
    second: str
    ordered: bool


def collectives(computation: Computation) -> list[Collective]:
    """Return the collectives of a computation in its order.  Raises FormatError for a stream that is no number."""
    from formats.hlo.opcodes import OPCODES  # deferred: start-up

    found = []
    for each in computation.instructions:
        kind = OPCODES[each.opcode].kind if each.opcode in OPCODES else ""
        # What was started meets the other ranks where it starts.
        if kind == "collective" and not each.opcode.endswith("-done"):
            found.append(Collective(each, stream_of(each), each.frontend_attributes.get("has_token") == "1"))
    return found


def stream_of(collective: Instruction) -> int:
    """Return the stream that a collective's frontend attributes name, else 0; FormatError for one that is no number."""
    text = collective.frontend_attributes.get("stream_id", "0")
    stream = parse_decimal(text, 6)
    if stream is None:
        raise FormatError("a stream is no number", field=collective.name, got=text[:20])
    return stream


def order_of(computation: Computation) -> list[Order]:
    """Return for neighbours of each stream whether data or control orders them."""
    streams: dict[int, list[Instruction]] = {}
    for each in collectives(computation):
        streams.setdefault(each.stream, []).append(each.instruction)
    return [
        Order(stream, first.name, second.name, _depends(second, first))
        for stream, members in sorted(streams.items())
        for first, second in pairwise(members)
    ]


def _depends(later: Instruction, earlier: Instruction) -> bool:
    seen: set[Instruction] = set()
    stack = [later]
    while stack:
        each = stack.pop()
        if each is earlier:
            return True
        if each not in seen:
            seen.add(each)
            stack += each.operands
            stack += each.control_predecessors
    return False


def add_tokens(module: Module) -> int:
    """Thread tokens through the collectives of the entry; return how many got one.  Those that have one keep it."""
    from formats.hlo import Instruction, Literal, PrimitiveType, scalar, tuple_of  # deferred: start-up

    entry = module.entry
    started = next((each for each in entry.instructions if each.opcode.endswith("-start")), None)
    if started is not None:
        # A barrier behind a start would hold what its end has to follow at once.
        raise UnsupportedError(f"%{started.name}: tokens of {started.opcode} are not modelled; add them before "
                               "collectives are taken apart")  # fmt: skip
    token_shape = scalar(PrimitiveType.U32)
    names = _Names(entry)
    last: dict[int, Instruction] = {}
    made = 0

    def new(stem: str, opcode: str, shape: object, operands: list[Instruction]) -> Instruction:
        found = Instruction(names.new(stem), opcode, shape, operands)  # type: ignore[arg-type]
        found.frontend_attributes = {_MARK: "1"}
        return found

    instructions: list[Instruction] = []
    wanted = {each.instruction: each for each in collectives(entry) if not each.has_token}
    replaced: dict[Instruction, Instruction] = {}
    for each in entry.instructions:
        each.operands = [replaced.get(operand, operand) for operand in each.operands]
        if each not in wanted:
            instructions.append(each)
            continue
        stream = wanted[each].stream
        token = last.get(stream)
        if token is None:
            token = new("token", "constant", token_shape, [])
            token.literal = Literal(token_shape, bytes(4))
            instructions.append(token)
        before = new(
            "token.in", "tuple", tuple_of(*(o.shape for o in each.operands), token_shape), [*each.operands, token]
        )
        held = new("token.held", "opt-barrier", before.shape, [before])
        parts = [new("token.operand", "get-tuple-element", part, [held]) for part in before.shape.tuple_shapes]
        for number, part in enumerate(parts):
            part.tuple_index = number
        each.operands = parts[:-1]
        each.frontend_attributes = each.frontend_attributes | {
            "collective_type": each.opcode, "has_token": "1", "stream_id": str(stream),
        }  # fmt: skip
        after = new("token.out", "tuple", tuple_of(each.shape, token_shape), [each, parts[-1]])
        done = new("token.done", "opt-barrier", after.shape, [after])
        result = new("token.result", "get-tuple-element", each.shape, [done])
        token = new("token.next", "get-tuple-element", token_shape, [done])
        token.tuple_index = 1
        instructions += [before, held, *parts, each, after, done, result, token]
        replaced[each], last[stream] = result, token
        made += 1
    entry.instructions = instructions
    entry.root = replaced.get(entry.root, entry.root)
    return made


def strip_tokens(module: Module) -> int:
    """Take the tokens out again; return how many collectives had one."""
    entry = module.entry
    original: dict[Instruction, Instruction] = {}
    kept: list[Instruction] = []
    for each in entry.instructions:
        each.operands = [original.get(operand, operand) for operand in each.operands]
        if _MARK not in each.frontend_attributes:
            kept.append(each)
        elif each.opcode == "get-tuple-element":
            original[each] = _behind(each)
    count = 0
    for one in collectives(entry):
        if one.has_token:
            count += 1
            attributes = one.instruction.frontend_attributes
            ours = {"has_token", "collective_type"} | ({"stream_id"} if one.stream == 0 else set())
            one.instruction.frontend_attributes = {k: v for k, v in attributes.items() if k not in ours}
    for each in kept:
        if any(_MARK in other.frontend_attributes for other in (*each.operands, *each.control_predecessors)):
            raise FormatError("needs what `hlo tokens add` made", field=each.name)
    entry.instructions = kept
    entry.root = original.get(entry.root, entry.root)
    return count


def _behind(element: Instruction) -> Instruction:
    """Return what an element of a barrier's tuple is without the barrier."""
    held = element.operands[0]
    whole = held.operands[0] if held.operands else held
    if held.opcode != "opt-barrier" or whole.opcode != "tuple" or element.tuple_index >= len(whole.operands):
        raise FormatError("is marked as `hlo tokens add` marks, and is none of its instructions", field=element.name)
    return whole.operands[element.tuple_index]


class _Names:
    """New names for instructions of a computation."""

    def __init__(self, computation: Computation) -> None:
        self._taken = {each.name for each in computation.instructions}
        self._numbers = self._count()

    def _count(self) -> Iterator[int]:
        number = 0
        while True:
            number += 1
            yield number

    def new(self, stem: str) -> str:
        """Return a name that nothing has."""
        while (name := f"{stem}.{next(self._numbers)}") in self._taken:
            pass
        self._taken.add(name)
        return name
