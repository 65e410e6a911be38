"""Every option with which a command writes a file or a folder: how to make it write, and how to tell what is whole."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from neurontools.cli import main

__all__ = ["ELSEWHERE", "WRITERS", "Writer", "prepare", "whole"]

_ROOT = Path(__file__).resolve().parents[2]


class Writer(NamedTuple):
    """One option that writes: a command line that uses it, and the name of what it makes.

    `{root}` in the arguments is this repository, `{made}` the folder of what `prepare` has made; the working folder is
    the one that is written to.  `same` says that two runs write the same bytes.
    """

    option: str
    arguments: str
    out: str
    same: bool = True
    status: int = 0


WRITERS = (
    Writer("run --outputs", "run {root}/fixtures/neff/add_exp.neff --inputs zeros --outputs out.npz", "out.npz"),
    Writer("run --save-neff", "run {root}/examples/vector_add.py --save-neff out.neff", "out.neff"),
    Writer("run --record", "run {root}/examples/race.s --inputs zeros --record out.nrec", "out.nrec"),
    Writer("run --dump-dir", "run {root}/examples/out_of_bounds.s --inputs zeros --dump-dir out", "out", False, 5),
    Writer("profile run --output", "profile {root}/examples/race.s --format json -o out.json", "out.json", False),
    Writer("neff unpack", "neff unpack {root}/fixtures/neff/add_exp.neff out", "out"),
    Writer("neff pack --output", "neff pack {made}/unpacked -o out.neff", "out.neff"),
    Writer("asm --output", "asm {root}/examples/race.s -o out.neff", "out.neff"),
    Writer("core memory --output", "core memory {root}/fixtures/core/nan.core 0:0x4000 -o out.npy", "out.npy"),
    Writer("core extract", "core extract {root}/fixtures/core/hang.core out", "out"),
    Writer("core triage --html", "core triage {made}/dumps --html out.html", "out.html", False, 1),
    Writer("core triage --rows", "core triage {made}/dumps --rows out.jsonl", "out.jsonl", False, 1),
    Writer("ntff compare --csv", "ntff compare {root}/fixtures/ntff/double.ntff {made}/double.neff --csv out.csv",
           "out.csv"),
    Writer("ntff export --output", "ntff export {root}/fixtures/ntff/double.ntff -o out.json", "out.json"),
    Writer("hlo tokens add --output", "hlo tokens add {made}/sum.hlo -o out.pb", "out.pb"),
    Writer("hlo tokens strip --output", "hlo tokens strip {made}/sum.hlo -o out.pb", "out.pb"),
    Writer("dbgstream record --output", "dbgstream record {made}/prints.py -o out.bin", "out.bin", False),
    Writer("dbgstream decode --save", "dbgstream decode {made}/prints.bin --save out", "out"),
    Writer("mem plan --emit-log", "mem plan --tensor nc0:20GiB --emit-log .", "neuron_mem_table_device_0_hbm_0.log",
           False),
    Writer("compile model --output", "compile {made}/add.hlo --target trn2 -o out.neff --logfile out.log", "out.neff"),
    Writer("cc run --outputs", "cc run allr --ranks 4 --outputs out.npz", "out.npz"),
    Writer("cc bench --report-to-json-file", "cc bench allr --ranks 4 --report-to-json-file out.json", "out.json"),
    Writer("cc bench-parse --write", "cc bench-parse --published --write out.md", "out.md"),
    Writer("batch --junit", "batch {made}/manifest.toml --junit out.xml", "out.xml", False),
)  # fmt: skip

# Options that write with the same functions, and why no command line of a second stands above.
ELSEWHERE: dict[str, str] = {
    "overlap report --trace": "tests/cli writes one; a run of ranks takes seconds",
    "profile validate --write": "takes minutes",
    "selftest jax --rows": "needs jax",
    "selftest onnx --rows": "needs onnx",
    "tune --parquet": "needs pyarrow",
}


_PRINTS = """
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nl.device_print("tile", tile)
    nisa.dma_copy(dst=out, src=tile)
    return out

double(np.ones((128, 64), np.float32))
"""
_ADD = """HloModule add

ENTRY main {
  x = f32[128,64] parameter(0)
  ROOT y = f32[128,64] add(x, x)
}
"""
_SUM = """HloModule sum

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[16] parameter(0)
  ROOT y = f32[16] all-reduce(x), replica_groups={{0,1}}, to_apply=add
}
"""


def prepare(folder: Path) -> None:
    """Make what the command lines read, below the folder that they name `{made}`."""
    (folder / "prints.py").write_text(_PRINTS)
    (folder / "add.hlo").write_text(_ADD)
    (folder / "sum.hlo").write_text(_SUM)
    (folder / "manifest.toml").write_text(f'[[program]]\nfile = "{_ROOT}/examples/vector_add.py"\ndo = ["run"]\n')
    for line in (
        f"neff unpack {_ROOT}/fixtures/neff/add_exp.neff {folder}/unpacked",
        f"run {_ROOT}/examples/out_of_bounds.s --inputs zeros --dump-dir {folder}/dumps",
        f"asm {_ROOT}/fixtures/ntff/double.s -o {folder}/double.neff",
        f"dbgstream record {folder}/prints.py -o {folder}/prints.bin",
    ):
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            main(line.split())


def whole(path: Path) -> bool:
    """Tell whether a file or folder is complete by its own format, where two runs do not write the same bytes."""
    if path.is_dir():
        return all(whole(each) for each in path.rglob("*") if each.is_file())
    data = path.read_bytes()
    check = _FORMATS.get(path.suffix)
    return bool(data) and (check is None or check(data))


def _json(data: bytes) -> bool:
    json.loads(data)
    return True


def _lines(data: bytes) -> bool:
    return data.endswith(b"\n") and all(_json(line) for line in data.splitlines())


def _zip(data: bytes) -> bool:
    return zipfile.ZipFile(io.BytesIO(data)).testzip() is None


_FORMATS: dict[str, Callable[[bytes], bool]] = {
    ".json": _json,
    ".jsonl": _lines,
    ".npz": _zip,
    ".nrec": _zip,
    ".html": lambda data: data.rstrip().endswith(b"</html>"),
    ".xml": lambda data: data.rstrip().endswith(b">"),
}
