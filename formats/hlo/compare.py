"""Compare modules: what they compute, not what they call things.

Digests of all computations are made in the module's order, callees first: no chain of calls is too long for Python.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from difflib import SequenceMatcher

from formats.hlo.module import Computation, Instruction, Module
from formats.hlo.shapes import Shape, tuple_of
from formats.hlo.text.printer import print_instruction
from formats.named_tuple import NamedTuple

__all__ = ["Change", "Digests", "differences", "same"]

# What acts on the world though no result need depend on it; a custom call says so itself.
_ACTING = frozenset(("infeed", "outfeed", "send", "recv"))
_MOST_PAIRS = 4_000_000  # comparing thousands of instructions with thousands takes minutes


class Change(NamedTuple):
    """Instructions of one computation that only one module has, in the order of the first."""

    computation: str
    first: tuple[str, ...]
    second: tuple[str, ...]


class Digests:
    """Digests of instructions and computations; names, numbers, metadata and layouts of results have no part."""

    def __init__(self, *modules: Module) -> None:
        self._computations: dict[Computation, str] = {}
        self._acting: set[Computation] = set()
        self._instructions: dict[Instruction, str] = {}
        for module in modules:
            for each in module.computations:
                self.computation(each)

    def computation(self, computation: Computation) -> str:
        """Return the digest of what a computation gives, and of the order in which it acts on the world."""
        found = self._computations.get(computation)
        if found is None:
            acting = [
                self.instruction(each)
                for each in computation.instructions
                if each.custom_call_has_side_effect
                or each.opcode in _ACTING
                or not self._acting.isdisjoint(each.called)
            ]
            if acting:
                self._acting.add(computation)
            found = _digest(self.instruction(computation.root), *acting)
            self._computations[computation] = found
        return found

    def instruction(self, instruction: Instruction) -> str:
        """Return the digest of an instruction with all that it depends on."""
        # By hand: chains of operands are longer than Python nests calls.
        stack = [instruction]
        while stack:
            each = stack[-1]
            missing = [operand for operand in each.operands if operand not in self._instructions]
            if missing:
                stack += missing
                continue
            stack.pop()
            if each not in self._instructions:
                operands = [self._instructions[operand] for operand in each.operands]
                self._instructions[each] = _digest(self._own(each), *operands)
        return self._instructions[instruction]

    def _own(self, instruction: Instruction) -> str:
        return _digest(signature(instruction), *(self.computation(each) for each in instruction.called))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()


def signature(instruction: Instruction) -> str:
    """Return an instruction as text without names: shape, opcode, elements and attributes."""
    bare = Instruction.__new__(Instruction)
    for field in Instruction.__slots__:
        setattr(bare, field, getattr(instruction, field))
    bare.name, bare.operands, bare.called, bare.control_predecessors = "", [], [], []
    bare.shape = _without_layouts(instruction.shape)
    return print_instruction(bare, metadata=False).removeprefix(" = ")


def _without_layouts(shape: Shape) -> Shape:
    if shape.is_tuple:
        return tuple_of(*map(_without_layouts, shape.tuple_shapes))
    return replace(shape, layout=None) if shape.layout is not None else shape


def same(first: Module, second: Module) -> bool:
    """Return whether two modules compute the same from the same parameters."""
    digests = Digests(first, second)
    return digests.computation(first.entry) == digests.computation(second.entry) and _parameters(first) == _parameters(
        second
    )


def _parameters(module: Module) -> list[str]:
    return [str(each.shape) for each in module.entry.parameters]


def differences(first: Module, second: Module) -> list[Change]:
    """Return what differs, computation by computation: paired by what they compute, then by their order."""
    digests = Digests(first, second)
    left = [each for each in first.computations if each is not first.entry]
    right = [each for each in second.computations if each is not second.entry]
    # Passes move computations about and rename them, so those that both have are paired by what they compute.
    known = {digests.computation(each) for each in left} & {digests.computation(each) for each in right}
    left = [each for each in left if digests.computation(each) not in known]
    right = [each for each in right if digests.computation(each) not in known]
    pairs: list[tuple[Computation | None, Computation | None]] = [
        (left[n] if n < len(left) else None, right[n] if n < len(right) else None)
        for n in range(max(len(left), len(right)))
    ]
    pairs.append((first.entry, second.entry))
    return [change for one, other in pairs for change in _between(one, other)]


def _between(first: Computation | None, second: Computation | None) -> Iterator[Change]:
    left = first.instructions if first is not None else []
    right = second.instructions if second is not None else []
    name = "".join(each.name for each in (first or second,) if each is not None)
    ours, theirs = [signature(each) for each in left], [signature(each) for each in right]
    if len(ours) * len(theirs) > _MOST_PAIRS:
        only, others = set(ours) - set(theirs), set(theirs) - set(ours)
        one = _shown([each for each in left if signature(each) in only])
        two = _shown([each for each in right if signature(each) in others])
        if one or two:
            yield Change(name, one, two)
        return
    for kind, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if kind != "equal":
            yield Change(name, _shown(left[a:b]), _shown(right[c:d]))


def _shown(instructions: list[Instruction]) -> tuple[str, ...]:
    return tuple(print_instruction(each, most_elements=16, metadata=False) for each in instructions)
