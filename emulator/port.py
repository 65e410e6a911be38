"""What an executor may use of the machine: the interface between the sequencers and the engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from emulator.generators import HasGenerators

if TYPE_CHECKING:
    from emulator.engines.pe_state import PeState  # its package imports the executors, which import this module

__all__ = ["ActivationCall", "Array", "Port"]

Array = npt.NDArray[Any]
ActivationCall = Callable[..., Any]


class Port(Protocol):
    """One word's way to memory, registers and state of its engine.

    Views are made, and their bounds checked, when asked for; they stay valid for the life of the device.
    """

    @property
    def engine(self) -> str:
        """Return the name of the engine: PE, Activation, Pool, DVE, SP."""
        ...

    @property
    def generation(self) -> str:
        """Return gen2, gen3 or gen4."""
        ...

    @property
    def core(self) -> HasGenerators:
        """Return the core, as the owner of what outlives a word: scratch memory, random number generators."""
        ...

    @property
    def extended(self) -> bool:
        """Return whether the program declares extension words."""
        ...

    @property
    def registers(self) -> list[int]:
        """Return the engine's registers, 256 unsigned 32-bit integers."""
        ...

    @property
    def accumulators(self) -> npt.NDArray[np.float32]:
        """Return the engine's accumulator registers, one fp32 per partition."""
        ...

    @property
    def pe(self) -> PeState:
        """Return the state of the Tensor engine."""
        ...

    def read(self, operand: str) -> Array:
        """Return an input operand: shape (partitions, counts outermost first), dtype of the operand.

        Raises FaultError where it is out of bounds.
        """
        ...

    def write(self, operand: str) -> Array:
        """Return an output operand, shaped as `read` shapes inputs."""
        ...

    def pointer(self, operand: str) -> Array | None:
        """Return one value per partition behind a pointer, shape (partitions, 1); None where it is not in use."""
        ...

    def activation(self, function_id: int) -> ActivationCall:
        """Return the activation function that the file's table binds to an id; UnsupportedError for an unknown one."""
        ...

    def branch(self, byte_offset: int) -> None:
        """Continue at a byte offset from the running word."""
        ...

    def set_semaphore(self, index: int, value: int) -> None:
        """Set a semaphore of the core."""
        ...

    def write_device(self, address: int, size: int, value: int) -> None:
        """Write `size` bytes to a device address: memory, semaphores, events, registers."""
        ...

    def read_device(self, address: int, size: int) -> int:
        """Read `size` bytes, little-endian, from a device address."""
        ...
