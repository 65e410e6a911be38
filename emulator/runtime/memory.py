"""Where the runtime's device memory comes from: categories, allocations, and what an allocator must offer.

A session asks one `Memory` for everything it puts on a device; `emulator.runtime.ledger` has the one there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum, unique
from typing import NamedTuple, Protocol

from emulator.errors import EmulatorError
from formats.neff import Neff

__all__ = ["Allocation", "Category", "Memory", "OutOfMemoryError", "Owner", "Stack"]


@unique
class Category(StrEnum):
    """What device memory is used for, in the order of the runtime's table. Source: runtime.md 3.1."""

    CODE = "model code"
    CONSTANTS = "model constants"
    TENSORS = "tensors"
    SHARED_SCRATCHPAD = "shared scratchpad"
    SCRATCHPAD = "scratchpad"
    RUNTIME = "runtime"
    DMA_RINGS_IO = "dma rings io"
    DMA_RINGS_SPILL = "dma rings spill"
    DMA_RINGS_COLLECTIVES = "dma rings collectives"
    DMA_RINGS_RUNTIME = "dma rings runtime"
    COLLECTIVES = "collectives"
    XT_CC = "xt cc"
    PROFILER = "profiler buffers"


class Stack(NamedTuple):
    """One HBM stack of the instance: device, and stack on it."""

    device: int
    hbm: int


class Owner(NamedTuple):
    """Whom an allocation belongs to: a logical core, and the number of a loaded model, -1 for what no model has."""

    core: int
    model: int = -1


class Allocation(NamedTuple):
    """A range of one stack: `address` is a device address, `size` what it takes there, at least what was asked for."""

    number: int
    category: Category
    stack: Stack
    address: int
    size: int
    owner: Owner
    name: str = ""


class OutOfMemoryError(EmulatorError):
    """A stack without room; the message says what was asked for, by whom, and what is left."""

    def __init__(self, category: Category, size: int, stack: Stack, owner: Owner, free: int) -> None:
        self.category, self.size, self.stack, self.owner, self.free = category, size, stack, owner, free
        super().__init__(
            f"no room for {size} bytes of {category} on nd{stack.device} hbm{stack.hbm} (core {owner.core}): "
            f"{free} bytes are free"
        )


class Memory(Protocol):
    """Device memory of all devices of an instance."""

    def allocate(
        self,
        category: Category,
        size: int,
        *,
        stack: Stack,
        owner: Owner,
        align: int = ...,
        contiguous: bool = ...,
        name: str = ...,
    ) -> Allocation:
        """Reserve bytes on a stack; OutOfMemoryError where it has no room for them."""
        ...

    def free(self, allocation: Allocation) -> None:
        """Give an allocation back; ValueError for one that is not there."""
        ...

    def start_core(self, core: int, stacks: Sequence[Stack]) -> None:
        """Reserve what a logical core takes before anything is loaded: micro-code per physical core."""
        ...

    def load(self, neff: Neff, owner: Owner, stacks: Sequence[Stack]) -> None:
        """Reserve what a model takes, one stack per physical core; all of it, or OutOfMemoryError and nothing."""
        ...

    def unload(self, owner: Owner) -> None:
        """Give back everything that belongs to a model."""
        ...

    def stop_core(self, core: int) -> None:
        """Give back what `start_core` reserved."""
        ...

    def used(self, stack: Stack) -> int:
        """Return the bytes in use on a stack."""
        ...

    def limit(self, stack: Stack) -> int:
        """Return the bytes that a stack has."""
        ...
