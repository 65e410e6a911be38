"""Typical mistakes in kernels: the message names limit and line; an error of the script is the script's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

HEAD = """import nki, nki.isa as nisa, nki.language as nl, numpy as np
def tile(*shape, buffer=nl.sbuf): return nl.ndarray(shape, dtype=nl.float32, buffer=buffer)
@nki.jit
def kernel(a):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
"""
TAIL = "\nif __name__ == '__main__':\n    nki.simulate(kernel)(np.ones((128, 64), np.float32))\n"
FIRST = 6  # the line of the kernel's body after the head


def written(folder: Path, *body: str, tail: str = TAIL) -> Path:
    path = folder / "wrong.py"
    path.write_text(HEAD + "\n".join("    " + line for line in body) + tail)
    return path


@pytest.mark.parametrize(
    ("body", "line", "says"),
    [
        (("t = tile(128, 65)", "nisa.dma_copy(dst=t, src=a)"), FIRST + 1, "dst and src is of 8320 and 8192 elements"),
        (("nisa.tensor_tensor(dst=tile(128, 64), data1=a, data2=a, op=nl.add)",), FIRST, "data1 is a in HBM"),
        (("nisa.nc_matmul(tile(64, 64), tile(128, 64), tile(128, 64))",), FIRST, "must be in PSUM"),
        (("t = tile(64, 1, 600, buffer=nl.psum)", "nisa.nc_matmul(t, tile(8, 64), tile(8, 600))"), FIRST + 1, "512"),
        (("tile(129, 1)",), 2, "129 partitions, at most 128"),
        (("t = tile(128, 64)", "return t"), 3, "in sbuf; results must be in HBM"),
        (("yield out",), 3, "generator or coroutine"),
        (("nl.ndarray((4, 4), dtype='float99', buffer=nl.sbuf)",), FIRST, "dtype 'float99' is not an NKI data type"),
        (("a[0, 0, 0]",), FIRST, "3 indices for shape (128, 64)"),
    ],
)
def test_the_message_names_limit_and_line(
    cli: Cli, tmp_path: Path, body: tuple[str, ...], line: int, says: str
) -> None:
    path = written(tmp_path, *body)
    ended = cli("run", path, "--target", "trn2")
    assert ended.status == 3
    assert says in ended.error_line
    # Behind it stands the chain of calls where the line is in a helper.
    assert f"on trn2 (gen3) at {path}:{line}" in ended.error_line


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (("many = [tile(128, 512, buffer=nl.psum) for _ in range(9)]",), "PSUM is full: "),
        (("many = [tile(128, 16384) for _ in range(5)]",), "SBUF is full: "),
    ],
)
def test_what_does_not_fit_is_bad_input_and_lists_what_lives(
    cli: Cli, tmp_path: Path, body: tuple[str, ...], says: str
) -> None:
    uses = (
        "for one in many: nisa.memset(one, 1.0)",
        "total = tile(128, 512)",
        "nisa.memset(total, 0.0)",
        "for one in many * 2: nisa.tensor_tensor(dst=total, data1=total, data2=one[:, 0:512], op=nl.add)",
    )
    path = written(tmp_path, *body, *uses, "return out")
    document = cli("run", path, "--target", "trn2", "--json").json
    assert (document["exit"], document["error"]["kind"]) == (3, "input")
    assert document["error"]["message"].startswith(says)
    assert f"{path}:{FIRST + 1}" in document["error"]["message"]


def test_a_tile_of_an_earlier_launch_is_refused(cli: Cli, tmp_path: Path) -> None:
    body = (
        "global kept",
        "kept = tile(128, 64) if kept is None else kept",
        "nisa.dma_copy(dst=out, src=kept)",
        "return out",
    )
    tail = TAIL + "    nki.simulate(kernel)(np.ones((128, 64), np.float32))\n"
    path = written(tmp_path, *body, tail="\nkept = None\n" + tail)
    ended = cli("run", path, "--target", "trn2", "--quiet")
    assert ended.status == 3
    assert "belongs to another launch of a kernel" in ended.error_line
    assert ended.error_line.endswith(f"at {path}:{FIRST + 2}")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (("return 1 / 0",), "ZeroDivisionError: division by zero"),
        (("return missing",), "NameError: name 'missing' is not defined"),
        (("assert a.shape == (1, 2), 'wrong shape'",), "AssertionError: wrong shape"),
    ],
)
def test_an_error_of_the_script_shows_the_script_alone(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], body: tuple[str, ...], says: str
) -> None:
    from neurontools.cli import main

    path = written(tmp_path, *body)
    assert main(["run", str(path), "--target", "trn2"]) == 1
    text = capfd.readouterr().err
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.rstrip().endswith(says)
    assert f'File "{path}", line {FIRST}, in kernel' in text
    assert str(root / "neurontools") not in text


def test_an_unknown_keyword_gets_the_signature_and_the_line(cli: Cli, tmp_path: Path) -> None:
    path = written(tmp_path, "nisa.dma_copy(dst=out, source=a)")
    ended = cli("run", path, "--target", "trn2")
    assert ended.status == 3
    assert "dma_copy() got an unexpected keyword argument 'source'; it is nisa.dma_copy(dst, src, " in ended.error_line
    assert f"{path}:{FIRST}" in ended.error_line


def test_wrong_arguments_name_the_kernel(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from neurontools.cli import main

    path = written(tmp_path, "return out", tail="\nnki.simulate(kernel)()\n")
    assert main(["run", str(path)]) == 1
    assert capfd.readouterr().err.rstrip().endswith("TypeError: kernel() missing a required argument: 'a'")


def test_kernels_may_print(cli: Cli, tmp_path: Path) -> None:
    path = written(tmp_path, "print('shape', a.shape, a)", "nisa.dma_copy(dst=out, src=a)", "return out")
    ended = cli("run", path, "--target", "trn2")
    assert ended.status == 0
    assert ended.out == (
        "shape (128, 64) <NkiTensor 'a' private_hbm float32 (128, 64)>, whose values exist once the device "
        "runs: nl.device_print(prefix, tensor) prints them then\n"
    )
    document = cli("run", path, "--target", "trn2", "--json")
    assert document.json["exit"] == 0 and document.err.startswith("shape (128, 64)")
