"""A residual block of two convolutions with batch normalisation; forward and gradient."""

import jax
import jax.numpy as jnp
from compared import compare, weights


def convolution(x, w, stride=1):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def batch_norm(x, scale, offset):
    mean = x.mean((0, 1, 2))
    spread = jnp.mean((x - mean) ** 2, (0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(spread + 1e-5) * scale + offset


def block(w, x):
    y = jax.nn.relu(batch_norm(convolution(x, w["first"], 2), w["scale1"], w["offset1"]))
    y = batch_norm(convolution(y, w["second"]), w["scale2"], w["offset2"])
    return jax.nn.relu(y + convolution(x, w["short"], 2))


w = weights(0, first=(3, 3, 8, 16), second=(3, 3, 16, 16), short=(1, 1, 8, 16), scale1=(16,), offset1=(16,),
            scale2=(16,), offset2=(16,))  # fmt: skip
x = weights(1, x=(2, 12, 12, 8))["x"]
compare("resnet block", block, w, x)
compare("resnet gradient", jax.grad(lambda w, x: jnp.sum(block(w, x) ** 2)), w, x, tolerance=2e-2)
