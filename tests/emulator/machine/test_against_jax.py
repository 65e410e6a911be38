"""Collectives against JAX: 64 forced host devices under shard_map, bit for bit but for sums of floats."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.machine.collectives.algorithms import Algorithm
from emulator.machine.collectives.group import Group
from emulator.machine.collectives.plan import Operation, Request, build
from emulator.machine.collectives.run import execute, make_inputs
from emulator.machine.machine import Machine

N = 64
SCRIPT = """
import sys
import numpy as np
import jax
from jax import lax
from jax.sharding import Mesh, PartitionSpec as P
shard_map = getattr(jax, "shard_map", None)
if shard_map is None:
    from jax.experimental.shard_map import shard_map
given = np.load(sys.argv[1])
mesh = Mesh(np.array(jax.devices()[:64]), ("r",))
def over(function, array):
    return np.asarray(jax.jit(shard_map(function, mesh=mesh, in_specs=P("r"), out_specs=P("r")))(array))
ring = [(r, (r + 1) % 64) for r in range(64)]
found = {}
for kind in ("int32", "float32"):
    whole, chunk = given[kind], given[kind + "_chunk"]
    found[kind + "_allgather"] = over(lambda x: lax.all_gather(x[0], "r", tiled=True)[None], chunk)
    found[kind + "_alltoall"] = over(lambda x: lax.all_to_all(x, "r", split_axis=1, concat_axis=1, tiled=True), whole)
    found[kind + "_permute"] = over(lambda x: lax.ppermute(x, "r", ring), chunk)
    found[kind + "_max"] = over(lambda x: lax.pmax(x, "r"), whole)
    found[kind + "_min"] = over(lambda x: lax.pmin(x, "r"), whole)
found["int32_allreduce"] = over(lambda x: lax.psum(x, "r"), given["int32"])
found["int32_reducescatter"] = over(lambda x: lax.psum_scatter(x[0], "r", tiled=True)[None], given["int32"])
np.savez(sys.argv[2], **found)
"""


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the inputs, a row a rank, and what JAX makes of them."""
    pytest.importorskip("jax", reason="JAX is not installed")
    folder: Path = tmp_path_factory.mktemp("jax")
    given = {}
    group = Group(Machine("trn2.48xlarge"), range(N))
    for kind in ("int32", "float32"):
        for name, operation in (("", "allreduce"), ("_chunk", "allgather")):
            plan = build(Request(operation, group, N * 3, "mesh"))  # type: ignore[arg-type]
            inputs = make_inputs([plan], kind, "random", seed=11)
            given[kind + name] = np.stack([inputs[rank] for rank in range(N)])
    np.savez(folder / "in.npz", **given)
    flags = "--xla_force_host_platform_device_count=64"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder / "in.npz"), str(folder / "out.npz")],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return given, dict(np.load(folder / "out.npz"))


CASES: list[tuple[Operation, str, Algorithm]] = [
    *(("allgather", "add", name) for name in ("ring", "mesh", "rdh", "kangaring")),
    *(("allreduce", fold, name) for fold in ("min", "max")
      for name in ("mesh", "rdh", "kangaring", "single-step-mesh")),
    ("alltoall", "add", "mesh"), ("permute", "add", "mesh"),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["int32", "float32"])
@pytest.mark.parametrize(("operation", "fold", "algorithm"), CASES)
def test_movement_min_and_max(oracle: Any, operation: Operation, fold: str, algorithm: Algorithm, kind: str) -> None:
    given, found = oracle
    whole = operation in ("allreduce", "alltoall")
    pairs = tuple((rank, (rank + 1) % N) for rank in range(N)) if operation == "permute" else ()
    elements = given[kind + "_chunk"].shape[1] if operation == "permute" else N * 3
    group = Group(Machine("trn2.48xlarge"), range(N))
    if operation == "permute":
        # A ring over the ranks in their order leaves the links between rows of chips: movement is what counts here.
        operation = "sendrecv"
    request = Request(operation, group, elements, algorithm, reduce=fold, pairs=pairs)
    inputs = {rank: given[kind if whole else kind + "_chunk"][rank] for rank in range(N)}
    outputs = execute([request], kind, inputs).outputs
    name = f"{kind}_{fold}" if operation == "allreduce" else f"{kind}_{'permute' if pairs else operation}"
    for rank in range(N):
        assert outputs[rank].tobytes() == np.ascontiguousarray(found[name][rank]).tobytes()


@pytest.mark.parametrize("algorithm", ["ring", "mesh", "rdh", "kangaring"])
@pytest.mark.parametrize("operation", ["allreduce", "reducescatter"])
def test_sums_of_integers(oracle: Any, operation: Operation, algorithm: Algorithm) -> None:
    given, found = oracle
    request = Request(operation, Group(Machine("trn2.48xlarge"), range(N)), N * 3, algorithm)
    outputs = execute([request], np.int32, {rank: given["int32"][rank] for rank in range(N)}).outputs
    for rank in range(N):
        assert outputs[rank].tobytes() == np.ascontiguousarray(found[f"int32_{operation}"][rank]).tobytes()
