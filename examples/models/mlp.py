"""A multilayer perceptron, its loss, and one step of training by gradient descent."""

import jax
import jax.numpy as jnp
from compared import compare, weights


def forward(w, x):
    hidden = jax.nn.relu(x @ w["first"] + w["bias"])
    return hidden @ w["second"]


def loss(w, x, y):
    logits = forward(w, x)
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * y, axis=-1))


def step(w, x, y):
    value, slope = jax.value_and_grad(loss)(w, x, y)
    return value, jax.tree.map(lambda a, g: a - 0.1 * g, w, slope)


w = weights(0, first=(20, 32), bias=(32,), second=(32, 10))
x = weights(1, x=(16, 20))["x"]
y = jax.nn.one_hot(jnp.arange(16) % 10, 10)
compare("mlp forward", forward, w, x)
compare("mlp training step", step, w, x, y)
