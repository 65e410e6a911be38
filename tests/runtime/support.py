"""Small models and sessions for the tests of the runtime."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from emulator.runtime.model import Model
from emulator.runtime.session import Failure, Runtime
from emulator.runtime.tensor import Placement, Tensor, TensorSet
from formats import isa
from formats.debug_stream import tensor_name
from formats.neff import Neff
from tests.emulator.dma_programs import PARTITION, direct, gen3, load_and_store, wait

X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)


def copying() -> bytes:
    """Return a file that copies x to y."""
    return load_and_store().to_bytes()


def hanging() -> bytes:
    """Return a file whose Sync engine waits for a semaphore that nobody raises."""
    return gen3({"SP": [isa.Nop(**wait(8))]}).to_bytes()


def out_of_bounds() -> bytes:
    """Return a file that reads beyond its input."""
    return gen3(
        {"SP": [direct(("table", 0, 4), ("variable", 0, 0x4000), 256, 128, 256, PARTITION)]},
        inputs={"x": ("float32", (128, 64))},
    ).to_bytes()


def printing() -> bytes:
    """Return a file that prints x and has no output."""
    words = [
        direct(("table", 0, 0), ("variable", 0, 0x4000), 256, 128, 256, PARTITION),
        direct(("variable", 0, 0x4000), ("table", 1, 0), 256, 128, PARTITION, 256, semaphore=9, **wait(8)),
        isa.Nop(**wait(9)),
    ]
    form = ("float32", (128, 64))
    return gen3({"SP": words}, inputs={"x": form}, outputs={tensor_name(0, "x is"): form}).to_bytes()


def with_header(neff: Neff, **fields: Any) -> bytes:
    """Return a file with other values in its header."""
    data = neff.to_bytes()
    return neff.header._replace(**fields).encode() + data[1024:]


def free_port(several: int = 1) -> int:
    """Return a port that nobody has, with some behind it that nobody has either."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port + several < 1 << 16 and all(_is_free(port + each) for each in range(1, several)):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@dataclass
class Session:
    """A session with what it wrote and what its collector was given."""

    environ: Mapping[str, str] = field(default_factory=dict)
    collect: bool = False

    def __post_init__(self) -> None:
        self.lines: list[str] = []
        self.places: list[str] = []
        self.failures: list[Failure] = []
        self.runtime = Runtime(self.environ, sink=self._write, collector=self.failures.append if self.collect else None)

    def _write(self, place: str, line: str) -> None:
        self.places.append(place)
        self.lines.append(line)

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    def tensor(self, array: np.ndarray, core: int = 0) -> Tensor:
        tensor = self.runtime.allocate(Placement.DEVICE, core, array.nbytes)
        tensor.write(np.ascontiguousarray(array))
        return tensor

    def sets(self, model: Model, x: np.ndarray = X) -> tuple[TensorSet, TensorSet]:
        """Return sets for a model that takes x, with zeros for its outputs."""
        inputs, outputs = TensorSet(), TensorSet()
        for each in model.tensors:
            tensor = self.runtime.allocate(Placement.DEVICE, model.core, each.nbytes)
            if not each.output:
                tensor.write(np.ascontiguousarray(x))
            (outputs if each.output else inputs).add(each.name, tensor)
        return inputs, outputs

    def used(self) -> int:
        memory = self.runtime.memory
        return sum(memory.used(stack) for core in self.runtime.cores for stack in set(core.stacks))
