"""Every code block in the documentation of the interface runs as a kernel; most assert their own results."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16 with NumPy
import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl

RNG = np.random.default_rng(11)
_BLOCK = re.compile(r"\.\. code-block:: python\n((?:[ \t]*\n|[ ]+.*\n?)+)")
_MEMBERS = ("language", "isa")

# Blocks that are no programs, and why.
NO_PROGRAM = {
    "isa.activation.0": "a formula",
    "isa.VirtualRegister.1": "dots in the place of a source",
}


def blocks(corpus: Path) -> dict[str, str]:
    """Return the code blocks that call the interface, by module, name and number."""
    found: dict[str, str] = {}
    for module in _MEMBERS:
        path = corpus / "aws-neuron-sdk" / "nki" / "api" / "nki" / module / "__init__.py"
        if not path.is_file():
            pytest.skip(f"no {path}")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                for number, match in enumerate(_BLOCK.finditer((ast.get_docstring(node) or "") + "\n")):
                    if re.search(r"\b(nl|nisa)\.|\w_barrier\(", match[1]):
                        found[f"{module}.{node.name}.{number}"] = textwrap.dedent(match[1])
    return found


@pytest.fixture(scope="module")
def documented(corpus: Path) -> Iterator[dict[str, str]]:
    found = blocks(corpus)
    assert nki.install()
    yield found
    nki.uninstall()


def run(name: str, code: str, given: dict[str, Any], cores: int = 1, target: str = "trn3") -> dict[str, Any]:
    """Run a block as a kernel's body with names bound to arguments; return the names that it made."""
    names: dict[str, Any] = {"nki": nki, "nl": nl, "nisa": nisa, "np": np}

    def body(given: dict[str, Any]) -> None:
        names.update(given, core_id=nl.program_id(0))
        exec(compile(code, name, "exec"), names)

    kernel = nki.jit(body, platform_target=target)
    (kernel[cores] if cores > 1 else kernel)(given)
    return names


def floats(*shape: int, dtype: str = "float32") -> Any:
    return RNG.normal(size=shape).astype(dtype)


def _squares(given: dict[str, Any]) -> None:
    columns = given["written"]
    assert (given["out_tensor"][:, :columns] == given["input_tensor"][:, :columns] ** 2).all()


def _gathered(given: dict[str, Any]) -> None:
    expected = np.take_along_axis(given["data_tensor"], given["indices_tensor"].astype(np.int64), axis=1)
    assert (given["actual_tensor"] == expected).all()


def _counted(given: dict[str, Any]) -> None:
    turns = int(given["ub_input"][0, 0])
    assert (given["output"][0, :turns] == given["data"][0, :turns]).all() and not given["output"][0, turns:].any()


def _identity(given: dict[str, Any]) -> None:
    assert (given["actual_tensor"] == np.eye(128)).all()


def _nothing(given: dict[str, Any]) -> None:
    """Take the block's word: it ran."""


def _range(written: int) -> tuple[Callable[[], dict[str, Any]], Callable[[dict[str, Any]], None]]:
    return lambda: {"input_tensor": floats(128, 1024), "out_tensor": np.zeros((128, 1024), np.float32),
                    "written": written}, _squares  # fmt: skip


# Free names of blocks, and what has to hold of them after the run.
BOUND: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[dict[str, Any]], None]]] = {
    "language.affine_range.0": _range(1024),
    "language.sequential_range.0": _range(1024),
    "language.static_range.0": _range(1024),
    "language.dynamic_range.0": _range(512),
    "isa.VirtualRegister.0": _range(512),
    "language.copy.0": (lambda: {"x_tensor": floats(128, 64), "y_tensor": floats(128, 512)}, _nothing),
    "language.gather_flattened.0": (
        lambda: {"data_tensor": floats(128, 512), "indices_tensor": RNG.integers(0, 512, (128, 512), np.uint32),
                 "actual_tensor": np.zeros((128, 512), np.float32)}, _gathered),
    "language.fori_loop.1": (
        lambda: {"ub_input": np.array([[3]], np.int32), "N": 8, "output": np.ones((1, 8), np.float32),
                 "data": floats(1, 8)}, _counted),
    "language.while_loop.1": (
        lambda: {"data": floats(1, 1), "count_input": np.array([[3]], np.int32)}, _nothing),
    "language.shared_identity_matrix.0": (
        lambda: {"expected_tensor": np.eye(128, dtype=np.float32),
                 "actual_tensor": np.zeros((128, 128), np.float32)}, _identity),
    "language.__getitem__.0": (lambda: {"i": 8}, _nothing),
}  # fmt: skip


def test_blocks_run_and_their_assertions_hold(documented: dict[str, str]) -> None:
    asserted = 0
    for name, code in documented.items():
        if name in NO_PROGRAM or name in BOUND or name in ON_TWO_CORES or name == "language.ap.0":
            continue
        run(name, code, {})
        asserted += "nl.equal" in code
    assert asserted >= 31  # those that state a result


@pytest.mark.parametrize("name", BOUND)
def test_block_with_free_names(documented: dict[str, str], name: str) -> None:
    given, check = BOUND[name]
    arguments = given()
    run(name, documented[name], arguments)
    check(arguments)


def test_block_with_a_dynamic_index(documented: dict[str, str]) -> None:
    code = "idx = nl.load(place)\n" + documented["language.ap.0"]
    run("language.ap.0", code, {"place": np.array([[1]], np.int32)})


ON_TWO_CORES = ("isa.core_barrier.0", "isa.sendrecv.0")


@pytest.mark.parametrize("name", ON_TWO_CORES)
def test_block_on_two_cores(documented: dict[str, str], name: str) -> None:
    given = {"batch_size": 64, "hidden_dim": 32, "sendrecv": nisa.sendrecv, "core_barrier": nisa.core_barrier}
    run(name, documented[name], given, cores=2)


def test_what_is_no_program_is_named(documented: dict[str, str]) -> None:
    assert set(NO_PROGRAM) | set(BOUND) | set(ON_TWO_CORES) <= set(documented)
    assert len(documented) >= 70


def _kernel(code: str, name: str) -> Any:
    names: dict[str, Any] = {"nki": nki, "nl": nl, "nisa": nisa, "np": np}
    exec(compile(code, name, "exec"), names)
    return nki.jit(getattr(names[name], "function", names[name]), platform_target="trn3")


def _gather_transposed(data: Any, places: Any) -> Any:
    return data[places.T.reshape(-1)]


def _topk(data: Any) -> tuple[Any, Any]:
    line = data.astype(np.float32).T.reshape(-1)[:42]  # the snake runs over the 16 partitions first
    order = np.argsort(line, kind="stable")[-8:]
    return line[order], order


def _found(data: Any) -> Any:
    out = np.full((128, data.shape[1] + 1), 0, np.int32)
    for row in range(0, 128, 16):
        places = np.flatnonzero(data[row])
        out[row] = -1
        out[row, : len(places)], out[row, -1] = places, len(places)
    return out


def test_kernels_of_the_documentation_match_numpy(documented: dict[str, str]) -> None:
    data, places = floats(256, 128, dtype="bfloat16"), RNG.permutation(256)[:, None].astype(np.uint32)
    gather = _kernel(documented["isa.dma_copy.0"], "indirect_gather_kernel")
    assert (gather(data, places[:128]) == data[places[:128, 0]]).all()

    out = np.zeros((256, 128), np.float32)
    scatter = _kernel(documented["isa.dma_copy.1"], "indirect_scatter_kernel")
    source = floats(128, 128)
    assert (scatter(source, places[:128], out)[places[:128, 0]] == source).all()

    left, right = floats(512, 128), floats(512, 256)
    product = _kernel(documented["isa.nc_matmul.0"], "nc_matmul_accumulate_kernel")(left, right)
    np.testing.assert_allclose(product, left.T.astype(np.float64) @ right, rtol=1e-4, atol=1e-3)

    turned = _kernel(documented["isa.dma_transpose.0"], "gather_transpose_kernel")(data, places[:128])
    assert (turned == data[places[:128, 0]].T).all()
    both = places.reshape(2, 128).T.copy()  # two columns of indices, taken one column after the other
    turned = _kernel(documented["isa.dma_transpose.1"], "gather_transpose_2d_kernel")(data, both)
    assert (turned == _gather_transposed(data, both).T).all()
    wide = floats(256, 1, 3, 16, dtype="bfloat16")
    turned = _kernel(documented["isa.dma_transpose.2"], "gather_transpose_4d_kernel")(wide, both)
    assert (turned == _gather_transposed(wide, both).transpose(3, 1, 2, 0)).all()

    x = floats(128, 64)
    got = _kernel(documented["isa.activate2.0"], "activate2_scale_bias_kernel")(x)
    run_through = nki.jit(lambda y: _gelu(y), platform_target="trn3")(2 * x + np.float32(0.5))
    np.testing.assert_allclose(got, run_through, rtol=1e-5, atol=1e-6)

    flags = (RNG.random((128, 40)) < 0.3).astype(np.float32)
    got = _kernel(documented["isa.nonzero_with_count.1"], "nonzero_with_count_kernel")(flags)
    assert (got[::16] == _found(flags)[::16]).all()


def _gelu(y: Any) -> Any:
    out = nl.ndarray(y.shape, nl.float32, nl.shared_hbm)
    nl.store(out, nl.gelu(nl.load(y)))
    return out


def test_the_documented_topk_of_a_snake(documented: dict[str, str]) -> None:
    code = documented["isa.topk.0"].replace(
        "return val_dst, idx_dst",
        textwrap.dedent("""\
        outs = [nl.ndarray(one.shape, one.dtype, nl.shared_hbm) for one in (val_dst, idx_dst)]
            nisa.dma_copy(outs[0], val_dst)
            nisa.dma_copy(outs[1], idx_dst)
            return outs"""),
    )  # a kernel cannot return tiles
    data = (RNG.permutation(16 * 3).reshape(16, 3) - 20).astype("bfloat16")
    values, places = _kernel(code, "topk_kernel")(data)
    expected, order = _topk(data)
    assert (values.astype(np.float32) == expected).all() and (places == order).all()
