"""Kernels of `benchmarks/peers.py` in JAX's Pallas, in the same tiles, for its TPU interpret mode on a processor."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def interpreted(kernel, out, grid, in_specs, out_specs, scratch_shapes=()):
    """Return a kernel as a function that interpret mode runs."""
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(out, jnp.float32), grid=grid, in_specs=in_specs,
                          out_specs=out_specs, scratch_shapes=scratch_shapes,
                          interpret=pltpu.InterpretParams())  # fmt: skip


@jax.jit
def loading_matmul(a_t, b):
    """Return a_t.T @ b; every product loads both its tiles."""
    (depth, rows), columns = a_t.shape, b.shape[1]

    def kernel(left, right, out, total):
        @pl.when(pl.program_id(2) == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        dimensions = (((0,), (0,)), ((), ()))
        total[...] += jax.lax.dot_general(left[...], right[...], dimensions, preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            out[...] = total[...]

    tiles = [pl.BlockSpec((128, 128), lambda m, n, k: (k, m)), pl.BlockSpec((128, 512), lambda m, n, k: (k, n))]
    done = pl.BlockSpec((128, 512), lambda m, n, k: (m, n))
    grid = (rows // 128, columns // 512, depth // 128)
    return interpreted(kernel, (rows, columns), grid, tiles, done, [pltpu.VMEM((128, 512), jnp.float32)])(a_t, b)


def by_rows(kernel, x, *whole):
    """Return a kernel's result for x, 128 rows at a time, beside operands that stay as a whole."""
    tile = pl.BlockSpec((128, x.shape[1]), lambda row: (row, 0))
    kept = [pl.BlockSpec(each.shape, lambda row: (0, 0)) for each in whole]
    return interpreted(kernel, x.shape, (x.shape[0] // 128,), [tile, *kept], tile)(x, *whole)


@jax.jit
def small_tiles(x):
    """Return exp(2 x) + x."""

    def kernel(tile, out):
        out[...] = jnp.exp(2 * tile[...]) + tile[...]

    return by_rows(kernel, x)


@jax.jit
def softmax(x):
    """Return the softmax of rows."""

    def kernel(tile, out):
        powers = jnp.exp(tile[...] - tile[...].max(axis=1, keepdims=True))
        out[...] = powers / powers.sum(axis=1, keepdims=True)

    return by_rows(kernel, x)


@jax.jit
def rmsnorm(x, weight):
    """Return rows over the root of their mean square, times a weight."""

    def kernel(tile, spread, out):
        inverse = jax.lax.rsqrt((tile[...] * tile[...]).mean(axis=1, keepdims=True) + 1e-5)
        out[...] = tile[...] * inverse * spread[...]

    return by_rows(kernel, x, weight[None, :])


KERNELS = {function.__name__: function for function in (loading_matmul, small_tiles, softmax, rmsnorm)}
