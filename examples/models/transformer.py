"""A transformer block: layer norm, attention with several heads, a feed-forward layer; forward and gradient."""

import jax
import jax.numpy as jnp
from compared import compare, weights

HEAD, WIDTH, LENGTH = 8, 32, 16  # a head, all heads


def norm(x, scale):
    mean = x.mean(-1, keepdims=True)
    spread = jnp.mean((x - mean) ** 2, -1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(spread + 1e-5) * scale


def attention(w, x):
    batch, length, _ = x.shape
    q, k, v = ((x @ w[name]).reshape(batch, length, -1, HEAD).transpose(0, 2, 1, 3) for name in ("q", "k", "v"))
    scores = jnp.einsum("bhid,bhjd->bhij", q, k) / jnp.sqrt(HEAD)
    seen = jnp.tril(jnp.ones((length, length), bool))
    shares = jax.nn.softmax(jnp.where(seen, scores, -1e9), axis=-1)
    mixed = jnp.einsum("bhij,bhjd->bhid", shares, v).transpose(0, 2, 1, 3).reshape(batch, length, -1)
    return mixed @ w["o"]


def block(w, x):
    x = x + attention(w, norm(x, w["norm1"]))
    return x + jax.nn.gelu(norm(x, w["norm2"]) @ w["up"]) @ w["down"]


if __name__ == "__main__":
    square = (WIDTH, WIDTH)
    w = weights(0, q=square, k=square, v=square, o=square, norm1=(WIDTH,), norm2=(WIDTH,),
                up=(WIDTH, 4 * WIDTH), down=(4 * WIDTH, WIDTH))  # fmt: skip
    x = weights(1, x=(2, LENGTH, WIDTH))["x"]
    compare("transformer block", block, w, x)
    compare("transformer gradient", jax.grad(lambda w, x: jnp.sum(block(w, x) ** 2)), w, x)
