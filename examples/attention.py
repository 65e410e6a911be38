"""One attention head: scores on the Tensor engine, softmax on Vector and Scalar, transposes through PSUM."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
from compare import compare


@nki.jit
def attention(q_t, k_t, v):
    """Return softmax(q @ k.T / sqrt(width)) @ v for q_t and k_t [width, length] and v [length, width].

    Queries and keys come transposed, as the Tensor engine wants them.  Width is at most 128; length is a multiple of
    128 and at most 512, so that a row of scores fits one PSUM bank.
    """
    width, length = q_t.shape
    tile = nl.tile_size.pmax
    scale = 1.0 / width**0.5
    out = nl.ndarray((length, width), dtype=v.dtype, buffer=nl.shared_hbm)
    queries = nl.ndarray((width, length), dtype=q_t.dtype, buffer=nl.sbuf)
    keys = nl.ndarray((width, length), dtype=k_t.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=queries, src=q_t)
    nisa.dma_copy(dst=keys, src=k_t)
    values = []
    for start in range(0, length, tile):
        part = nl.ndarray((tile, width), dtype=v.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=part, src=v[start : start + tile, 0:width])
        values.append(part)

    for start in range(0, length, tile):
        scores = nl.ndarray((tile, length), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=scores, stationary=queries[0:width, start : start + tile], moving=keys)
        largest = nl.ndarray((tile, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=scores, axis=1, negate=True, keepdims=True)
        bias = nl.ndarray((tile, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=bias, data=largest, op0=nl.multiply, operand0=scale)
        powers = nl.ndarray((tile, length), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=powers, op=nl.exp, data=scores, bias=bias, scale=scale)
        total = nl.ndarray((tile, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1, keepdims=True)
        inverse = nl.ndarray((tile, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=total)

        context = nl.ndarray((tile, width), dtype=nl.float32, buffer=nl.psum)
        for index, part in enumerate(values):
            turned = nl.ndarray((tile, tile), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=powers[0:tile, index * tile : (index + 1) * tile])
            weights = nl.ndarray((tile, tile), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=weights, src=turned)
            nisa.nc_matmul(dst=context, stationary=weights, moving=part)
        result = nl.ndarray((tile, width), dtype=v.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=result, data=context, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=out[start : start + tile, 0:width], src=result)
    return out


def reference(q, k, v):
    """Return the same in NumPy, in double precision."""
    q, k, v = (t.astype(np.float64) for t in (q, k, v))
    scores = q @ k.T / np.sqrt(q.shape[1])
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True) @ v


if __name__ == "__main__":
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((256, 64), np.float32) for _ in range(3))
    got = nki.simulate(attention)(np.ascontiguousarray(q.T), np.ascontiguousarray(k.T), v)
    compare("attention", got, reference(q, k, v), 1e-5)
