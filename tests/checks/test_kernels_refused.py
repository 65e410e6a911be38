"""Views that leave their tensor: every form is refused with its expression, and is a finding at the kernel's line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli

__all__ = ["cli"]  # a fixture

NEW = """
import numpy as np, nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_copy(dst={view}, src=t)
    nisa.dma_copy(dst=out, src=t)
    return out

kernel(np.ones((128, 64), np.float32))
"""
OLD = """
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, nl.load({view}))
    return out

kernel(np.ones((128, 64), np.float32))
"""
VIEWS = {
    "t[:, 0:80]": "t[:, 0:80] leaves dimension 1 of size 64",
    "t[0:129]": "t[0:129] leaves dimension 0 of size 128",
    "t[:, 70:]": "t[:, 70:] leaves dimension 1 of size 64",
    "t[:, -65:]": "t[:, -65:] leaves dimension 1 of size 64",
    "t[:, 0:66:2]": "t[:, 0:66:2] leaves dimension 1 of size 64",
    "t[:, nl.ds(8, 64)]": "nl.ds(8, 64) leaves dimension 1 of size 64",
    "t[:, 64]": "index 64 leaves dimension 1 of size 64",
    "t[-1:127]": "slice -1:127 of dimension 0 of size 128 is empty: a start below 0 counts from the end",
    "t.slice(1, 0, 80)": "slice 0:80:1 leaves dimension 1 of size 64",
    "t.ap([[64, 128], [1, 64]], offset=1)": "reaches elements 1 to 8192 of 8192",
}
OLD_VIEWS = {
    "x[:, 0:80]": "x[:, 0:80] leaves dimension 1 of size 64",
    "x[nl.arange(128)[:, None], nl.arange(65)[None, :]]": "indices 0 to 64 leave dimension 1 of size 64",
}
CASES = [*((NEW, *one) for one in VIEWS.items()), *((OLD, *one) for one in OLD_VIEWS.items())]


@pytest.mark.parametrize(("text", "view", "said"), CASES, ids=[one[1] for one in CASES])
def test_what_leaves_a_tensor_is_found(cli: Cli, tmp_path: Path, text: str, view: str, said: str) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(text.format(view=view))
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "{view}" in one)
    made = cli("check", file, "--json")
    (finding,) = made.json["result"]["findings"]
    assert made.status == 1 and (finding["tool"], finding["kind"]) == ("memcheck", "oob")
    assert said in finding["message"] and finding["site"]["source"]["line"] == line
    assert finding["hint"] and finding["site"]["code"]
    sarif = json.loads(cli("check", file, "--format", "sarif").out)
    (result,) = sarif["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == line
    assert cli("run", file).status == 3


LIMITS = {
    "nisa.tensor_scalar(t[16:48], t[16:48], nl.add, 1.0)": "32 partitions must start at 0, 32, 64 or 96",
    "nisa.tensor_copy(dst=t[:, 0:32], src=t)": "must be",
    "nisa.nc_matmul(nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.psum, address=(0, 1024)), t, "
    "nl.ndarray((128, 512), dtype=nl.float32))": "must not cross a bank of 2048 bytes",
}


@pytest.mark.parametrize(("call", "said"), LIMITS.items(), ids=["partitions", "shape", "bank"])
def test_a_broken_limit_is_found_at_its_line(cli: Cli, tmp_path: Path, call: str, said: str) -> None:
    """What the front end refuses is a finding of `check`, in SARIF too; `run` refuses the kernel."""
    text = NEW.format(view="t").replace("nisa.tensor_copy(dst=t, src=t)", call)
    file = tmp_path / "kernel.py"
    file.write_text(text)
    line = next(number for number, one in enumerate(text.splitlines(), 1) if call in one)
    made = cli("check", file, "--json", "--target", "trn2")
    (finding,) = made.json["result"]["findings"]
    assert made.status == 1 and (finding["tool"], finding["kind"]) == ("memcheck", "operand")
    assert said in finding["message"] and finding["site"]["source"]["line"] == line
    assert finding["site"]["owner"] == "kernel" and "what the message says" in finding["hint"]
    (result,) = json.loads(cli("check", file, "--format", "sarif", "--target", "trn2").out)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == line
    assert cli("run", file, "--target", "trn2").status == 3


def test_other_tools_leave_it_an_error(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(NEW.format(view="t[:, 0:80]"))
    assert cli("check", file, "--tool", "race").status == 3


@pytest.mark.parametrize(("view", "rows", "said"), [("out[0:64]", 64, "not written whole: 16384 of 32768 bytes"),
                                                   ("y", 128, "output out was never written")])  # fmt: skip
def test_run_says_that_an_output_was_not_written(cli: Cli, tmp_path: Path, view: str, rows: int, said: str) -> None:
    file = tmp_path / "kernel.py"
    text = NEW.format(view="t[:, 0:64]").replace(
        "nisa.dma_copy(dst=out, src=t)", f"nisa.dma_copy(dst={view}, src=t[0:{rows}])"
    )
    file.write_text(text.replace("    nisa.dma_copy(dst=t, src=x)", "    y = nl.ndarray((128, 64), dtype=nl.float32, "
                                 "buffer=nl.private_hbm)\n    nisa.dma_copy(dst=t, src=x)"))  # fmt: skip
    made = cli("run", file)
    assert made.status == 0 and said in made.err
    whole = tmp_path / "whole.py"
    whole.write_text(NEW.format(view="t[:, 0:64]"))
    assert "written" not in cli("run", whole).err


PIPES = """
import numpy as np, nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x):
    rank = nl.program_id(0)
    out = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    mine = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    theirs = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=mine, src=x[rank * 128 : rank * 128 + 128])
    nisa.sendrecv(mine, theirs, 1 - rank, 1 - rank, {pipe})
    nisa.dma_copy(dst=out[rank * 128 : rank * 128 + 128], src=theirs)
    return out

kernel[2](np.ones((256, 64), np.float32))
"""


@pytest.mark.parametrize("bad", [True, False])
def test_exchanges_on_pipes_that_do_not_meet(cli: Cli, tmp_path: Path, bad: bool) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(PIPES.format(pipe="rank" if bad else 7))
    made = cli("check", file, "--json")
    found = made.json["result"]["findings"]
    assert made.status == int(bad) and len(found) == bad
    if bad:
        line = next(number for number, one in enumerate(PIPES.splitlines(), 1) if "sendrecv" in one)
        assert (found[0]["tool"], found[0]["kind"]) == ("synccheck", "pipe")
        assert found[0]["site"]["source"]["line"] == line


LOADED = """.target trn2
.input x float32 [128, 64]
.queue qDyn pool 24
.engine pool
    PSEUDO_DMA_DIRECT2D dge_op=DIRECT2D semaphore={semaphore} sem_increment=16 src_elem_size=256 dst_elem_size=256 \
src_pattern=[256,1][128,1] dst_pattern=[262144,1][{rows},1] src_var_id=%x src_var_offset=0 src_shape_reg=0 \
dst_var_id=%SB dst_var_offset=16384 dst_shape_reg=0
    NOP S[{semaphore}]>=16 cycle=0
"""


@pytest.mark.parametrize(("semaphore", "rows", "says"), [
    (24, 128, ""), (24, 127, "source has 32768 elements and destination 32512"),
    (9, 128, "semaphore 9 belongs to no dynamic queue of Pool")])  # fmt: skip
def test_transfers_that_no_loader_takes(cli: Cli, tmp_path: Path, semaphore: int, rows: int, says: str) -> None:
    """They are findings at the line of the word, in SARIF too; `run` refuses them as files."""
    file = tmp_path / "loaded.s"
    file.write_text(LOADED.format(semaphore=semaphore, rows=rows))
    made = cli("check", file, "--json")
    found = made.json["result"]["findings"]
    assert made.status == bool(says) and len(found) == bool(says)
    assert cli("run", file).status == (3 if says else 0)
    if says:
        assert (found[0]["tool"], found[0]["kind"]) == ("memcheck", "operand") and says in found[0]["message"]
        assert found[0]["site"]["source"]["line"] == 5 and found[0]["hint"]
        (result,) = json.loads(cli("check", file, "--format", "sarif").out)["runs"][0]["results"]
        assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 5
