"""What device memory is used for, and by whom: the words of `emulator.runtime.ledger`, which accounts for all of it."""

from __future__ import annotations

from enum import StrEnum, unique

from emulator.errors import EmulatorError
from formats.named_tuple import NamedTuple

__all__ = ["Allocation", "Category", "OutOfMemoryError", "Owner", "Stack"]


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
