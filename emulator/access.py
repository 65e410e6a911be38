"""From operands of words to views of memory: where a pattern lies, whether it may lie there, and how NumPy walks it."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from emulator.arch import Arch
from emulator.dtypes import numpy_dtype
from emulator.extents import Extent
from emulator.faults import fault_error
from emulator.memory import ChipMemory
from formats import isa
from formats.isa.behaviour import KEPT
from formats.isa.operand import AccessPattern
from formats.named_tuple import NamedTuple
from formats.neuron_core import PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE
from formats.regions import Region, Shape, shape_of

__all__ = ["Operand", "Plan", "Resolver", "plan_of"]

# Memories an engine can reach. Source: hardware.md 2.4.
_NO_PSUM = frozenset(("Pool", "SP"))


class Operand(NamedTuple):
    """One operand in memory: the view an executor works on, its regions for observers, written planes under them."""

    name: str
    view: npt.NDArray[Any]
    regions: tuple[Region, ...]
    extents: tuple[Extent, ...]


class Plan(NamedTuple):
    """How to find one operand in the words of a class: its `field`, a Pattern or Pointer, and that of its partitions.

    Both are typed loosely: they are descriptors, which a type checker would take for the values they read.
    """

    name: str
    field: Any
    partitions: Any
    reads: bool
    writes: bool


class _Shape(NamedTuple):
    """What operands have in common that differ in where they lie: element type, counts and strides outermost first."""

    dtype: np.dtype[Any]
    size: int
    counts: tuple[int, ...]
    strides: tuple[int, ...]
    shape: Shape


def _shape(pattern: AccessPattern, code: int) -> _Shape:
    dtype = numpy_dtype(code)
    size = dtype.itemsize
    counts = tuple(reversed(pattern.counts))
    strides = tuple([step * size for step in reversed(pattern.steps)])
    return _Shape(dtype, size, counts, strides, shape_of(zip(strides, counts, strict=True), size, unit=1))


_PLANS: dict[type[isa.Instruction], tuple[Plan, ...]] = {}


def plan_of(cls: type[isa.Instruction]) -> tuple[Plan, ...]:
    """Return the operands of a class in this core's memory; what lies on another core is not among them."""
    plan = _PLANS.get(cls)
    if plan is None:
        plan = _PLANS[cls] = tuple(
            Plan(name, field, cls.FIELDS[field.partitions], "read" in field.role, "write" in field.role)
            for name, field in cls.OPERANDS.items()
            if field.role in ("read", "write", "readwrite")
        )
    return plan


class Resolver:
    """Turn operands of one core's words into views, each distinct operand once."""

    _LIMIT = 1 << 14

    def __init__(self, memory: ChipMemory, arch: Arch) -> None:
        self.memory, self.arch = memory, arch
        self._partitions = memory.partitions
        # On chips whose matmuls stay inside a PSUM bank. Source: hardware.md 2.1.
        self.bank = 0 if arch.matmul_banks.value > 1 else memory.psum_bank
        self._known: dict[tuple[Any, ...], Operand] = {}
        self._shapes: dict[tuple[Any, ...], _Shape] = {}

    def resolve(self, word: isa.Instruction, plan: Plan, engine: str) -> Operand | None:
        """Return an operand of a word, None where the word does not use it.

        Raises FaultError where it leaves its memory, crosses what it must not cross, or lies out of the engine's reach.
        """
        field, raw = plan.field, word.raw
        if not field.enabled(raw):
            return None
        code = int(word.dtype_of(field))
        partitions = int(plan.partitions.read(raw))
        lanes = field.lanes
        if isinstance(lanes, str):
            lanes = word.FIELDS[lanes].read(raw)
        # Steps of a pointer are not in its bytes, so that its kind belongs to the key.
        where = raw[field.offset : field.offset + field.size]
        key = (where, code, partitions, plan.writes, engine, field.kind, lanes, plan.name)
        found = self._known.get(key)
        if found is None:
            value: Any = field.read(raw)
            pattern = value if isinstance(value, AccessPattern) else AccessPattern(value, (1,), (1,))
            found = self._place(plan.name, pattern, code, partitions, plan.writes, engine)
            if KEPT in lanes:
                found = self._masked(found, lanes)
            if len(self._known) >= self._LIMIT:
                self._known.clear()
            self._known[key] = found
        return found

    def _place(
        self, name: str, pattern: AccessPattern, code: int, partitions: int, writes: bool, engine: str
    ) -> Operand:
        known = self._shapes.get((pattern.steps, pattern.counts, code))
        if known is None:
            known = self._shapes[pattern.steps, pattern.counts, code] = _shape(pattern, code)
        dtype, size, counts, strides, shape = known
        address = pattern.address
        on_sbuf = address < PSUM_BASE
        space = "SBUF" if on_sbuf else "PSUM"
        stride = SBUF_PARTITION_STRIDE if on_sbuf else PSUM_PARTITION_STRIDE
        first, byte = divmod(address if on_sbuf else address - PSUM_BASE, stride)
        low = byte + shape.shift
        high = low + shape.reach
        memory = self.memory.laid(space)
        width = memory.shape[1]
        if first >= self._partitions or first + partitions > self._partitions or low < 0 or high > width:
            self._refuse(name, space, first, partitions, low, high, width, address - byte)
        if byte % size:
            raise fault_error(
                "alignment",
                f"{name}: {space} byte {byte:#x} is no multiple of the element size",
                operand=name,
                space=space,
                address=(address, address + size),
                expected=f"a multiple of {size} bytes",
                got=f"{byte:#x}",
            )
        self._reach(name, space, writes, engine, address)
        if self.bank and writes and engine == "PE" and low // self.bank != (high - 1) // self.bank:
            raise fault_error(
                "bank",
                f"{name}: PSUM bytes {low:#x} to {high - 1:#x} cross a bank",
                operand=name,
                space=space,
                address=(address - byte + low, address - byte + high),
                expected=f"one bank of {self.bank:#x} bytes",
                got=f"banks {low // self.bank} to {(high - 1) // self.bank}",
            )
        view: npt.NDArray[Any] = np.ndarray(
            (partitions, *counts),
            dtype,
            memory,
            first * width + byte,
            (width, *strides),
        )
        if not view.size:
            return Operand(name, view, (), ())
        region = Region(space, self.memory.core, first, partitions, low, shape.reach, shape.pattern)
        return Operand(name, view, (region,), (self.memory.extent(region),))

    def _masked(self, operand: Operand, lanes: tuple[int, ...]) -> Operand:
        """Return the operand restricted to the partitions that the word touches."""
        regions: list[Region] = []
        for region in operand.regions:
            start = None
            for p in range(region.partitions + 1):
                moved = p < region.partitions and lanes[p % len(lanes)] != KEPT
                if moved and start is None:
                    start = p
                elif not moved and start is not None:
                    regions.append(region._replace(first=region.first + start, partitions=p - start))
                    start = None
        return operand._replace(regions=tuple(regions), extents=tuple(map(self.memory.extent, regions)))

    def _refuse(
        self, name: str, space: str, first: int, partitions: int, low: int, high: int, width: int, base: int
    ) -> NoReturn:
        kind = "oob" if low < 0 or high > width else "partitions"
        rows = f"partitions {first} to {first + partitions - 1}"
        what = f"bytes {low:#x} to {high - 1:#x}" if kind == "oob" else rows
        raise fault_error(
            kind,
            f"{name}: {space} {what} out of bounds",
            operand=name,
            space=space,
            address=(base + low, base + high),
            expected=f"partitions 0 to {self._partitions - 1}, bytes 0x0 to {width - 1:#x} of each",
            got=f"{rows}, bytes {low:#x} to {high - 1:#x}",
        )

    @staticmethod
    def _reach(name: str, space: str, writes: bool, engine: str, address: int) -> None:
        """Refuse a memory that the engine has no port to. Source: hardware.md 2.4."""
        if engine == "PE":
            wrong = space == ("SBUF" if writes else "PSUM")
            allowed = "reads SBUF and writes PSUM"
        else:
            wrong, allowed = space == "PSUM" and engine in _NO_PSUM, "has no port to PSUM"
        if wrong:
            verb = "write" if writes else "read"
            raise fault_error(
                "access",
                f"{name}: {engine} cannot {verb} {space}",
                operand=name,
                space=space,
                address=(address, address + 1),
                expected=f"{engine} {allowed}",
            )
