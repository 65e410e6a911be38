"""Verify a module: references, numbers of operands, roots and parameters, and the rules of shapes."""

from __future__ import annotations

from formats.errors import FormatError
from formats.hlo import infer_async, infer_sums
from formats.hlo.infer import MismatchError, inferred
from formats.hlo.module import Computation, Instruction, Module
from formats.hlo.opcodes import OPCODES
from formats.named_tuple import NamedTuple

__all__ = ["Finding", "need_valid", "verify"]

_ = (infer_async, infer_sums)  # their rules are in the table by being imported


class Finding(NamedTuple):
    """One thing that is wrong: where, and in words."""

    computation: str
    instruction: str
    what: str
    source: str = ""
    """File and line of the model, where the module says it."""

    def __str__(self) -> str:
        place = f"%{self.computation}: %{self.instruction}" if self.instruction else f"%{self.computation}"
        return _shown(f"{place}: {self.what}" + (f" ({self.source})" if self.source else ""))


def _shown(text: str) -> str:
    """Return a text whose names, which come from a file, take no command of a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def need_valid(module: Module) -> None:
    """Raise FormatError with the first thing that is wrong."""
    found = verify(module, most=1)
    if found:
        raise FormatError(str(found[0]))


def verify(module: Module, most: int = 1000) -> list[Finding]:
    """Return what is wrong with a module, at most so many findings."""
    found: list[Finding] = []
    known = set(module.computations)
    if module.entry not in known:
        found.append(Finding(module.entry.name, "", "the entry is not among the computations"))
    done: set[Computation] = set()
    for computation in module.computations:
        found += _of_computation(module, computation, done)
        done.add(computation)
        if len(found) >= most:
            break
    if not found:
        found += _aliases(module)
    return found[:most]


def _of_computation(module: Module, computation: Computation, done: set[Computation]) -> list[Finding]:
    found: list[Finding] = []

    def report(instruction: Instruction | None, what: str) -> None:
        source = module.source(instruction) if instruction is not None else None
        found.append(Finding(computation.name, instruction.name if instruction is not None else "", what,
                             str(source) if source else ""))  # fmt: skip

    before: set[Instruction] = set()
    names: set[str] = set()
    for each in computation.instructions:
        if each.name in names:
            report(each, "a second instruction of this name")
        names.add(each.name)
        if any(operand not in before for operand in each.operands):
            report(each, "an operand does not come before it in its computation")
        elif any(called not in done for called in each.called):
            report(each, "a called computation does not come before its caller")
        else:
            what = _wrong(each)
            if what:
                report(each, what)
        before.add(each)
    if computation.root not in before:
        report(None, "the root is not among the instructions")
    numbers = sorted(each.parameter_number for each in computation.instructions if each.opcode == "parameter")
    if numbers != list(range(len(numbers))):
        report(None, f"parameters are numbered {numbers[:8]}")
    return found


def _wrong(instruction: Instruction) -> str:
    """Return what is wrong with one instruction, '' for nothing."""
    facts = OPCODES.get(instruction.opcode)
    if facts is None:
        return f"unknown opcode {instruction.opcode!r}"
    count = len(instruction.operands)
    if not facts.least <= count <= facts.most:
        least = f"{facts.least}" if facts.least == facts.most else f"at least {facts.least}"
        return f"{instruction.opcode} takes {least} operands, found {count}"
    if facts.called >= 0 and len(instruction.called) != facts.called:
        return f"{instruction.opcode} calls {facts.called} computations, found {len(instruction.called)}"
    parts = [instruction.shape, *(operand.shape for operand in instruction.operands)]
    if any(part.is_dynamic for part in parts):
        return ""  # a rule of static shapes says nothing of it; a compiler refuses it by its own code
    try:
        shape = inferred(instruction)
    except MismatchError as error:
        return str(error)
    if shape is not None and shape != instruction.shape:
        return f"states {str(instruction.shape)[:80]}, its operands give {str(shape)[:80]}"
    return ""


def _aliases(module: Module) -> list[Finding]:
    found = []
    outputs = dict(module.entry.root.shape.leaves())
    parameters = module.entry.parameters
    for alias in module.aliases:
        there = 0 <= alias.parameter_number < len(parameters)
        inputs = dict(parameters[alias.parameter_number].shape.leaves()) if there else {}
        output, parameter = outputs.get(alias.output_shape_index), inputs.get(alias.parameter_shape_index)
        if output is None or parameter is None:
            found.append(Finding(module.entry.name, "", f"an alias of output {list(alias.output_shape_index)} names "
                                 "what is not there"))  # fmt: skip
        elif output != parameter:
            found.append(Finding(module.entry.name, "", f"an alias of {output} with {parameter}"))
    return found
