"""Faults: what stopped an execution, as a value that names engine, pc, instruction, operand and range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from emulator.errors import EmulatorError
from formats.named_tuple import NamedTuple
from formats.nrt.status import NrtStatus

__all__ = ["FAULT_STATUS", "OF_HARDWARE", "Fault", "FaultError", "Place", "fault_error", "source_line"]

# Status that the runtime returns for each kind. Only out-of-bound accesses, numerical errors and time-outs have a
# public mapping; the rest is the general "completed with error" or "bad input". Source: formats.md 10.
FAULT_STATUS: dict[str, NrtStatus] = {
    "oob": NrtStatus.NRT_EXEC_OOB,
    "partitions": NrtStatus.NRT_EXEC_OOB,
    "bank": NrtStatus.NRT_EXEC_OOB,
    "alignment": NrtStatus.NRT_EXEC_COMPLETED_WITH_ERR,
    "access": NrtStatus.NRT_EXEC_COMPLETED_WITH_ERR,
    "operand": NrtStatus.NRT_EXEC_BAD_INPUT,
    "semaphore": NrtStatus.NRT_EXEC_COMPLETED_WITH_ERR,
    "branch": NrtStatus.NRT_EXEC_COMPLETED_WITH_ERR,
    "numerical": NrtStatus.NRT_EXEC_COMPLETED_WITH_NUM_ERR,
    "timeout": NrtStatus.NRT_TIMEOUT,
    "unsupported": NrtStatus.NRT_FAILURE,
    # What hardware does to a program: only a session of the runtime that was told to injects these (runtime.md 11.1).
    "collectives": NrtStatus.NRT_EXEC_HW_ERR_COLLECTIVES,
    "hbm-ue": NrtStatus.NRT_EXEC_HW_ERR_HBM_UE,
    "hbm-ue-repairable": NrtStatus.NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE,
    "sram-ue": NrtStatus.NRT_EXEC_HW_ERR_NC_UE,
    "dma-abort": NrtStatus.NRT_EXEC_HW_ERR_DMA_ABORT,
    "nq-overflow": NrtStatus.NRT_EXEC_SW_NQ_OVERFLOW,
    "network": NrtStatus.NRT_NETWORK_PROXY_FAILURE,
    "lost-device": NrtStatus.NRT_HW_ERROR,
}
OF_HARDWARE = frozenset(
    {"collectives", "hbm-ue", "hbm-ue-repairable", "sram-ue", "dma-abort", "nq-overflow", "network", "lost-device"}
)
"""Kinds of faults that no program causes."""


class Place(NamedTuple):
    """Where in the program something happened; `source` has `file` and `line` where the file names them."""

    core: int
    engine: str
    pc: int
    instruction_text: str
    source: object | None = None


@dataclass(frozen=True)
class Fault:
    """What stopped an execution.

    `kind` is a key of FAULT_STATUS, or "rule" for what memcheck finds in a word that runs all the same. `address` is a
    half-open range in `space` ("SBUF", "PSUM": engine addresses; "HBM": device addresses), `tensor` the variable that
    the access belongs to. `expected` and `got` are text. Fields that do not apply are None; whoever raises the fault
    may leave core, engine, pc and text to the device, which fills them in.
    """

    kind: str
    message: str
    core: int = -1
    engine: str = ""
    pc: int = -1
    instruction_text: str = ""
    source: object | None = None
    operand: str | None = None
    space: str | None = None
    address: tuple[int, int] | None = None
    expected: str | None = None
    got: str | None = None
    time_ps: int = -1
    tensor: str | None = None

    @property
    def status(self) -> NrtStatus:
        """Return the status that the real runtime returns for it."""
        return FAULT_STATUS.get(self.kind, NrtStatus.NRT_EXEC_COMPLETED_WITH_ERR)

    def at(self, place: Place, time_ps: int) -> Fault:
        """Return the fault with place and time filled in where it has none."""
        return replace(
            self,
            core=self.core if self.core >= 0 else place.core,
            engine=self.engine or place.engine,
            pc=self.pc if self.pc >= 0 else place.pc,
            instruction_text=self.instruction_text or place.instruction_text,
            source=self.source if self.source is not None else place.source,
            time_ps=self.time_ps if self.time_ps >= 0 else time_ps,
        )

    @property
    def where(self) -> str:
        """Return core, engine, pc and source line on one line."""
        line = source_line(self.source)
        return f"nc{self.core} {self.engine} pc {self.pc}" + (f" ({line})" if line else "")

    @property
    def brief(self) -> str:
        """Return what happened and where, on one line."""
        limits = [f"; {what} {text}" for what, text in (("found", self.got), ("allowed:", self.expected)) if text]
        return self.message + (f", at {self.where}" if self.engine else "") + "".join(limits)

    def text(self) -> str:
        """Return the fault as an engineer reads it: one line of what, one of where, one of the instruction."""
        lines = [f"fault: {self.message} [{self.status.name} {int(self.status)}]", f"  at {self.where}"]
        if self.instruction_text:
            lines.append(f"  {self.instruction_text}")
        if self.expected is not None:
            lines.append(f"  allowed: {self.expected}")
        if self.got is not None:
            lines.append(f"  found: {self.got}")
        return "\n".join(lines)


class FaultError(EmulatorError):
    """Carry a fault from where it is found to the device, which records it and stops; never reaches the user."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)


def source_line(source: object | None) -> str:
    """Return "file:line" of a source location, with its operation of a graph if it has one; "" where it has none."""
    file, line = getattr(source, "file", None), getattr(source, "line", None)
    operation = getattr(source, "operation", None)
    behind = f" %{operation}" if operation else ""
    if not file:
        return behind.strip()
    return (f"{file}:{line}" if line is not None else str(file)) + behind


def fault_error(
    kind: str,
    message: str,
    *,
    operand: str | None = None,
    space: str | None = None,
    address: Sequence[int] | None = None,
    expected: str | None = None,
    got: str | None = None,
    tensor: str | None = None,
) -> FaultError:
    """Return the exception that carries a new fault; `address` is (first, one past the last)."""
    span = None if address is None else (int(address[0]), int(address[1]))
    return FaultError(
        Fault(kind, message, operand=operand, space=space, address=span, expected=expected, got=got, tensor=tensor)
    )
