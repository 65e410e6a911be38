"""`neurontools memh budget`: live bytes worked out by hand, round trips through HBM, faults."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json
from tests.cli.conftest import Cli

KERNEL = """
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    {spill}
    a = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    b = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x)
    nisa.tensor_tensor(dst=b, data1=a, data2=a, op=nl.add)
    {through}
    nisa.dma_copy(dst=out, src=b)
    return out

kernel(np.ones((64, 256), np.float32))
"""
SPILL = "t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)"
THROUGH = "nisa.dma_copy(dst=t, src=b); nisa.dma_copy(dst=b, src=t)"


def test_live_bytes_and_a_round_trip(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(KERNEL.format(spill="", through=""))
    found = checked_json(cli("memh", "budget", tmp_path / "k.py", "--json"), "memh budget")
    sbuf = next(row for row in found["memories"] if row["space"] == "SBUF")
    assert (sbuf["touched"], sbuf["live"]) == (2048, 2048)  # both tiles of 1,024 bytes meet at the addition
    assert found["round_trips"] == []
    (tmp_path / "k.py").write_text(KERNEL.format(spill=SPILL, through=THROUGH))
    found = checked_json(cli("memh", "budget", tmp_path / "k.py", "--json"), "memh budget")
    assert sum(trip["bytes"] for trip in found["round_trips"]) == 64 * 256 * 4
    assert all(trip["written_ns"] < trip["read_ns"] for trip in found["round_trips"])
    (tmp_path / "k.py").write_text(KERNEL.format(spill=SPILL, through=f"{THROUGH}; {THROUGH}"))
    found = checked_json(cli("memh", "budget", tmp_path / "k.py", "--json"), "memh budget")
    assert len(found["round_trips"]) == 2  # what was written over does not come back


def test_a_program_that_faults(cli: Cli, root: Path) -> None:
    ended = cli("memh", "budget", root / "examples/out_of_bounds.s")
    assert ended.status == 5 and "the run did not finish" in ended.err
    assert "live at most" in cli("memh", "budget", root / "examples/attention.py").out
    assert cli("memh", "budget", root / "missing.neff").status == 4
