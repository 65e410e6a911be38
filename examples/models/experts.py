"""A mixture of experts: every token goes to the two experts that its gate likes best."""

import jax
import jax.numpy as jnp
from compared import compare, weights

EXPERTS, WIDTH, TOKENS = 4, 16, 12


def layer(w, x):
    values, places = jax.lax.top_k(x @ w["gate"], 2)
    shares = jax.nn.softmax(values, axis=-1)
    chosen = jax.nn.one_hot(places, EXPERTS) * shares[..., None]
    mixture = chosen.sum(1)
    hidden = jax.nn.silu(jnp.einsum("td,edh->teh", x, w["up"]))
    return jnp.einsum("teh,ehd,te->td", hidden, w["down"], mixture)


w = weights(0, gate=(WIDTH, EXPERTS), up=(EXPERTS, WIDTH, 32), down=(EXPERTS, 32, WIDTH))
x = weights(1, x=(TOKENS, WIDTH))["x"]
compare("mixture of experts", layer, w, x)
compare("mixture gradient", jax.grad(lambda w, x: jnp.sum(layer(w, x) ** 2)), w, x)
