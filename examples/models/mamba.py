"""A selective state space block as in Mamba: a short convolution, and a scan whose steps depend on the input."""

import jax
import jax.numpy as jnp
from compared import compare, weights

WIDTH, STATE, LENGTH = 8, 4, 10


def scan_states(decay, drive):
    """Return h[t] = decay[t] * h[t-1] + drive[t]."""

    def combine(left, right):
        return left[0] * right[0], left[1] * right[0] + right[1]

    return jax.lax.associative_scan(combine, (decay, drive), axis=0)[1]


def block(w, x):
    u, gate = jnp.split(x @ w["in"], 2, axis=-1)
    padded = jnp.pad(u, ((3, 0), (0, 0)))
    u = jax.nn.silu(sum(padded[i : i + LENGTH] * w["short"][i] for i in range(4)))
    step = jax.nn.softplus(u @ w["step"])
    decay = jnp.exp(-step[:, :, None] * jnp.exp(w["decay"]))
    drive = (step * u)[:, :, None] * (u @ w["b"])[:, None, :]
    states = scan_states(decay, drive)
    y = jnp.einsum("tds,ts->td", states, u @ w["c"]) + u * w["skip"]
    return (y * jax.nn.silu(gate)) @ w["out"]


w = weights(0, **{"in": (WIDTH, 2 * WIDTH)}, short=(4, WIDTH), step=(WIDTH, WIDTH), decay=(WIDTH, STATE),
            b=(WIDTH, STATE), c=(WIDTH, STATE), skip=(WIDTH,), out=(WIDTH, WIDTH))  # fmt: skip
x = weights(1, x=(LENGTH, WIDTH))["x"]
compare("mamba block", block, w, x)
compare("mamba gradient", jax.grad(lambda w, x: jnp.sum(block(w, x) ** 2)), w, x)
