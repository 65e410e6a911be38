"""An LSTM over a sequence: `lax.scan` becomes a loop of the device."""

import jax
import jax.numpy as jnp
from compared import compare, weights

WIDTH, LENGTH = 16, 12


def cell(w, state, x):
    h, c = state
    gates = x @ w["x"] + h @ w["h"] + w["bias"]
    i, f, g, o = jnp.split(gates, 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


def lstm(w, x):
    start = jnp.zeros((x.shape[1], WIDTH)), jnp.zeros((x.shape[1], WIDTH))
    return jax.lax.scan(lambda state, one: cell(w, state, one), start, x)[1]


w = weights(0, x=(8, 4 * WIDTH), h=(WIDTH, 4 * WIDTH), bias=(4 * WIDTH,))
x = weights(1, x=(LENGTH, 3, 8))["x"]
compare("lstm", lstm, w, x)
compare("lstm gradient", jax.grad(lambda w, x: jnp.sum(lstm(w, x) ** 2)), w, x)
