"""Layer normalization over rows, in the two steps of AWS's tutorial."""

from __future__ import annotations

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl

__all__ = ["layernorm_v1", "layernorm_v2"]

_P, _STATS = 128, 512


def _tile(width: int) -> nl.NkiTensor:
    return nl.ndarray((_P, width), dtype=nl.float32, buffer=nl.sbuf)


def _row(ones: nl.NkiTensor, source: nl.NkiTensor, width: int) -> nl.NkiTensor:
    """Return a vector on every partition: a product with ones, copied from PSUM in spans."""
    line = nl.ndarray((1, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=line, src=source)
    spread = _tile(width)
    for start in range(0, width, _STATS):
        total = nl.ndarray((_P, _STATS), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=total, stationary=ones, moving=line[:, start : start + _STATS])
        nisa.tensor_copy(dst=spread[:, start : start + _STATS], src=total)
    return spread


def _begin(x: nl.NkiTensor) -> tuple[int, int, nl.NkiTensor, nl.NkiTensor]:
    """Return rows, width, the output, and ones for `_row`."""
    rows, width = x.shape
    ones = nl.ndarray((1, _P), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    return rows, width, nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm), ones


def _scale(mean_square: nl.NkiTensor, epsilon: float) -> nl.NkiTensor:
    """Return 1 / sqrt(x + epsilon) per partition."""
    shifted, inverse = _tile(1), _tile(1)
    nisa.tensor_scalar(dst=shifted, data=mean_square, op0=nl.add, operand0=epsilon)
    nisa.activation(dst=inverse, op=nl.rsqrt, data=shifted)
    return inverse


def layernorm_v1(x: nl.NkiTensor, gamma: nl.NkiTensor, beta: nl.NkiTensor, epsilon: float = 1e-5) -> nl.NkiTensor:
    """Use one instruction per step of the formula; the variance is the mean of squares less the mean's square."""
    rows, width, out, ones = _begin(x)
    weights, shifts = _row(ones, gamma, width), _row(ones, beta, width)
    for first in range(0, rows, _P):
        tile, squares = _tile(width), _tile(width)
        nisa.dma_copy(dst=tile, src=x[first : first + _P, :])
        nisa.activation(dst=squares, op=nl.square, data=tile)
        mean, mean_square, square_mean, variance = _mean(tile), _mean(squares), _tile(1), _tile(1)
        nisa.tensor_tensor(dst=square_mean, data1=mean, data2=mean, op=nl.multiply)
        nisa.tensor_tensor(dst=variance, data1=mean_square, data2=square_mean, op=nl.subtract)
        centred, scaled, weighted, done = _tile(width), _tile(width), _tile(width), _tile(width)
        nisa.tensor_scalar(dst=centred, data=tile, op0=nl.subtract, operand0=mean)
        nisa.tensor_scalar(dst=scaled, data=centred, op0=nl.multiply, operand0=_scale(variance, epsilon))
        nisa.tensor_tensor(dst=weighted, data1=scaled, data2=weights, op=nl.multiply)
        nisa.tensor_tensor(dst=done, data1=weighted, data2=shifts, op=nl.add)
        nisa.dma_copy(dst=out[first : first + _P, :], src=done)
    return out


def _mean(tile: nl.NkiTensor) -> nl.NkiTensor:
    """Return the mean of each row."""
    total, mean = _tile(1), _tile(1)
    nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1, keepdims=True)
    nisa.tensor_scalar(dst=mean, data=total, op0=nl.multiply, operand0=1.0 / tile.shape[1])
    return mean


def layernorm_v2(x: nl.NkiTensor, gamma: nl.NkiTensor, beta: nl.NkiTensor, epsilon: float = 1e-5) -> nl.NkiTensor:
    """Use the statistics instructions and one pass for shift and scale."""
    rows, width, out, ones = _begin(x)
    weights, shifts = _row(ones, gamma, width), _row(ones, beta, width)
    for first in range(0, rows, _P):
        tile = _tile(width)
        nisa.dma_copy(dst=tile, src=x[first : first + _P, :])
        stats, moments = _tile(6 * (width // _STATS)), _tile(2)
        for number, start in enumerate(range(0, width, _STATS)):
            nisa.bn_stats(dst=stats[:, 6 * number : 6 * number + 6], data=tile[:, start : start + _STATS])
        nisa.bn_aggr(dst=moments, data=stats)
        scaled, weighted, done = _tile(width), _tile(width), _tile(width)
        nisa.tensor_scalar(
            dst=scaled,
            data=tile,
            op0=nl.subtract,
            operand0=moments[:, 0:1],
            op1=nl.multiply,
            operand1=_scale(moments[:, 1:2], epsilon),
        )
        nisa.tensor_tensor(dst=weighted, data1=scaled, data2=weights, op=nl.multiply)
        nisa.tensor_tensor(dst=done, data1=weighted, data2=shifts, op=nl.add)
        nisa.dma_copy(dst=out[first : first + _P, :], src=done)
    return out
