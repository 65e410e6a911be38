"""A bench for executors: the memories of one core, a port per word, and words written as plain calls."""

from __future__ import annotations

import numpy as np

from emulator import activation_functions
from emulator.arch import arch_of
from emulator.dtypes import numpy_dtype
from emulator.engines import PeState, bind
from emulator.generators import GeneratorBank
from formats import isa
from formats.dtypes import Dtype
from formats.isa import AccessPattern
from formats.neuron_core import PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE

NAMES = {int(f): f.name.lower() for f in isa.ActivationFunction}


class Bench:
    """One core's memories and engine state; doubles as the port of the word under test."""

    def __init__(self, target: str = "trn2", sbuf_bytes: int = 0x9000) -> None:
        self.generation = arch_of(target).generation
        self.sbuf = np.full((128, sbuf_bytes), 0xFF, np.uint8)
        self.psum = np.full((128, 1 << 14), 0xFF, np.uint8)
        self.pe = PeState()
        self.generators = GeneratorBank()
        self.accumulators = np.zeros(128, np.float32)
        self.registers = [0] * 256
        self.device: dict[int, int] = {}
        self.semaphores = list(range(256))
        self.branched: list[int] = []
        self.engine = "DVE"
        self.extended = True
        self.core = self

    # the port
    def read(self, name: str) -> np.ndarray:
        field = type(self.word).OPERANDS[name]
        pattern = field.read(self.word.raw)
        if not isinstance(pattern, AccessPattern):
            pattern = AccessPattern(pattern, (1,), (1,))
        code = field.dtype if isinstance(field.dtype, Dtype) else int(getattr(self.word, field.dtype))
        if code == 0:  # the output of a MATMUL
            code = int(self.word.dtype) if self.word.transpose_mode else Dtype.FLOAT32
        dtype, memory, first, byte = numpy_dtype(code), *self._place(pattern.address)
        width = memory.shape[1]
        strides = (width, *(step * dtype.itemsize for step in reversed(pattern.steps)))
        return np.ndarray(
            (int(getattr(self.word, field.partitions)), *reversed(pattern.counts)),
            dtype,
            memory,
            first * width + byte,
            strides,
        )

    write = read

    def pointer(self, name: str) -> np.ndarray | None:
        return self.read(name) if type(self.word).OPERANDS[name].enabled(self.word.raw) else None

    def _place(self, address: int) -> tuple[np.ndarray, int, int]:
        if address < PSUM_BASE:
            return self.sbuf, *divmod(address, SBUF_PARTITION_STRIDE)
        return self.psum, *divmod(address - PSUM_BASE, PSUM_PARTITION_STRIDE)

    def set_semaphore(self, index: int, value: int) -> None:
        self.semaphores[index] = value

    def activation(self, function_id: int):
        return activation_functions.bind(NAMES[function_id])

    def branch(self, byte_offset: int) -> None:
        self.branched.append(byte_offset)

    def write_device(self, address: int, size: int, value: int) -> None:
        self.device[address] = value & ((1 << 8 * size) - 1)

    def read_device(self, address: int, size: int) -> int:
        return self.device[address] & ((1 << 8 * size) - 1)

    # the bench
    def bind(self, word: isa.Instruction, engine: str | None = None):
        self.word, self.engine = word, engine or type(word).ENGINES[0]
        return bind(word, self)

    def run(self, word: isa.Instruction, engine: str | None = None) -> None:
        self.bind(word, engine)()

    def put(self, address: int, values: np.ndarray, dtype: Dtype) -> None:
        """Store a (partitions, elements) array at an engine address."""
        self.at(address, values.shape, dtype)[...] = np.asarray(values).astype(numpy_dtype(dtype))

    def at(self, address: int, shape: tuple[int, int], dtype: Dtype) -> np.ndarray:
        """Return (partitions, elements) at an engine address as a view."""
        memory, first, byte = self._place(address)
        rows = memory[first : first + shape[0], byte : byte + shape[1] * numpy_dtype(dtype).itemsize]
        return rows.view(numpy_dtype(dtype))


def flat(address: int, count: int, dims: int = 3, step: int = 1) -> AccessPattern:
    """Return a pattern of one dimension."""
    return AccessPattern(address, (step,) + (1,) * (dims - 1), (count,) + (1,) * (dims - 1))


A, B, C, P = 0x0000, 0x2000, 0x4000, 0x8000  # places in SBUF, far enough apart for the tiles of the tests
PSUM = PSUM_BASE
