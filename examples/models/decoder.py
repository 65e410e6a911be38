"""A decoder of two layers with a KV cache: greedy decoding as one loop of the device."""

import jax
import jax.numpy as jnp
from compared import compare, weights

LAYERS, WIDTH, LENGTH, WORDS = 2, 16, 8, 30


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)


def one_token(w, cache, token, place):
    """Return the logits behind a token, and the cache with its keys and values."""
    x = w["words"][token]
    keys, values = cache
    for layer in range(LAYERS):
        h = norm(x)
        q, k, v = (h @ w[name][layer] for name in ("q", "k", "v"))
        keys = jax.lax.dynamic_update_slice(keys, k[None, None], (layer, place, 0))
        values = jax.lax.dynamic_update_slice(values, v[None, None], (layer, place, 0))
        scores = keys[layer] @ q / WIDTH**0.5
        shares = jax.nn.softmax(jnp.where(jnp.arange(LENGTH) <= place, scores, -1e9))
        x = x + (shares @ values[layer]) @ w["o"][layer]
        x = x + jax.nn.silu(norm(x) @ w["up"][layer]) @ w["down"][layer]
    return norm(x) @ w["words"].T, (keys, values)


def decode(w, first):
    """Return the tokens that follow the first one, each the likeliest."""
    cache = (jnp.zeros((LAYERS, LENGTH, WIDTH)), jnp.zeros((LAYERS, LENGTH, WIDTH)))

    def turn(place, state):
        tokens, cache = state
        logits, cache = one_token(w, cache, tokens[place], place)
        return tokens.at[place + 1].set(jnp.argmax(logits).astype(jnp.int32)), cache

    tokens = jnp.zeros((LENGTH + 1,), jnp.int32).at[0].set(first)
    return jax.lax.fori_loop(0, LENGTH, turn, (tokens, cache))[0]


square = (LAYERS, WIDTH, WIDTH)
w = weights(0, words=(WORDS, WIDTH), q=square, k=square, v=square, o=square, up=(LAYERS, WIDTH, 4 * WIDTH),
            down=(LAYERS, 4 * WIDTH, WIDTH))  # fmt: skip
for target, lnc in (("trn1", 1), ("trn2", 1), ("trn2", 2), ("trn3", 1)):
    compare(f"decoder on {target}, {lnc} core(s)", decode, w, jnp.int32(3), target=target, lnc=lnc)
