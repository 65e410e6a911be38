"""What the runtime costs beside running the file directly, and a tensor call of 4 KiB through libnrt.so.1.

    python benchmarks/libnrt.py [TURNS]

Processor time; both sides in turns in one process, the median of the ratios. The execution of a session includes its
tensors, the log and the counters; a direct run makes its inputs and outputs as arrays.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable
from ctypes import create_string_buffer
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from emulator import runtime as direct
from emulator.runtime.session import Runtime
from emulator.runtime.tensor import Placement, TensorSet
from formats.neff import Neff
from tests.timeline.support import case

CALLS = 20_000


def session_of(neff: Neff, inputs: dict[str, Any]) -> Callable[[], object]:
    """Return an execution on a session that has everything loaded."""
    session = Runtime({"NEURON_RT_NUM_CORES": "1"})
    model = session.load(neff.to_bytes(), 0)
    given, wanted = TensorSet(), TensorSet()
    for each in model.tensors:
        tensor = session.allocate(Placement.DEVICE, 0, each.nbytes)
        if not each.output:
            tensor.write(inputs[each.name])
        (wanted if each.output else given).add(each.name, tensor)
    return lambda: session.execute(model, given, wanted)


def took(work: Callable[[], object]) -> float:
    """Return the processor time of one call."""
    began = process_time()
    work()
    return process_time() - began


def ratio(name: str, turns: int) -> float:
    """Return the time of an execution on a session over that of a direct run."""
    neff, inputs = case(name)
    execute = session_of(neff, inputs)
    took(execute), took(lambda: direct.run(neff, inputs))
    pairs = [(took(execute), took(lambda: direct.run(neff, inputs))) for _ in range(turns)]
    return median(mine / theirs for mine, theirs in pairs)


def calls() -> dict[str, float]:
    """Return the microseconds of tensor calls of 4 KiB, the loop of ctypes included."""
    from neurontools.libnrt.build import build
    from tests.libnrt.client import Client

    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        client = Client(ctypes.CDLL(str(Path(folder) / "libnrt.so.1"))).init()
        tensor, room = client.tensor(size=4096), create_string_buffer(4096)
        found = {}
        for name in ("nrt_tensor_read", "nrt_tensor_write"):
            call = getattr(client.lib, name)
            began = process_time()
            for _ in range(CALLS):
                call(tensor, room, 0, 4096)
            found[name] = 1e6 * (process_time() - began) / CALLS
        client.end()
    return found


def main() -> None:
    """Print the figures."""
    os.environ |= {"NEURON_RT_LOG_LEVEL": "ERROR"}
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    for name in ("tiles", "matmul", "pair"):
        print(f"{name:<8}{ratio(name, turns):6.3f} times a direct run")
    for name, microseconds in calls().items():
        print(f"{name:<18}{microseconds:6.2f} us")


if __name__ == "__main__":
    main()
