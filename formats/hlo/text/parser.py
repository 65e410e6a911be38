"""Read HLO text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from formats.errors import FormatError
from formats.hlo.attributes import AliasEntry
from formats.hlo.module import Computation, Instruction, Module, StackFrames
from formats.hlo.proto_fields import ALIAS_KINDS, ENUMERATIONS, PRECISIONS
from formats.hlo.shapes import PrimitiveType, Shape
from formats.hlo.text.attributes import ATTRIBUTES, CALLED, IGNORED, assign
from formats.hlo.text.codecs import codecs, parse_index
from formats.hlo.text.lexer import Lexer
from formats.hlo.text.values import parse_literal, parse_program_shape, parse_shape

__all__ = ["parse_module"]

_MOST_TEXT = 1 << 30
_BY_WORD = {each.word: each for each in ATTRIBUTES}
_SECTIONS = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_PENDING = Shape(PrimitiveType.TOKEN)


def parse_module(text: str) -> Module:
    """Return the module that a text states.  Raises FormatError with line and column."""
    if len(text) > _MOST_TEXT:
        raise FormatError("the text is too long", expected=f"at most {_MOST_TEXT} characters", got=len(text))
    return _Parser(text).module()


class _Parser:
    def __init__(self, text: str) -> None:
        self.lexer = Lexer(text)
        self.computations: dict[str, Computation] = {}
        self.entry: Computation | None = None
        self.late: list[tuple[Instruction, int, str, int]] = []
        """Computations that are called before they are read: caller, place, name, offset."""

    def module(self) -> Module:
        lexer = self.lexer
        first = lexer.here.offset
        if lexer.name() != "HloModule":
            lexer.fail_at(first, "is no HLO text", expected="'HloModule' and a name before all computations")
        name = lexer.name() if lexer.here.kind == "name" else lexer.string()
        module = Module(name, [], Computation("", [], Instruction("", "", _PENDING)))
        while lexer.accept(","):
            self._header(module)
        while lexer.at(*_SECTIONS):
            self._section(module.stack_frames)
        _check(module.stack_frames, lexer)
        while lexer.here.kind != "end":
            self._computation()
        if self.entry is None:
            if len(self.computations) != 1:
                lexer.fail("no computation is the entry", expected="ENTRY")
            self.entry = next(iter(self.computations.values()))
        self._resolve()
        module.computations, module.entry = _callees_first(list(self.computations.values())), self.entry
        for number, computation in enumerate(module.computations, 1):
            computation.id = number
        frames = len(module.stack_frames.frames)
        for instruction in module.instructions():
            if instruction.metadata.stack_frame_id > frames:
                raise FormatError("names a stack frame that is not there", field=instruction.name,
                                  expected=f"at most {frames}", got=instruction.metadata.stack_frame_id)  # fmt: skip
        return module

    def _header(self, module: Module) -> None:
        lexer = self.lexer
        word = lexer.name()
        lexer.need("=")
        if word == "entry_computation_layout":
            lexer.need("{")
            module.program_shape = parse_program_shape(lexer)
            lexer.need("}")
        elif word == "frontend_attributes":
            module.frontend_attributes = codecs["texts"].read(lexer)
        elif word == "input_output_alias":
            module.aliases = self._aliases()
        elif word == "is_dynamic":
            module.is_dynamic = lexer.boolean()
        else:
            lexer.skip_value()  # schedules, numbers of replicas, donors: nothing that is computed

    def _aliases(self) -> tuple[AliasEntry, ...]:
        lexer = self.lexer
        found: list[AliasEntry] = []
        lexer.need("{")
        while not lexer.accept("}"):
            if found:
                lexer.need(",")
            output = parse_index(lexer)
            lexer.need(":")
            lexer.need("(")
            parameter = lexer.integer(0)
            lexer.need(",")
            index = parse_index(lexer)
            kind = 1
            if lexer.accept(","):
                word = lexer.name()
                if word not in ALIAS_KINDS:
                    lexer.fail("unknown kind of alias", expected=" or ".join(ALIAS_KINDS))
                kind = ALIAS_KINDS.index(word)
            lexer.need(")")
            found.append(AliasEntry(output, parameter, index, kind))
        return tuple(found)

    def _section(self, frames: StackFrames) -> None:
        lexer = self.lexer
        title = lexer.take().text
        while lexer.here.kind == "number":
            lexer.integer()
            if title in ("FileNames", "FunctionNames"):
                names = frames.file_names if title == "FileNames" else frames.function_names
                names.append(lexer.string())
                continue
            values: dict[str, int] = {}
            lexer.need("{")
            while not lexer.accept("}"):
                word = lexer.name()
                lexer.need("=")
                values[word] = lexer.integer(0, (1 << 31) - 1)
                lexer.accept(",")
            if title == "FileLocations":
                keys = ("file_name_id", "function_name_id", "line", "column")
                frames.locations.append(tuple(values.get(key, 0) for key in keys))  # type: ignore[arg-type]
            else:
                frames.frames.append((values.get("file_location_id", 0), values.get("parent_frame_id", 0)))

    def _computation(self) -> None:
        lexer = self.lexer
        is_entry = lexer.accept("ENTRY")
        offset = lexer.here.offset
        name = lexer.name()
        if name in self.computations:
            lexer.fail_at(offset, "two computations have one name", got=name)
        if lexer.at("("):
            lexer.skip_value()  # parameters; the instructions say them again
            lexer.need("->")
            parse_shape(lexer)
        lexer.need("{")
        instructions: dict[str, Instruction] = {}
        root: Instruction | None = None
        while not lexer.accept("}"):
            is_root = lexer.accept("ROOT")
            instruction = self._instruction(instructions)
            root = instruction if is_root or root is None or not self._has_root else root
            self._has_root = is_root or self._has_root
        if root is None:
            lexer.fail("a computation has no instructions")
        if not self._has_root:
            root = list(instructions.values())[-1]
        self._has_root = False
        computation = Computation(name, list(instructions.values()), root)
        while lexer.accept(","):
            word = lexer.name()
            lexer.need("=")
            if word == "execution_thread":
                computation.execution_thread = lexer.string()
            else:
                lexer.skip_value()
        self.computations[name] = computation
        if is_entry:
            if self.entry is not None:
                lexer.fail("two computations are the entry")
            self.entry = computation

    _has_root = False

    def _instruction(self, known: dict[str, Instruction]) -> Instruction:
        lexer = self.lexer
        offset = lexer.here.offset
        name = lexer.name()
        if name in known:
            lexer.fail_at(offset, "two instructions have one name", got=name)
        lexer.need("=")
        shape = parse_shape(lexer)
        instruction = Instruction(name, lexer.name(), shape, id=len(known) + 1)
        lexer.need("(")
        if instruction.opcode == "custom-call":
            instruction.custom_call_api_version = 1
        if instruction.opcode == "constant":
            if lexer.at("{") and lexer.text[lexer.here.offset :].startswith("{...}"):
                lexer.fail("the elements of this constant were left out when the text was printed")
            instruction.literal = parse_literal(lexer, shape)
            lexer.need(")")
        elif instruction.opcode == "parameter":
            instruction.parameter_number = lexer.integer(0, 1 << 31)
            lexer.need(")")
        else:
            self._operands(instruction, known)
        while lexer.accept(","):
            self._attribute(instruction, known)
        known[name] = instruction
        return instruction

    def _operands(self, instruction: Instruction, known: dict[str, Instruction]) -> None:
        lexer = self.lexer
        while not lexer.accept(")"):
            if instruction.operands:
                lexer.need(",")
            offset = lexer.here.offset
            if lexer.at("("):
                parse_shape(lexer)
            name = lexer.name()
            if lexer.at("["):  # it was the type of a shape
                lexer.skip_value()
                if lexer.at("{"):
                    lexer.skip_value()
                name = lexer.name()
            if name not in known:
                lexer.fail_at(offset, "an operand is not there, or later", got=name)
            instruction.operands.append(known[name])

    def _attribute(self, instruction: Instruction, known: dict[str, Instruction]) -> None:
        lexer = self.lexer
        offset = lexer.here.offset
        word = lexer.name()
        lexer.need("=")
        if word == "control-predecessors":
            for name, at in self._names():
                if name not in known:
                    lexer.fail_at(at, "a control predecessor is not there, or later", got=name)
                instruction.control_predecessors.append(known[name])
        elif word == "algorithm" and instruction.opcode in ("dot", "convolution"):
            instruction.algorithm = self._algorithm()
        elif word in CALLED or word == "called_computations":
            names = self._names() if lexer.at("{") else [(lexer.here.text.removeprefix("%"), self._skip())]
            for place, (name, at) in enumerate(names):
                self.late.append((instruction, CALLED.get(word, 0) + place, name, at))
        elif word in _BY_WORD:
            attribute = _BY_WORD[word]
            value = self._value(attribute.codec)
            if not _is_known(attribute.field, value) or not assign(instruction, attribute, value):
                lexer.fail_at(offset, f"unknown {word}", got=repr(value))
        elif word in IGNORED:
            lexer.skip_value()
        else:
            lexer.fail_at(offset, "unknown attribute", got=word)

    def _value(self, codec: str) -> Any:
        read: Callable[[Lexer], Any] = codecs[codec].read
        return read(self.lexer)

    def _algorithm(self) -> int:
        """Return the number of a dot's algorithm, which XLA prints by name.  Source: compiler.md 1.3."""
        lexer = self.lexer
        if lexer.here.kind == "number":
            return lexer.integer(0, 1 << 16)
        word = lexer.name()
        if word not in _ALGORITHMS:
            lexer.fail("unknown algorithm of a dot")
        return _ALGORITHMS.index(word)

    def _skip(self) -> int:
        lexer = self.lexer
        if lexer.here.kind != "name":
            lexer.fail("unexpected word", expected="a computation's name")
        return lexer.take().offset

    def _names(self) -> list[tuple[str, int]]:
        lexer = self.lexer
        found: list[tuple[str, int]] = []
        lexer.need("{")
        while not lexer.accept("}"):
            if found:
                lexer.need(",")
            at = lexer.here.offset
            found.append((lexer.name(), at))
        return found

    def _resolve(self) -> None:
        for instruction, place, name, at in sorted(self.late, key=lambda each: each[1]):
            computation = self.computations.get(name)
            if computation is None:
                self.lexer.fail_at(at, "a called computation is not there", got=name)
            if len(instruction.called) != place:
                self.lexer.fail_at(at, "calls a second computation without the first", got=name)
            instruction.called.append(computation)
            if instruction.opcode == "fusion":
                computation.is_fusion = True


def _is_known(field: str, value: Any) -> bool:
    """Return whether words that are numbers in a proto are among those that have one."""
    if field == "operand_precision":
        return all(word in PRECISIONS for word in value)
    return field not in ENUMERATIONS or value in ENUMERATIONS[field]


_ALGORITHMS = (
    "unset", "dot_any_f8_any_f8_f32", "dot_any_f8_any_f8_f32_fast_accum", "dot_f16_f16_f16", "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16", "dot_bf16_bf16_f32", "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x6", "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3", "dot_f32_f32_f32", "dot_f64_f64_f64", "dot_bf16_bf16_f32_x9",
)  # fmt: skip


def _check(frames: StackFrames, lexer: Lexer) -> None:
    """Refuse stack frames whose numbers lead nowhere."""
    files, functions, places, count = (len(frames.file_names), len(frames.function_names), len(frames.locations),
                                       len(frames.frames))  # fmt: skip
    if (any(not 0 <= place[0] <= files or not 0 <= place[1] <= functions for place in frames.locations)
            or any(not 1 <= location <= places or not 0 <= parent <= count for location, parent in frames.frames)
            ):  # fmt: skip
        lexer.fail("stack frames name what is not there")


def _callees_first(computations: list[Computation]) -> list[Computation]:
    """Return computations with callees before callers, otherwise as they stand.  Raises FormatError for a circle."""
    done: dict[Computation, bool] = {}
    for first in computations:
        if first in done:
            continue
        done[first] = False
        stack = [(first, iter([c for each in first.instructions for c in each.called]))]
        while stack:
            computation, callees = stack[-1]
            for callee in callees:
                if callee not in done:
                    done[callee] = False
                    stack.append((callee, iter([c for each in callee.instructions for c in each.called])))
                    break
                if not done[callee]:
                    raise FormatError("a computation calls itself", field=callee.name)
            else:
                stack.pop()
                del done[computation]
                done[computation] = True
    return list(done)
