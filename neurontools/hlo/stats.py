"""`neurontools hlo stats`: how many instructions of which opcode and type, and how large."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.hlo.opening import HloFile, open_module
from neurontools.text.table import bytes_text, count, table


class OpcodeRow(NamedTuple):
    """One opcode."""

    opcode: str
    instructions: int
    types: Annotated[tuple[str, ...], "element types of results, the most frequent first"]
    largest: Annotated[int, "bytes of the largest result"]


class HloStats(NamedTuple):
    """The result of `hlo stats`."""

    name: str
    computations: int
    instructions: int
    opcodes: tuple[OpcodeRow, ...]
    parameters: Annotated[tuple[str, ...], "shapes of the entry's parameters"]
    result: str
    parameter_bytes: int
    constant_bytes: int
    result_bytes: int
    aliases: int
    with_source: Annotated[int, "instructions whose line in the model is known"]
    custom_calls: Annotated[dict[str, int], "by target"]


def _view(found: HloStats) -> list[str]:
    lines = [
        f"{found.name}: {count(found.instructions, 'instruction')} in {count(found.computations, 'computation')}, "
        f"{found.with_source:,} with a line of the model",
        f"parameters  {bytes_text(found.parameter_bytes)} in {len(found.parameters)}",
        f"constants   {bytes_text(found.constant_bytes)}",
        f"result      {bytes_text(found.result_bytes)}"
        + (f", {count(found.aliases, 'alias')}" if found.aliases else ""),
        "",
    ]
    rows = [(each.opcode, each.instructions, " ".join(each.types), bytes_text(each.largest)) for each in found.opcodes]
    lines += table(["opcode", "instructions", "types", "largest result"], rows)
    if found.custom_calls:
        lines += ["", *table(["custom call", "instructions"], found.custom_calls.items())]
    return lines


def stats(file: HloFile, json: Json = False) -> None:
    """Count the instructions of a module by opcode and type."""
    with report("hlo stats", json, file=file) as out:
        module = open_module(file)
        every = list(module.instructions())
        opcodes = Counter(each.opcode for each in every)
        types = {opcode: Counter[str]() for opcode in opcodes}
        largest = dict.fromkeys(opcodes, 0)
        for each in every:
            types[each.opcode].update(leaf.element_type.text for _, leaf in each.shape.leaves())
            largest[each.opcode] = max(largest[each.opcode], each.shape.nbytes)
        rows = tuple(
            OpcodeRow(opcode, number, tuple(name for name, _ in types[opcode].most_common(6)), largest[opcode])
            for opcode, number in opcodes.most_common()
        )
        parameters = module.entry.parameters
        found = HloStats(
            module.name, len(module.computations), len(every), rows,
            tuple(str(each.shape) for each in parameters), str(module.entry.root.shape),
            sum(each.shape.nbytes for each in parameters),
            sum(each.shape.nbytes for each in every if each.opcode == "constant"),
            module.entry.root.shape.nbytes, len(module.aliases),
            sum(module.source(each) is not None for each in every),
            dict(Counter(each.custom_call_target for each in every if each.opcode == "custom-call").most_common()),
        )  # fmt: skip
        out.result = found
        out.lines = lambda: _view(found)


app = command_app(stats, result=HloStats)
