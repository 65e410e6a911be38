"""The state-space recurrence of the Mamba tutorial: channels on partitions, a scan along the sequence per state.

y[c, t] = sum over s of x[c, s, t] C[s, t], x[c, s, t] = exp(delta A) x[c, s, t - 1] + delta u B.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl

__all__ = ["mamba_v1", "mamba_v2", "mamba_v3"]

_P = 128
_SPAN = 512


def _tile(width: int) -> nl.NkiTensor:
    return nl.ndarray((_P, width), dtype=nl.float32, buffer=nl.sbuf)


def _loaded(source: nl.NkiTensor, width: int) -> nl.NkiTensor:
    tile = nl.ndarray((source.shape[0], width), dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    return tile


def _ones() -> nl.NkiTensor:
    ones = nl.ndarray((1, _P), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    return ones


def _spread(ones: nl.NkiTensor, row: nl.NkiTensor, span: slice) -> nl.NkiTensor:
    """Load a part of a row and give every partition a copy: a product with ones, which leaves it in PSUM."""
    width = span.stop - span.start
    spread = nl.ndarray((_P, width), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=spread, stationary=ones, moving=_loaded(row[:, span], width))
    return spread


class _Unit:
    """One span of the sequence for one state, in four steps; steps of neighbouring units alternate on the engine."""

    decay: nl.NkiTensor
    driven: nl.NkiTensor
    states: nl.NkiTensor
    part: nl.NkiTensor

    def __init__(
        self,
        total: nl.NkiTensor,
        delta: nl.NkiTensor,
        u: nl.NkiTensor,
        product: nl.NkiTensor | None,
        a: nl.NkiTensor,
        row_b: nl.NkiTensor,
        row_c: nl.NkiTensor,
        ones: nl.NkiTensor,
        span: slice,
    ) -> None:
        self.total, self.delta, self.u, self.product, self.a = total, delta, u, product, a
        self.row_b, self.row_c, self.ones, self.span = row_b, row_c, ones, span
        self.width = span.stop - span.start

    def drive(self) -> None:
        """Compute exp(delta A) and delta u B."""
        self.decay, self.driven, product = _tile(self.width), _tile(self.width), self.product
        nisa.activation(dst=self.decay, op=nl.exp, data=self.delta[:, self.span], scale=self.a)
        if product is None:
            product = _tile(self.width)
            nisa.tensor_tensor(dst=product, data1=self.delta[:, self.span], data2=self.u[:, self.span], op=nl.multiply)
        else:
            product = product[:, self.span]
        spread = _spread(self.ones, self.row_b, self.span)
        nisa.tensor_tensor(dst=self.driven, data1=product, data2=spread, op=nl.multiply)

    def scan(self, before: _Unit | None) -> None:
        """Run the recurrence on from the unit before, if that is of the same state."""
        self.states = _tile(self.width)
        initial = before.states[:, before.width - 1 : before.width] if before is not None and self.span.start else 0.0
        nisa.tensor_tensor_scan(
            dst=self.states, data0=self.decay, data1=self.driven, initial=initial, op0=nl.multiply, op1=nl.add
        )

    def read(self) -> None:
        """Multiply with C."""
        self.part = _tile(self.width)
        spread = _spread(self.ones, self.row_c, self.span)
        nisa.tensor_tensor(dst=self.part, data1=self.states, data2=spread, op=nl.multiply)

    def add(self) -> None:
        """Add to the sum over states."""
        total = self.total[:, self.span]
        nisa.tensor_tensor(dst=total, data1=total, data2=self.part, op=nl.add)


def _work(units: Iterable[_Unit]) -> None:
    """Carry out units so that no word needs the result of the word before it."""
    before: _Unit | None = None
    last: _Unit | None = None
    for unit in chain(units, (None,)):  # lazily: a unit's loads come with it
        if unit is not None:
            unit.drive()
        if last is not None:
            last.read()
        if before is not None:
            before.add()
        if unit is not None:
            unit.scan(last)
        before, last = last, unit
    if before is not None:
        before.add()


def _prepare(delta: nl.NkiTensor, A: nl.NkiTensor) -> tuple[int, int, int, nl.NkiTensor, nl.NkiTensor]:
    """Return channels, length, states, the output, and ones for `_spread`."""
    channels, length = delta.shape
    out = nl.ndarray((channels, length), dtype=delta.dtype, buffer=nl.shared_hbm)
    return channels, length, A.shape[1], out, _ones()


def _spans(length: int) -> list[slice]:
    return [slice(start, min(start + _SPAN, length)) for start in range(0, length, _SPAN)]


def mamba_v1(delta: nl.NkiTensor, u: nl.NkiTensor, A: nl.NkiTensor, B: nl.NkiTensor, C: nl.NkiTensor) -> nl.NkiTensor:
    """Load everything anew for each state."""
    channels, length, states, out, ones = _prepare(delta, A)
    for first in range(0, channels, _P):
        rows = slice(first, first + _P)
        total = _tile(length)
        nisa.memset(dst=total, value=0.0)

        def units(rows: slice = rows, total: nl.NkiTensor = total) -> Iterator[_Unit]:
            for s in range(states):
                delta_i, u_i = _loaded(delta[rows, :], length), _loaded(u[rows, :], length)
                of_state = _loaded(A[rows, s : s + 1], 1), B[s : s + 1, :], C[s : s + 1, :]
                for span in _spans(length):
                    yield _Unit(total, delta_i, u_i, None, *of_state, ones, span)

        _work(units())
        nisa.dma_copy(dst=out[rows, :], src=total)
    return out


def mamba_v2(delta: nl.NkiTensor, u: nl.NkiTensor, A: nl.NkiTensor, B: nl.NkiTensor, C: nl.NkiTensor) -> nl.NkiTensor:
    """Load delta and u once for all states of a tile of channels."""
    channels, length, states, out, ones = _prepare(delta, A)
    for first in range(0, channels, _P):
        rows = slice(first, first + _P)
        total, product = _tile(length), _tile(length)
        nisa.memset(dst=total, value=0.0)
        delta_i, u_i = _loaded(delta[rows, :], length), _loaded(u[rows, :], length)
        nisa.tensor_tensor(dst=product, data1=delta_i, data2=u_i, op=nl.multiply)

        def units(
            rows: slice = rows,
            total: nl.NkiTensor = total,
            delta_i: nl.NkiTensor = delta_i,
            u_i: nl.NkiTensor = u_i,
            product: nl.NkiTensor = product,
        ) -> Iterator[_Unit]:
            for s in range(states):
                of_state = _loaded(A[rows, s : s + 1], 1), B[s : s + 1, :], C[s : s + 1, :]
                for span in _spans(length):
                    yield _Unit(total, delta_i, u_i, product, *of_state, ones, span)

        _work(units())
        nisa.dma_copy(dst=out[rows, :], src=total)
    return out


mamba_v3 = mamba_v2  # the tutorial's third step cuts the sequence into spans of 512, which `_spans` does anyhow
