"""NKI kernels called under `jax.jit`: custom calls in our graphs, launches elsewhere; gradients, batches, aliases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neurontools.compiler.jax_functions import lower
from neurontools.neuronxcc.nki import jit as first_jit
from neurontools.neuronxcc.nki import language as fl
from tests.compiler.support import floats
from tests.compiler.test_native_kernels import add, update

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

A, B = floats(32, 16), floats(32, 16, seed=1)


def both() -> list[Any]:
    """Return our `jit` and JAX's own, whose graphs run elsewhere and launch kernels."""
    from neurontools.jax import jit

    return [jit, jax.jit]


def tutorial(a: Any, b: Any) -> Any:
    total = add(a, b)  # CALL
    return a * b * total


def test_a_kernel_among_operations() -> None:
    for jit in (*both(), *both()):
        np.testing.assert_allclose(jit(tutorial)(A, B), A * B * (A + B), rtol=1e-6)


def test_the_graph_has_a_custom_call_in_the_line_of_the_model() -> None:
    jax.jit(tutorial)(A, B)  # what JAX keeps of this must not be taken
    module, _ = lower(tutorial, (A, B), {})
    (call,) = (one for one in module.entry.in_order() if one.opcode == "custom-call")
    assert call.custom_call_target == "AwsNeuronCustomNativeKernel" and [one.name for one in call.operands]
    source = module.source(call)
    lines = Path(__file__).read_text().splitlines()
    assert source is not None and Path(source.file) == Path(__file__) and lines[source.line - 1].endswith("# CALL")


def test_a_kernel_in_a_jitted_function_that_another_calls() -> None:
    inner = jax.jit(tutorial)
    np.testing.assert_allclose(inner(A, B), A * B * (A + B), rtol=1e-6)
    np.testing.assert_allclose(both()[0](lambda a, b: inner(a, b) + 1)(A, B), A * B * (A + B) + 1, rtol=1e-6)


@pytest.mark.parametrize("target", ["trn1", "trn3"])
def test_the_graph_decides_on_the_target(target: str) -> None:
    """The kernel says trn2, and JAX has traced it for that already."""
    jitted = both()[0](jax.jit(tutorial), target=target)
    np.testing.assert_allclose(jitted(A, B), A * B * (A + B), rtol=1e-6)


def test_gradients_by_a_rule_of_the_caller() -> None:
    @jax.custom_vjp
    def added(a: Any, b: Any) -> Any:
        return add(a, b)

    added.defvjp(lambda a, b: (added(a, b), None), lambda _, grad: (grad, grad))

    def step(a: Any, b: Any) -> Any:
        grads = jax.grad(lambda x, y: (added(x, y) * x * y).sum(), argnums=(0, 1))(a, b)
        return added(a, b) * a * b, *grads

    for jit in both():
        out, of_a, of_b = jit(step)(A, B)
        np.testing.assert_allclose(out, A * B * (A + B), rtol=1e-6)
        np.testing.assert_allclose(of_a, B * (A + B) + A * B, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(of_b, A * (A + B) + A * B, rtol=1e-5, atol=1e-6)


def test_batches_and_arguments_by_name() -> None:
    rows = floats(3, 32, 16, seed=2)
    batched = jax.vmap(lambda x, y: add(b_input=y, a_input=x, scale=2.0), in_axes=(0, None))
    for jit in both():
        np.testing.assert_array_equal(jit(batched)(rows, A), (rows + A) * 2)


def test_a_kernel_that_writes_its_argument_leaves_the_caller_s_array_alone() -> None:
    new = floats(3, 16, seed=3)
    after = A.copy()
    after[4:7] = new

    def step(cache: Any, rows: Any) -> Any:
        updated, total = update(cache, rows)
        return updated, total, cache + updated

    for jit in both():
        for got, wanted in zip(jit(step)(A, new), (after, A[:1], A + after), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_kernels_of_the_first_generation() -> None:
    @first_jit(platform_target="trn2")
    def doubled(x):  # type: ignore[no-untyped-def]
        out = fl.ndarray(x.shape, dtype=x.dtype, buffer=fl.shared_hbm)
        rows = fl.program_id(0) * 16 + fl.arange(16)[:, None]
        fl.store(out[rows, fl.arange(16)[None, :]], fl.load(x[rows, fl.arange(16)[None, :]]) * 2)
        return out

    for jit in both():
        np.testing.assert_array_equal(jit(lambda x: doubled[2](x) + 1)(A), 2 * A + 1)


def test_compile_traces_kernels_for_its_target() -> None:
    import neurontools

    neff = neurontools.compile(tutorial, A, B, target="trn1")
    result = neurontools.run(neff, {"input0": A, "input1": B})
    np.testing.assert_allclose(result.outputs["output0"], A * B * (A + B), rtol=1e-6)
