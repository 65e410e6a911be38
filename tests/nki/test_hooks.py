"""The hooks that test suites of real projects use: entry points, environment, what passes through a launch."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from formats.errors import FormatError
from neurontools.nki.errors import NkiValidationError

A = np.arange(12, dtype=np.float32).reshape(3, 4)
HALVES = (ml_dtypes.bfloat16, np.float16)
BYTES = (ml_dtypes.float8_e4m3, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)


@nki.jit
def scaled(x: Any, scale: float = 2.0) -> Any:
    """Return x * scale."""
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), scale))
    return out


def copied(x: Any) -> Any:
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    nisa.dma_copy(out, x)
    return out


def incremented(x: Any) -> None:
    nl.store(x, nl.add(nl.load(x), 1.0))


@nki.jit
def rank_of_two(x: Any) -> Any:
    out = nl.ndarray((2, 4), x.dtype, nl.shared_hbm)
    rank = nl.program_id(0)
    nl.store(out[rank : rank + 1], nl.load(x[rank : rank + 1]))
    return out


class Config(NamedTuple):
    scale: float
    name: str | None = None


@dataclasses.dataclass
class Options(nl.NKIObject):
    scale: float
    bias: Any = None
    extra = 1.0


# Entry points.


def test_simulate_takes_kernels_functions_partials_and_objects() -> None:
    class Callable:
        def __call__(self, x: Any) -> Any:
            return scaled(x, 3.0)

    for one in (
        scaled, scaled.function, functools.partial(scaled, scale=3.0), functools.partial(scaled.function, scale=3.0),
        Callable(), lambda x: scaled(x, scale=3.0),
    ):  # fmt: skip
        factor = 2 if one in (scaled, scaled.function) else 3
        np.testing.assert_array_equal(nki.simulate(one)(A), A * factor)
        np.testing.assert_array_equal(nki.simulate(one)[1](A), A * factor)
    assert nki.simulate(scaled).__name__ == "scaled"


@pytest.mark.parametrize("hook", ["simulate", "cpu_simulate"])
def test_cores_are_chosen_by_subscript_on_either_side(hook: str) -> None:
    simulate = getattr(nki, hook)
    for launch in (simulate(rank_of_two)[2], simulate(rank_of_two[2]), simulate(rank_of_two.function)[2]):
        np.testing.assert_array_equal(launch(x=A), A[:2])
    np.testing.assert_array_equal(simulate(scaled)[1](x=A, scale=1.5), A * 1.5)


def test_simulate_kernel_takes_lists_keywords_and_cores() -> None:
    run = nki.simulator.simulate_kernel
    np.testing.assert_array_equal(run(scaled, [A], {"scale": 4.0}), A * 4)
    np.testing.assert_array_equal(run(scaled.function, (A, 5.0)), A * 5)
    np.testing.assert_array_equal(run(func=rank_of_two, args=(), kwargs={"x": A}, _lnc=2), A[:2])
    with pytest.raises(TypeError, match="scaled"):
        run(scaled)


def test_signature_and_source_survive_every_wrapping() -> None:
    for one in (scaled, scaled[2], nki.simulate(scaled), nki.cpu_simulate(scaled)[1], nki.jit(scaled, debug=True)):
        assert list(inspect.signature(one).parameters) == ["x", "scale"]
        assert inspect.signature(one).parameters["scale"].default == 2.0
        assert inspect.getsource(one).startswith("@nki.jit\ndef scaled(") and inspect.getdoc(one) == "Return x * scale."
        assert inspect.getsourcefile(inspect.unwrap(one)) == __file__ and one.__module__ == __name__ and callable(one)
        assert inspect.unwrap(one) is scaled.function


def test_kernels_in_classes_bind_and_keep_their_grid() -> None:
    class Model:
        scale = 3.0

        @nki.jit
        def kernel(self, x: Any) -> Any:
            return scaled(x, self.scale)

    one = Model()
    np.testing.assert_array_equal(one.kernel(A), A * 3)
    np.testing.assert_array_equal(one.kernel[1](A), A * 3)
    one.scale = 5.0
    np.testing.assert_array_equal(nki.simulate(one.kernel)(A), A * 5)
    np.testing.assert_array_equal(Model.kernel(one, A), A * 5)
    assert list(inspect.signature(one.kernel).parameters) == ["x"] and one.kernel[2].grid == (2,)


def test_kernels_call_kernels_functions_and_subscripted_kernels() -> None:
    def plain(x: Any) -> Any:
        return scaled(x)

    @nki.jit
    def outer(x: Any, inner: Any) -> Any:
        return scaled[1](plain(inner(x)), scale=0.5)

    np.testing.assert_array_equal(outer(A, scaled), A * 2)
    np.testing.assert_array_equal(outer(A, plain), A * 2)


def test_names_of_other_packages_lead_to_the_same_modules(root: Path) -> None:
    code = (
        "import neurontools.nki as ours; ours.install()\n"
        "import nki_cpu_simulator, nki_cpu_simulator.nki.isa.constants as constants\n"
        "import nki_cpu_simulator.nki.language.dtypes as dtypes\n"
        "from nki_cpu_simulator import nki\n"
        "from nki_cpu_simulator.nki import builtin, compiler, typing, tensor\n"
        "import nki as short, neuronxcc.nki\n"
        "assert nki is ours is short and constants is ours.isa.constants and tensor is ours.tensor\n"
        "assert short.simulator.simulate_kernel is nki.simulator.simulate_kernel\n"
        "assert dtypes.float32 is nki.language.float32\n"
        "try:\n    import nki_cpu_simulator.other\nexcept ModuleNotFoundError as error:\n    print(error.name)\n"
        "ours.uninstall()\n"
        "for name in ('nki_cpu_simulator', 'neuronxcc', 'nki'):\n"
        "    try:\n        __import__(name)\n    except ModuleNotFoundError as error:\n        print(error.name)\n"
    )
    assert _run(code, root) == ["nki_cpu_simulator.other", "nki_cpu_simulator", "neuronxcc", "nki"]


# The environment.


@pytest.mark.parametrize(
    ("values", "generation"),
    [
        ({}, "gen4"),
        ({"NKI_NC_VERSION": "gen2"}, "gen2"),
        ({"NKI_NC_VERSION": "gen3"}, "gen3"),
        ({"NEURON_PLATFORM_TARGET_OVERRIDE": "inf2"}, "gen2"),
        ({"NEURON_PLATFORM_TARGET_OVERRIDE": "trn2"}, "gen3"),
        ({"NEURON_PLATFORM_TARGET_OVERRIDE": "gen4", "NKI_NC_VERSION": "gen2"}, "gen4"),
        ({"NEURON_PLATFORM_TARGET_OVERRIDE": "", "NKI_NC_VERSION": "gen2"}, "gen2"),
    ],
)
def test_the_environment_decides_the_generation_a_kernel_sees(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str], generation: str
) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    assert nki.simulate(lambda: nisa.get_nc_version())().name == generation
    assert nisa.get_nc_version().name == generation  # outside of kernels too, where suites ask


@pytest.mark.parametrize("name", ["NKI_NC_VERSION", "NEURON_PLATFORM_TARGET_OVERRIDE"])
def test_an_unknown_generation_names_the_variable(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "trn9")
    with pytest.raises(FormatError, match=f"{name}: unknown target, expected one of .*trn3.*, found 'trn9'"):
        scaled(A)


def test_two_cores_need_a_generation_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKI_NC_VERSION", "gen2")
    with pytest.raises(NkiValidationError, match="needs 2 cores per logical core, trn1"):
        nki.cpu_simulate(rank_of_two)[2](x=A)


@pytest.mark.parametrize("value", [None, "0", "1"])
def test_calls_run_with_and_without_nki_simulator(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is not None:
        monkeypatch.setenv("NKI_SIMULATOR", value)
    np.testing.assert_array_equal(scaled(A), A * 2)
    np.testing.assert_array_equal(rank_of_two[2](A), A[:2])


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e5m2])
def test_precise_floats_round_on_chip_and_wide_ones_do_not(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    def there_and_back(x: Any) -> Any:
        out = nl.ndarray(x.shape, nl.float32, nl.shared_hbm)
        tile = nl.ndarray(x.shape, dtype)
        nisa.tensor_copy(tile, nl.load(x))
        nl.store(out, nl.copy(tile, dtype=nl.float32))
        return out

    x = np.float32(1) + np.random.default_rng(1).random((4, 16), np.float32)
    rounded = x.astype(dtype).astype(np.float32)
    assert not np.array_equal(rounded, x)
    np.testing.assert_array_equal(nki.simulate(there_and_back)(x), rounded)
    monkeypatch.setenv("NKI_PRECISE_FP", "1")
    np.testing.assert_array_equal(nki.simulate(there_and_back)(x), rounded)
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    np.testing.assert_array_equal(nki.simulate(there_and_back)(x), x)


def test_nothing_imports_torch_or_jax(root: Path, tmp_path: Path) -> None:
    for name in ("torch", "jax"):
        (tmp_path / f"{name}.py").write_text(f"raise RuntimeError('{name} was imported')\n")
    code = (
        "import sys, numpy as np, neurontools.nki as nki\nnki.install()\n"
        "import nki.language as nl, nki_cpu_simulator, neuronxcc.nki as old\n"
        "def kernel(x):\n"
        "    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)\n"
        "    nl.store(out, nl.add(nl.load(x), 1.0))\n    nl.store(x, nl.load(out))\n    return out\n"
        "def older(x):\n    return old.language.load(x)\n"
        "x = np.ones((2, 4), np.float32)\n"
        "assert (nki.simulate(kernel)(x) == 2).all() and (x == 2).all()\n"
        "assert (old.simulate_kernel(older, x) == 2).all()\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('torch', 'jax')])\n"
    )
    assert _run(code, root, tmp_path) == ["[]"]


# What goes in and out.


@pytest.mark.parametrize("dtype", [*HALVES, *BYTES])
def test_narrow_floats_go_both_ways_with_every_bit(dtype: Any) -> None:
    size = np.dtype(dtype).itemsize
    bits = np.arange(256 if size == 1 else 65536, dtype=f"u{size}").reshape(64, -1)
    values = bits.view(dtype)
    result = nki.simulate(copied)(values)
    assert result.dtype == values.dtype
    np.testing.assert_array_equal(result.view(f"u{size}"), bits)
    part = nki.simulate(lambda x: copied(x)[1:3, ::2])(values)
    np.testing.assert_array_equal(part.view(f"u{size}"), bits[1:3, ::2])


@pytest.mark.parametrize("dtype", [*HALVES, *BYTES, np.int32, np.uint8, np.float32])
def test_inputs_that_the_kernel_writes_change_in_place(dtype: Any) -> None:
    x = np.arange(8, dtype=np.float32).reshape(2, 4).astype(dtype)
    want = (np.arange(8, dtype=np.float32).reshape(2, 4) + 1).astype(dtype)
    assert nki.simulate(incremented)(x) is None
    np.testing.assert_array_equal(x.astype(np.float32), want.astype(np.float32))
    assert x.dtype == np.dtype(dtype)


def test_views_fortran_order_and_foreign_byte_order_change_in_place() -> None:
    wide = np.zeros((4, 8), np.float32)
    nki.simulate(incremented)(wide[::2, ::-2])
    np.testing.assert_array_equal(wide, [[(i + 1) % 2 * (j % 2) for j in range(8)] for i in range(4)])
    for order in (np.asfortranarray(A), A.astype(">f4")):
        nki.simulate(incremented)(order)
        np.testing.assert_array_equal(order, A + 1)


def test_arrays_inside_containers_change_and_containers_stay() -> None:
    @nki.jit
    def kernel(caches: Any, table: Any) -> Any:
        incremented(caches[1])
        incremented(table["v"])
        return caches

    first, second, third = np.zeros((2, 2), np.float32), np.ones((2, 2), np.float32), np.full((2, 2), 2, np.float32)
    caches, table = [first, second], {"v": third, "unused": None}
    returned = kernel(caches, table)
    assert caches[1] is second and table["v"] is third and isinstance(returned, list)
    assert (first == 0).all() and (second == 2).all() and (third == 3).all()
    np.testing.assert_array_equal(returned[1], second)


def test_an_array_given_twice_is_one_tensor() -> None:
    def kernel(x: Any, y: Any) -> Any:
        incremented(x)
        return copied(y)

    x = A.copy()
    np.testing.assert_array_equal(nki.simulate(kernel)(x, x), A + 1)


def test_nothing_dummies_and_structures_pass_through() -> None:
    dummy = object()
    seen: list[Any] = []

    @nki.jit
    def kernel(
        x: Any, nothing: Any, dummy: Any, config: Config, options: Options, *rest: Any, flag: bool = False
    ) -> Any:
        seen.append((nothing, dummy, config, options, rest, flag))
        out = scaled(x, config.scale * options.scale * options.extra)
        return out, None, (config.name, [out, ()]), {"flag": flag, "none": None}, config

    config, options = Config(2.0, "c"), Options(scale=3.0, extra=0.5)
    first, nothing, (name, (again, empty)), table, back = kernel(A, None, dummy, config, options, "r", 1, flag=True)
    assert seen[0] == (None, dummy, config, options, ("r", 1), True) and seen[0][1] is dummy and seen[0][3] is options
    np.testing.assert_array_equal(first, A * 3)
    np.testing.assert_array_equal(again, first)
    assert nothing is None and name == "c" and empty == () and table == {"flag": True, "none": None} and back is config
    assert nki.simulate(lambda: None)() is None and nki.simulate(lambda: ())() == ()


def test_named_tuples_of_arrays_stay_named_tuples() -> None:
    class Pair(NamedTuple):
        left: Any
        right: Any = None

    result = nki.simulate(lambda pair: Pair(copied(pair.left), pair.right))(Pair(A))
    assert type(result) is Pair and result.right is None
    np.testing.assert_array_equal(result.left, A)


def test_numbers_of_numpy_are_numbers_and_arrays_of_no_dimension_are_tensors() -> None:
    np.testing.assert_array_equal(nki.simulate(scaled)(A, np.float32(3)), A * 3)
    (three,) = nki.simulate(lambda x: copied(x))(np.array(3, np.float32))
    assert three == 3
    with pytest.raises(NkiValidationError, match=r"shape \(0, 4\) must have dimensions of at least 1"):
        scaled(np.zeros((0, 4), np.float32))


def _run(code: str, root: Path, *folders: Path) -> list[str]:
    path = os.pathsep.join([str(root), *map(str, folders)])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]
