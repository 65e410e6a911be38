"""Print modules as HLO text."""

from __future__ import annotations

from collections.abc import Iterator

from formats.hlo.module import Computation, Instruction, Module
from formats.hlo.proto_fields import ALIAS_KINDS
from formats.hlo.shapes import ProgramShape
from formats.hlo.text.attributes import ATTRIBUTES, is_shown, value_of
from formats.hlo.text.codecs import braced, codecs, texts
from formats.hlo.text.lexer import quoted
from formats.hlo.text.values import literal_text, shape_text

__all__ = ["print_computation", "print_instruction", "print_module"]


def print_module(module: Module, *, most_elements: int | None = None, metadata: bool = True) -> str:
    """Return a module as text; literals of more than `most_elements` elements are left out as `{...}`."""
    return "\n".join(_lines(module, most_elements, metadata=metadata)) + "\n"


def _lines(module: Module, most: int | None, *, metadata: bool) -> Iterator[str]:
    yield _header(module)
    if metadata:
        yield from _stack_frames(module)
    for computation in module.computations:
        yield ""
        entry = "ENTRY " if computation is module.entry else ""
        yield entry + print_computation(computation, most_elements=most, metadata=metadata)


def _header(module: Module) -> str:
    parts = [f"HloModule {module.name}"]
    if module.aliases:
        each = [
            f"{braced(a.output_shape_index)}: ({a.parameter_number}, {braced(a.parameter_shape_index)}, "
            f"{ALIAS_KINDS[a.kind] if 0 <= a.kind < 3 else ALIAS_KINDS[0]})"
            for a in module.aliases
        ]
        parts.append(f"input_output_alias={{ {', '.join(each)} }}")
    shape = module.program_shape or module.entry.program_shape
    parts.append(f"entry_computation_layout={{{_program_shape(shape)}}}")
    if module.frontend_attributes:
        parts.append(f"frontend_attributes={texts(module.frontend_attributes)}")
    return ", ".join(parts)


def _program_shape(shape: ProgramShape) -> str:
    parts = [
        (f"/*index={n}*/" if n and n % 5 == 0 else "") + shape_text(each) for n, each in enumerate(shape.parameters)
    ]
    return f"({', '.join(parts)})->{shape_text(shape.result)}"


def _stack_frames(module: Module) -> Iterator[str]:
    frames = module.stack_frames
    if not frames.frames:
        return
    for title, names in (("FileNames", frames.file_names), ("FunctionNames", frames.function_names)):
        yield from ("", title, *(f"{n} {quoted(name)}" for n, name in enumerate(names, 1)))
    yield from ("", "FileLocations")
    for n, (file, function, line, column) in enumerate(frames.locations, 1):
        yield f"{n} {{file_name_id={file} function_name_id={function} line={line} column={column}}}"
    yield from ("", "StackFrames")
    for n, (location, parent) in enumerate(frames.frames, 1):
        yield f"{n} {{file_location_id={location} parent_frame_id={parent}}}"
    yield ""


def print_computation(computation: Computation, *, most_elements: int | None = None, metadata: bool = True) -> str:
    """Return a computation as text."""
    lines = [f"{computation.name} {{"]
    for each in computation.instructions:
        root = "ROOT " if each is computation.root else ""
        lines.append(f"  {root}{print_instruction(each, most_elements=most_elements, metadata=metadata)}")
    thread = computation.execution_thread
    lines.append("}" + (f', execution_thread="{thread}"' if thread and thread != "main" else ""))
    return "\n".join(lines)


def print_instruction(instruction: Instruction, *, most_elements: int | None = None, metadata: bool = True) -> str:
    """Return an instruction as text, in one line."""
    operands = ", ".join(
        (f"/*index={n}*/" if n and n % 5 == 0 else "") + each.name for n, each in enumerate(instruction.operands)
    )
    if instruction.opcode == "constant" and instruction.literal is not None:
        operands = literal_text(instruction.literal, most_elements)
    elif instruction.opcode == "parameter":
        operands = str(instruction.parameter_number)
    parts = [f"{instruction.name} = {shape_text(instruction.shape)} {instruction.opcode}({operands})"]
    shown = [each for each in ATTRIBUTES if is_shown(instruction, each)]
    late = ("operand_precision", "dot_algorithm", "sharding", "frontend_attributes", "metadata", "backend_config")
    for each in shown:
        if each.word not in late:
            parts.append(f"{each.word}={codecs[each.codec].show(value_of(instruction, each))}")
    parts += _called(instruction)
    if instruction.control_predecessors:
        parts.append(f"control-predecessors={{{', '.join(each.name for each in instruction.control_predecessors)}}}")
    for each in shown:
        if each.word in late and (metadata or each.word != "metadata"):
            word = "algorithm" if each.word == "dot_algorithm" else each.word
            parts.append(f"{word}={codecs[each.codec].show(value_of(instruction, each))}")
    return ", ".join(parts)


def _called(instruction: Instruction) -> list[str]:
    names = [each.name for each in instruction.called]
    if not names:
        return []
    match instruction.opcode:
        case "while" if len(names) == 2:
            return [f"condition={names[1]}", f"body={names[0]}"]
        case "conditional":
            chosen = instruction.operands[0].shape.element_type.text if instruction.operands else ""
            if chosen == "pred" and len(names) == 2:
                return [f"true_computation={names[0]}", f"false_computation={names[1]}"]
            return [f"branch_computations={{{', '.join(names)}}}"]
        case "select-and-scatter" if len(names) == 2:
            return [f"select={names[0]}", f"scatter={names[1]}"]
        case "fusion" | "async-start" | "async-update" | "async-done":
            return [f"calls={names[0]}"]
        case "custom-call":
            return [f"called_computations={{{', '.join(names)}}}"]
        case _:
            return [f"to_apply={names[0]}"]
