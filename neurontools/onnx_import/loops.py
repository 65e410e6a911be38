"""ONNX's Scan and Loop, unrolled: how many turns they take is known when the model is imported."""

from __future__ import annotations

import numpy as np

from formats.errors import UnsupportedError
from neurontools.onnx_import.builder import Tensor
from neurontools.onnx_import.registry import Node, operator

__all__: list[str] = []

_MOST_TURNS = 1000


def _stacked(parts: list[Tensor], axis: int) -> Tensor:
    rows = [each.unsqueeze(axis) for each in parts]
    return rows[0].concatenate(rows[1:], axis)


@operator("Scan")
def scan(n: Node) -> tuple[Tensor, ...]:
    """Run a body over slices of the inputs, carrying state."""
    if n.version < 9:  # of version 8: a batch dimension, and lengths of its sequences
        raise UnsupportedError("this form of Scan is not modelled")
    body, count = n.required("body"), n.required("num_scan_inputs")
    given = [n.input(each) for each in range(len(n.inputs))]
    state, inputs = given[: len(given) - count], given[len(given) - count :]
    axes = [x.axis(axis) for x, axis in zip(inputs, n.get("scan_input_axes") or [0] * count, strict=True)]
    back = n.get("scan_input_directions") or [0] * count
    turns = inputs[0].shape[axes[0]]
    outputs = len(body.output) - len(state)
    if not 0 < turns <= _MOST_TURNS:
        raise UnsupportedError(f"a Scan of {turns} turns is not unrolled")
    made: list[list[Tensor]] = [[] for _ in range(outputs)]
    for turn in range(turns):
        slices = []
        for x, axis, direction in zip(inputs, axes, back, strict=True):
            at = turns - 1 - turn if direction else turn
            kept = [size for dim, size in enumerate(x.shape) if dim != axis]
            slices.append(x.slice(axis, at, at + 1).reshape(kept))
        results = n.run(body, [*state, *slices])
        state = results[: len(state)]
        for parts, value in zip(made, results[len(state) :], strict=True):
            parts.append(value)
    to = n.get("scan_output_axes") or [0] * outputs
    turned = n.get("scan_output_directions") or [0] * outputs
    whole = [_stacked(parts[::-1] if turn else parts, axis) for parts, axis, turn in zip(made, to, turned, strict=True)]
    return (*state, *whole)


@operator("Loop")
def loop(n: Node) -> tuple[Tensor, ...]:
    """Run a body as often as is said, while a condition that no input decides holds."""
    body, most = n.required("body"), n.static(0)
    limit = _MOST_TURNS + 1 if most is None else int(most.reshape(()))
    start = n.static(1)
    holds = start is None or bool(start.reshape(()))
    state = [n.input(each) for each in range(2, len(n.inputs))]
    made: list[list[Tensor]] = [[] for _ in range(len(body.output) - 1 - len(state))]
    turn = 0
    while holds and turn < limit:
        if turn > _MOST_TURNS:
            raise UnsupportedError(f"a Loop of more than {_MOST_TURNS} turns is not unrolled")
        condition = n.to.constant(np.array(True))
        results = n.run(body, [n.to.constant(np.array(turn, np.int64)), condition, *state])
        holds = bool(n.to.static(results[0]).reshape(()))
        state = results[1 : 1 + len(state)]
        for parts, value in zip(made, results[1 + len(state) :], strict=True):
            parts.append(value)
        turn += 1
    if any(not parts for parts in made):
        raise UnsupportedError("a Loop without turns gives what has no shape")
    return (*state, *(_stacked(parts, 0) for parts in made))


@operator("DFT")
def fourier(n: Node) -> Tensor:
    """Transform one dimension; complex numbers are pairs in the last one."""
    x = n.input(0)
    axis = n.get("axis", 1) if n.version < 20 else -2 if n.optional(2) is None else int(np.asarray(n.static(2)))
    axis = x.axis(axis)
    length = n.static(1)
    size = x.shape[axis] if length is None else int(length.reshape(()))
    inverse, half = n.get("inverse", 0), n.get("onesided", 0)
    if inverse and half:
        raise UnsupportedError("an inverse DFT of half a spectrum is not modelled")
    if x.shape[axis] != size:
        amounts = [(0, size - x.shape[axis] if dim == axis else 0) for dim in range(x.rank)]
        x = x.pad(amounts)
    parts = [x.slice(-1, each, each + 1).reshape(x.shape[:-1]) for each in range(x.shape[-1])]
    imaginary = parts[1] if len(parts) == 2 else n.to.constant(0, x.kind).expand(parts[0].shape)
    whole = n.to.emit("complex", [parts[0], imaginary]).move(axis, -1)
    found = n.to.emit("fft", [whole], fft_type="IFFT" if inverse else "FFT", fft_length=(size,)).move(-1, axis)
    if half:
        found = found.slice(axis, 0, size // 2 + 1)
    return _stacked([found.unary("real"), found.unary("imag")], -1)
