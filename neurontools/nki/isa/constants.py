"""Enumerations that ISA calls take; values as documented (hardware.md 3.2, 4.4, 5.5)."""

from __future__ import annotations

from enum import Enum

__all__ = [
    "dge_mode",
    "dma_engine",
    "engine",
    "gpsimd_engine",
    "matmul_perf_mode",
    "nc_version",
    "oob_mode",
    "reduce_cmd",
    "scalar_engine",
    "tensor_engine",
    "unknown_engine",
    "vector_engine",
]


class engine(Enum):
    """Engine of a NeuronCore, as kernels name it."""

    __hash__ = object.__hash__  # Python's own is a function that hashes the name, and an operation asks for it

    unknown = 0
    tensor = 1
    scalar = 2
    gpsimd = 3
    dma = 4
    vector = 5
    sync = 6


class reduce_cmd(Enum):
    """What an instruction does with the accumulator registers."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(Enum):
    """Who makes the descriptors of a DMA."""

    __hash__ = object.__hash__

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(Enum):
    """What a dynamic address out of bounds does."""

    __hash__ = object.__hash__

    error = 0
    skip = 1


class matmul_perf_mode(Enum):
    """Performance mode of the Tensor engine."""

    __hash__ = object.__hash__

    none = "none"
    double_row = "double_row"


class nc_version(Enum):
    """Generation of a NeuronCore; ordered."""

    gen2 = 2
    gen3 = 3
    gen4 = 4

    def __lt__(self, other: object) -> bool:
        return self.value < other.value if isinstance(other, nc_version) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.value <= other.value if isinstance(other, nc_version) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self.value > other.value if isinstance(other, nc_version) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self.value >= other.value if isinstance(other, nc_version) else NotImplemented


class dma_engine(Enum):
    """Which DMA moves a `sendrecv`."""

    dma = 1
    gpsimd_dma = 2


tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown
