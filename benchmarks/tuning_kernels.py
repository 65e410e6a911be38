"""Kernels of the examples with parameters: `neurontools tune benchmarks/tuning_kernels.py --target trn2 -- matmul`.

A number behind the name divides the rows, for successive halving: `--method halving --rung "softmax 4" -- softmax`.
"""

import sys

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

import neurontools

ENGINES = {"vector": nisa.vector_engine, "scalar": nisa.scalar_engine}
QUEUES = {
    "any": {},
    "sync": {"engine": nisa.engine.sync, "dge_mode": nisa.dge_mode.hwdge},
    "scalar": {"engine": nisa.engine.scalar, "dge_mode": nisa.dge_mode.hwdge},
}


def load(shape, dtype, source, parts, queue):
    """Return a tile loaded by some transfers, each of so many columns."""
    tile = nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)
    width = shape[1] // parts
    for start in range(0, shape[1], width):
        nisa.dma_copy(dst=tile[:, start : start + width], src=source[:, start : start + width], **QUEUES[queue])
    return tile


@nki.jit
def matmul(a_t, b, block=1024, copies="vector", rows_first=True, parts=1, queue="any"):
    """Return a_t.T @ b: columns in blocks, copies out of PSUM on an engine, loads in parts, an order of tiles."""
    depth, rows = a_t.shape
    columns = b.shape[1]
    out = nl.ndarray((rows, columns), dtype=a_t.dtype, buffer=nl.shared_hbm)
    left = [load((128, rows), a_t.dtype, a_t[k : k + 128, :], 1, "any") for k in range(0, depth, 128)]
    for start in range(0, columns, block):
        strips = [b[k : k + 128, start : start + block] for k in range(0, depth, 128)]
        right = [load((128, block), b.dtype, strip, parts, queue) for strip in strips]
        tiles = [(m, n) for m in range(0, rows, 128) for n in range(0, block, 512)]
        for m, n in tiles if rows_first else sorted(tiles, key=lambda tile: tile[::-1]):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(depth // 128):
                nisa.nc_matmul(dst=total, stationary=left[k][:, m : m + 128], moving=right[k][:, n : n + 512])
            done = nl.ndarray((128, 512), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=done, src=total, engine=ENGINES[copies])
            nisa.dma_copy(dst=out[m : m + 128, start + n : start + n + 512], src=done)
    return out


@nki.jit
def softmax(x, parts=1, scale="vector", fused=False, stores=1, queue="any"):
    """Return the softmax of the rows of x: loads and stores in parts, the last product on an engine, a fused sum."""
    rows, columns = x.shape
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, 128):
        tile = load((128, columns), x.dtype, x[start : start + 128, :], parts, queue)
        largest, total, inverse = (nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf) for _ in range(3))
        powers, result = (nl.ndarray((128, columns), dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=tile, axis=1, negate=True, keepdims=True)
        if fused:
            nisa.activation_reduce(dst=powers, op=nl.exp, data=tile, reduce_op=nl.add, reduce_res=total, bias=largest)
        else:
            nisa.activation(dst=powers, op=nl.exp, data=tile, bias=largest)
            nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1, keepdims=True)
        nisa.reciprocal(dst=inverse, data=total)
        if scale == "scalar":
            nisa.activation(dst=result, op=nl.copy, data=powers, scale=inverse)
        else:
            nisa.tensor_scalar(dst=result, data=powers, op0=nl.multiply, operand0=inverse)
        width = columns // stores
        for at in range(0, columns, width):
            nisa.dma_copy(dst=out[start : start + 128, at : at + width], src=result[:, at : at + width])
    return out


@nki.jit
def attention(q_t, k_t, v, copies="vector", fused=False, scale="vector", values_first=False, queue="any"):
    """Return softmax(q @ k.T / sqrt(width)) @ v: copies and the last product on engines, loads in an order."""
    width, length = q_t.shape
    factor = 1.0 / width**0.5
    out = nl.ndarray((length, width), dtype=v.dtype, buffer=nl.shared_hbm)

    def load_values():
        return [load((128, width), v.dtype, v[start : start + 128, :], 1, queue) for start in range(0, length, 128)]

    values = load_values() if values_first else None
    queries, keys = (load((width, length), each.dtype, each, 1, "any") for each in (q_t, k_t))
    values = values or load_values()
    for start in range(0, length, 128):
        scores = nl.ndarray((128, length), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=scores, stationary=queries[:, start : start + 128], moving=keys)
        largest, bias, total, inverse = (nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf) for _ in range(4))
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=scores, axis=1, negate=True, keepdims=True)
        nisa.tensor_scalar(dst=bias, data=largest, op0=nl.multiply, operand0=factor)
        powers = nl.ndarray((128, length), dtype=nl.float32, buffer=nl.sbuf)
        if fused:
            nisa.activation_reduce(
                dst=powers, op=nl.exp, data=scores, reduce_op=nl.add, reduce_res=total, bias=bias, scale=factor
            )
        else:
            nisa.activation(dst=powers, op=nl.exp, data=scores, bias=bias, scale=factor)
            nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1, keepdims=True)
        nisa.reciprocal(dst=inverse, data=total)
        context = nl.ndarray((128, width), dtype=nl.float32, buffer=nl.psum)
        for index, part in enumerate(values):
            turned = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=powers[:, index * 128 : (index + 1) * 128])
            weights = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=weights, src=turned, engine=ENGINES[copies])
            nisa.nc_matmul(dst=context, stationary=weights, moving=part)
        result = nl.ndarray((128, width), dtype=v.dtype, buffer=nl.sbuf)
        if scale == "scalar":
            nisa.activation(dst=result, op=nl.copy, data=context, scale=inverse)
        else:
            nisa.tensor_scalar(dst=result, data=context, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=out[start : start + 128, :], src=result)
    return out


WORDS = ("vector", "scalar")

SPACES = {
    "matmul": {
        "block": (512, 1024, 2048), "copies": WORDS, "rows_first": (True, False), "parts": (1, 2, 4),
        "queue": tuple(QUEUES),
    },
    "softmax": {
        "parts": (1, 2, 4), "scale": WORDS, "fused": (False, True), "stores": (1, 2, 4), "queue": tuple(QUEUES),
    },
    "attention": {
        "copies": WORDS, "fused": (False, True), "scale": WORDS, "values_first": (False, True), "queue": tuple(QUEUES),
    },
}  # fmt: skip


RUNGS = {"matmul": (2,), "softmax": (4, 2), "attention": (4, 2)}  # what their rows are divided by


def case(name, part=1):
    """Return kernel, arguments and result of one of the three, with a part of its rows."""
    random = np.random.default_rng(0)
    if name == "matmul":
        a_t, b = random.standard_normal((256, 256 // part), np.float32), random.standard_normal((256, 2048), np.float32)
        return matmul, (a_t, b), a_t.T @ b
    if name == "softmax":
        x = random.standard_normal((512 // part, 1024), np.float32)
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        return softmax, (x,), powers / powers.sum(axis=1, keepdims=True)
    q, k, v = (random.standard_normal((512 // part, 64), np.float32) for _ in range(3))
    powers = np.exp(q @ k.T / 8)
    return attention, (np.ascontiguousarray(q.T), np.ascontiguousarray(k.T), v), powers @ v / powers.sum(1)[:, None]


if __name__ == "__main__":
    name, *part = sys.argv[1:]
    kernel, arguments, want = case(name, *map(int, part))
    neurontools.tunable(**SPACES[name])(kernel)
    sys.exit(0 if np.allclose(nki.simulate(kernel)(*arguments), want, 1e-3, 1e-4) else 1)
