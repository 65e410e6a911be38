"""HLO modules as objects: a module has computations, these have instructions, and operands are references.

What a pass changes is plain: assign to an attribute, then `Computation.remove_dead`. Numbers of
instructions and computations (`id`) are only names that files use; the writer gives new ones where they are 0 or clash.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from formats.errors import FormatError
from formats.hlo.attributes import (
    AliasEntry,
    ConvolutionDimensionNumbers,
    DeviceList,
    DotDimensionNumbers,
    GatherDimensionNumbers,
    Metadata,
    OutputAlias,
    PaddingDimension,
    RaggedDotDimensionNumbers,
    ScatterDimensionNumbers,
    Sharding,
    SliceDimension,
    Source,
    TriangularSolveOptions,
    WindowDimension,
)
from formats.hlo.literals import Literal
from formats.hlo.shapes import ProgramShape, Shape

__all__ = ["Computation", "Instruction", "Module", "StackFrames"]

_NO_METADATA = Metadata()
_NO_DOT = DotDimensionNumbers()
_NO_RAGGED_DOT = RaggedDotDimensionNumbers()
_NO_CONVOLUTION = ConvolutionDimensionNumbers()
_NO_GATHER = GatherDimensionNumbers()
_NO_SCATTER = ScatterDimensionNumbers()
_NO_SOLVE = TriangularSolveOptions()
_NO_DEVICES = DeviceList()


@dataclass(eq=False, slots=True)
class Instruction:
    """One instruction.  Compared by identity; attributes that its opcode does not have keep their neutral values."""

    name: str
    opcode: str
    shape: Shape
    operands: list[Instruction] = field(default_factory=list)
    called: list[Computation] = field(default_factory=list)
    """Computations by role: a while's body, then its condition; a select-and-scatter's select, then its scatter."""
    id: int = 0
    control_predecessors: list[Instruction] = field(default_factory=list)
    metadata: Metadata = _NO_METADATA
    frontend_attributes: dict[str, str] = field(default_factory=dict)
    sharding: Sharding | None = None
    literal: Literal | None = None
    parameter_number: int = 0
    tuple_index: int = 0
    dimensions: tuple[int, ...] = ()
    window: tuple[WindowDimension, ...] = ()
    dot: DotDimensionNumbers = _NO_DOT
    ragged_dot: RaggedDotDimensionNumbers = _NO_RAGGED_DOT
    convolution: ConvolutionDimensionNumbers = _NO_CONVOLUTION
    feature_group_count: int = 1
    batch_group_count: int = 1
    gather: GatherDimensionNumbers = _NO_GATHER
    gather_slice_sizes: tuple[int, ...] = ()
    scatter: ScatterDimensionNumbers = _NO_SCATTER
    indices_are_sorted: bool = False
    unique_indices: bool = False
    slices: tuple[SliceDimension, ...] = ()
    dynamic_slice_sizes: tuple[int, ...] = ()
    padding: tuple[PaddingDimension, ...] = ()
    exponent_bits: int = 0
    mantissa_bits: int = 0
    epsilon: float = 0.0
    feature_index: int = 0
    comparison_direction: str = ""
    """EQ, NE, GE, GT, LE or LT."""
    comparison_type: str = ""
    """FLOAT, TOTALORDER, SIGNED, UNSIGNED, or '' where the operands say it."""
    is_stable: bool = False
    k: int = 0
    largest: bool = False
    fft_type: str = ""
    """FFT, IFFT, RFFT or IRFFT."""
    fft_length: tuple[int, ...] = ()
    distribution: str = ""
    rng_algorithm: str = ""
    """rng_default, rng_three_fry or rng_philox."""
    operand_precision: tuple[str, ...] = ()
    algorithm: int = 0
    triangular_solve: TriangularSolveOptions = _NO_SOLVE
    cholesky_lower: bool = False
    custom_call_target: str = ""
    backend_config: bytes = b""
    custom_call_has_side_effect: bool = False
    custom_call_api_version: int = 0
    custom_call_schedule: int = 0
    output_aliasing: tuple[OutputAlias, ...] = ()
    constrain_layout: bool = False
    operand_shapes_with_layout: tuple[Shape, ...] = ()
    channel_id: int = 0
    """Of a collective, send or receive; 0 is none."""
    devices: DeviceList = _NO_DEVICES
    use_global_device_ids: bool = False
    source_target_pairs: tuple[tuple[int, int], ...] = ()
    is_host_transfer: bool = False
    infeed_config: bytes = b""
    outfeed_config: bytes = b""
    outfeed_shape: Shape | None = None
    delta: int = 0
    padding_type: int = 0
    fusion_kind: str = ""
    is_composite: bool = False
    async_execution_thread: str = ""
    rest: bytes = b""
    """Fields of the proto that are not modelled, as they were read; they are written again."""

    @property
    def replica_groups(self) -> tuple[tuple[int, ...], ...]:
        """Return the groups of a collective, written out."""
        return self.devices.groups()

    @property
    def to_apply(self) -> Computation:
        """Return the only computation that a call, map, reduce, sort or scatter calls."""
        return self._called(0)

    @property
    def body(self) -> Computation:
        """Return the body of a while."""
        return self._called(0)

    @property
    def condition(self) -> Computation:
        """Return the condition of a while."""
        return self._called(1)

    @property
    def select(self) -> Computation:
        """Return what chooses an element in a select-and-scatter."""
        return self._called(0)

    @property
    def scatter_body(self) -> Computation:
        """Return what combines elements in a select-and-scatter."""
        return self._called(1)

    def _called(self, number: int) -> Computation:
        if number >= len(self.called):
            raise FormatError("the instruction calls too few computations", field=self.name,
                              expected=number + 1, got=len(self.called))  # fmt: skip
        return self.called[number]

    def value(self) -> Literal:
        """Return the literal of a constant.  Raises FormatError where there is none."""
        if self.literal is None:
            raise FormatError("the instruction has no literal", field=self.name, expected="a constant", got=self.opcode)
        return self.literal

    def __repr__(self) -> str:
        return f"%{self.name} = {self.shape} {self.opcode}({', '.join('%' + each.name for each in self.operands)})"


@dataclass(eq=False, slots=True)
class Computation:
    """Instructions in an order in which operands come before their users, and the one whose value is the result."""

    name: str
    instructions: list[Instruction]
    root: Instruction
    id: int = 0
    is_fusion: bool = False
    execution_thread: str = ""

    @property
    def parameters(self) -> list[Instruction]:
        """Return the parameters by number."""
        found = [each for each in self.instructions if each.opcode == "parameter"]
        return sorted(found, key=lambda each: each.parameter_number)

    @property
    def program_shape(self) -> ProgramShape:
        """Return the shapes of parameters and result."""
        parameters = self.parameters
        names = tuple(each.name for each in parameters)
        return ProgramShape(tuple(each.shape for each in parameters), self.root.shape, names)

    def users(self) -> dict[Instruction, list[Instruction]]:
        """Return, for each instruction, those that have it as an operand, each once, in order."""
        found: dict[Instruction, list[Instruction]] = {each: [] for each in self.instructions}
        for each in self.instructions:
            for operand in dict.fromkeys(each.operands):
                found[operand].append(each)
        return found

    def in_order(self) -> list[Instruction]:
        """Return the instructions with every operand before its users, otherwise in the order they have.

        Raises FormatError where operands go round in a circle.
        """
        done: dict[Instruction, bool] = {}
        for first in self.instructions:
            stack = [(first, iter((*first.operands, *first.control_predecessors)))]
            if first in done:
                continue
            done[first] = False
            while stack:
                each, rest = stack[-1]
                for operand in rest:
                    if operand not in done:
                        done[operand] = False
                        stack.append((operand, iter((*operand.operands, *operand.control_predecessors))))
                        break
                    if not done[operand]:
                        raise FormatError("an instruction needs its own result", field=operand.name)
                else:
                    stack.pop()
                    del done[each]
                    done[each] = True  # again at the end: the dictionary is the order
        return list(done)


@dataclass(slots=True)
class StackFrames:
    """Call stacks, each frame once; all numbers count from 1 and 0 is none.

    `locations` holds (file, function, line, column), `frames` holds (location, parent frame).
    """

    file_names: list[str] = field(default_factory=list)
    function_names: list[str] = field(default_factory=list)
    locations: list[tuple[int, int, int, int]] = field(default_factory=list)
    frames: list[tuple[int, int]] = field(default_factory=list)

    def stack(self, frame: int) -> Iterator[Source]:
        """Give the places of a frame and of its callers, innermost first.  Raises FormatError for a circle."""
        for _ in range(len(self.frames) + 1):
            if frame == 0:
                return
            location, frame = self.frames[frame - 1]
            file, function, line, column = self.locations[location - 1]
            yield Source(
                self.file_names[file - 1] if file else "",
                line,
                column,
                self.function_names[function - 1] if function else "",
            )
        raise FormatError("stack frames go round in a circle", field="stack_frame_index")


@dataclass(eq=False, slots=True)
class Module:
    """A module: computations with callees before callers, and the one that is run."""

    name: str
    computations: list[Computation]
    entry: Computation
    id: int = 0
    is_dynamic: bool = False
    aliases: tuple[AliasEntry, ...] = ()
    frontend_attributes: dict[str, str] = field(default_factory=dict)
    stack_frames: StackFrames = field(default_factory=StackFrames)
    program_shape: ProgramShape | None = None
    """As the file states it, with layouts; None where it does not."""
    rest: bytes = b""
    """Fields of the proto that are not modelled, as they were read; they are written again."""

    def instructions(self) -> Iterator[Instruction]:
        """Give every instruction of every computation."""
        for computation in self.computations:
            yield from computation.instructions

    def stack(self, instruction: Instruction) -> list[Source]:
        """Return the source lines of an instruction, innermost first; none where the file does not say."""
        found = list(self.stack_frames.stack(instruction.metadata.stack_frame_id))
        stated = instruction.metadata
        if not found and stated.source_file:
            found.append(Source(stated.source_file, stated.source_line, stated.source_column))
        return found

    def source(self, instruction: Instruction) -> Source | None:
        """Return the innermost source line of an instruction."""
        return next(iter(self.stack(instruction)), None)
