"""Arrays of Torch and JAX in and out, where those are installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import neurontools
import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools.nki.errors import NkiValidationError, UnsupportedError

A = np.arange(12, dtype=np.float32).reshape(3, 4)
COMMON = ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
          "int32", "int16", "int8", "uint8", "uint16", "uint32"]  # fmt: skip
TORCH_TYPES = [*COMMON, "float8_e8m0fnu", "bool"]
JAX_TYPES = [*COMMON, "float8_e4m3", "bool_"]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax", reason="jax is not installed")


@nki.jit
def doubled(x: Any) -> Any:
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), 2.0))
    return out


def copied(x: Any) -> Any:
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    nisa.dma_copy(out, x)
    return out


def incremented(x: Any) -> Any:
    nl.store(x, nl.add(nl.load(x), 1.0))
    return x


HOOKS: dict[str, Callable[[Any], Any]] = {
    "call": nki.jit,
    "simulate": nki.simulate,
    "cpu_simulate": lambda kernel: nki.cpu_simulate(kernel)[1],
    "simulate_kernel": lambda kernel: lambda *args: nki.simulator.simulate_kernel(kernel, args),
}


@pytest.mark.parametrize("hook", HOOKS)
def test_torch_in_torch_out_by_every_hook(torch: Any, hook: str) -> None:
    result = HOOKS[hook](doubled)(torch.from_numpy(A))
    assert isinstance(result, torch.Tensor) and torch.equal(result, torch.from_numpy(A * 2))


@pytest.mark.parametrize("name", TORCH_TYPES)
def test_types_of_torch_keep_type_and_bits(torch: Any, name: str) -> None:
    dtype = getattr(torch, name)
    x = torch.arange(1, 7).reshape(2, 3).to(dtype)
    result = nki.simulate(copied)(x)
    assert result.dtype == dtype and result.shape == (2, 3)
    assert torch.equal(result.view(torch.uint8), x.view(torch.uint8))


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e5m2", "int32"])
def test_torch_tensors_that_the_kernel_writes_change_in_place(torch: Any, name: str) -> None:
    x = torch.zeros(4, 6).to(getattr(torch, name))
    result = nki.simulate(incremented)(x[:, ::2])
    want = torch.tensor([[1.0, 0.0] * 3] * 4)
    assert torch.equal(x.float(), want) and torch.equal(result.float(), torch.ones(4, 3))


def test_parameters_transposes_and_structures_of_torch(torch: Any) -> None:
    parameter = torch.nn.Parameter(torch.from_numpy(A.copy()))
    result = doubled(parameter)
    assert torch.equal(result, torch.from_numpy(A * 2)) and not result.requires_grad
    nki.simulate(incremented)(parameter)
    assert parameter.requires_grad and np.array_equal(parameter.detach().numpy(), A + 1)
    turned = torch.from_numpy(A).T
    assert torch.equal(doubled(turned), turned * 2)
    back = nki.simulate(lambda xs, d: {"a": (copied(xs[0]), None), "d": d})([turned], torch.bfloat16)
    assert torch.equal(back["a"][0], turned) and back["d"] is torch.bfloat16 and back["a"][1] is None


def test_types_and_sizes_of_torch_are_types_and_shapes_in_kernels(torch: Any) -> None:
    def kernel(x: Any, dtype: Any, shape: Any) -> Any:
        out = nl.ndarray(shape, dtype, nl.shared_hbm)
        nisa.dma_copy(out, x)
        return out

    result = nki.simulate(kernel)(torch.from_numpy(A), torch.bfloat16, torch.zeros(3, 4).shape)
    assert torch.equal(result, torch.from_numpy(A).bfloat16())


def test_a_launch_may_mix_frameworks(torch: Any) -> None:
    def kernel(a: Any, b: Any) -> Any:
        incremented(a)
        return incremented(b)

    for first, second in ((torch.zeros(2, 2), np.zeros((2, 2), np.float32)),
                          (np.zeros((2, 2), np.float32), torch.zeros(2, 2))):  # fmt: skip
        result = nki.simulate(kernel)(first, second)
        assert type(result) is type(first) and bool((result == 1).all())
        assert bool((first == 1).all()) and bool((second == 1).all())


def test_results_without_a_type_in_torch(torch: Any) -> None:
    def narrow(x: Any) -> Any:
        out = nl.ndarray(x.shape, nl.float8_e4m3, nl.shared_hbm)
        nisa.dma_copy(out, x)
        return out

    result = nki.simulate(narrow)(torch.tensor([[0.5, -240.0]]))
    assert result.dtype == torch.float8_e4m3fn and result.float().tolist() == [[0.5, -240.0]]
    with pytest.raises(UnsupportedError, match="torch has no float8_e4m3"):
        nki.simulate(narrow)(torch.tensor([[1.0, float("nan")]]))


def test_torch_tensors_without_elements_are_refused(torch: Any) -> None:
    for x in (torch.eye(3).to_sparse(), torch.ones(2, 2, device="meta")):
        with pytest.raises(NkiValidationError, match=r"argument x: a torch.* has no elements in a row"):
            doubled(x)
    with pytest.raises(NkiValidationError, match=r"argument x: dtype .*int64.* is not an NKI data type"):
        doubled(torch.ones(2, 2, dtype=torch.int64))


@pytest.mark.parametrize("hook", HOOKS)
def test_jax_in_jax_out_by_every_hook(jax: Any, hook: str) -> None:
    result = HOOKS[hook](doubled)(jax.numpy.asarray(A))
    assert isinstance(result, jax.Array)
    np.testing.assert_array_equal(np.asarray(result), A * 2)


@pytest.mark.parametrize("name", JAX_TYPES)
def test_types_of_jax_keep_type_and_values(jax: Any, name: str) -> None:
    x = jax.numpy.arange(1, 7).reshape(2, 3).astype(getattr(jax.numpy, name))
    result = nki.simulate(copied)(x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(result, np.float32), np.asarray(x, np.float32))


def test_jax_arrays_stay_and_the_result_holds_what_was_written(jax: Any) -> None:
    x = jax.numpy.zeros((2, 3))
    result = nki.simulate(incremented)(x)
    assert bool((x == 0).all()) and bool((result == 1).all())
    other = np.zeros((2, 3), np.float32)
    nki.simulate(lambda a, b: incremented(b))(x, other)
    assert (other == 1).all()


def test_a_kernel_is_an_operation_of_jax_under_jit_and_vmap_and_has_no_gradient(jax: Any) -> None:
    x = jax.numpy.asarray(A)
    np.testing.assert_array_equal(np.asarray(jax.jit(doubled)(x)), A * 2)
    both = jax.vmap(doubled)(jax.numpy.stack([x, x + 1]))
    np.testing.assert_array_equal(np.asarray(both), np.stack([A * 2, (A + 1) * 2]))
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'nki_call' not implemented"):  # JAX's own
        jax.grad(lambda x: doubled(x).sum())(x)


def test_what_builds_a_file_needs_values_under_transformations_of_jax(jax: Any) -> None:
    for transform in (jax.jit, jax.vmap, jax.grad):
        with pytest.raises(NkiValidationError, match="argument x: a JAX array under jit, grad or vmap has no values"):
            transform(lambda x: neurontools.build(doubled, x))(jax.numpy.ones(4)[0] if transform is jax.grad else A)
