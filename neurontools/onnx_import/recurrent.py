"""ONNX's RNN, GRU and LSTM, unrolled over the sequence."""

from __future__ import annotations

from collections.abc import Callable

from formats.errors import UnsupportedError
from formats.hlo import PrimitiveType
from formats.named_tuple import NamedTuple
from neurontools.onnx_import.builder import Tensor
from neurontools.onnx_import.registry import Node, operator

__all__: list[str] = []

# ONNX stacks gates as i, o, f, c in an LSTM and as z, r, h in a GRU: other frameworks have other orders.
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": lambda x: x.unary("logistic"),
    "tanh": lambda x: x.unary("tanh"),
    "relu": lambda x: x.maximum(0),
}
_DEFAULTS = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}


class _Cell(NamedTuple):
    """Weights of one direction, and how a step is made."""

    n: Node
    hidden: int
    w: Tensor
    r: Tensor
    input_bias: Tensor | None
    state_bias: Tensor | None
    peepholes: Tensor | None
    functions: list[Callable[[Tensor], Tensor]]

    def parts(self, x: Tensor) -> list[Tensor]:
        """Take the gates of a product apart."""
        return [x.slice(-1, k * self.hidden, (k + 1) * self.hidden) for k in range(_GATES[self.n.op])]

    def product(self, x: Tensor, weights: Tensor, bias: Tensor | None) -> Tensor:
        """Return x times transposed weights, and a bias."""
        found = x.dot(weights.transpose((1, 0)))
        return found if bias is None else found + bias

    def step(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Return the next state and cell."""
        given, known = self.product(x, self.w, self.input_bias), self.product(h, self.r, self.state_bias)
        f = self.functions
        if self.n.op == "RNN":
            return f[0](given + known), c
        if self.n.op == "GRU":
            return self._gru(given, known, h), c
        i, o, forget, new = self.parts(given + known)
        if self.peepholes is not None:
            p = [self.peepholes.slice(0, k * self.hidden, (k + 1) * self.hidden) for k in range(3)]
            i, forget = i + c * p[0], forget + c * p[2]  # in the order i, o, f; o looks at the new cell
        cell = f[0](forget) * c + f[0](i) * f[1](new)
        if self.peepholes is not None:
            o = o + cell * p[1]
        return f[0](o) * f[2](cell), cell

    def _gru(self, given: Tensor, known: Tensor, h: Tensor) -> Tensor:
        f, (z_in, r_in, h_in), (z_of, r_of, h_of) = self.functions, self.parts(given), self.parts(known)
        z, r = f[0](z_in + z_of), f[0](r_in + r_of)
        if self.n.get("linear_before_reset", 0):
            new = f[1](h_in + r * h_of)  # cuDNN's form, whose product needs no second pass
        else:
            weights = self.r.slice(0, 2 * self.hidden, 3 * self.hidden)
            bias = None if self.state_bias is None else self.state_bias.slice(0, 2 * self.hidden, 3 * self.hidden)
            new = f[1](h_in + self.product(r * h, weights, bias))
        return (1 - z) * new + z * h


@operator("RNN", "GRU", "LSTM")
def recurrent(n: Node) -> tuple[Tensor, ...]:
    """Run a cell over a sequence, forward, backward or both ways."""
    if n.get("clip") is not None or n.get("input_forget", 0):
        raise UnsupportedError(f"{n.op} with clipped or coupled gates is not modelled")
    x, lengths = n.input(0), n.optional(4)
    if n.get("layout", 0):
        x = x.move(0, 1)
    direction = n.choice("direction", "forward", "reverse", "bidirectional")
    ways = ["forward", "reverse"] if direction == "bidirectional" else [direction]
    if lengths is not None and "reverse" in ways:  # each batch would begin at its own end
        raise UnsupportedError(f"{n.op} backward over sequences of different lengths is not modelled")
    outputs, states, cells = [], [], []
    for number, way in enumerate(ways):
        y, h, c = _one_way(n, x, number, backward=way == "reverse", lengths=lengths)
        outputs.append(y.unsqueeze(1))
        states.append(h.unsqueeze(0))
        cells.append(c.unsqueeze(0))
    whole = outputs[0].concatenate(outputs[1:], 1)
    last, cell = (each[0].concatenate(each[1:], 0) for each in (states, cells))
    if n.get("layout", 0):
        whole, last, cell = whole.transpose((2, 0, 1, 3)), last.move(0, 1), cell.move(0, 1)
    return (whole, last, cell) if n.op == "LSTM" else (whole, last)


def _one_way(
    n: Node, x: Tensor, number: int, *, backward: bool, lengths: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    def mine(at: int) -> Tensor | None:
        whole = n.optional(at)
        return None if whole is None else whole.slice(0, number, number + 1).reshape(whole.shape[1:])

    w, r, bias = mine(1), mine(2), mine(3)
    if w is None or r is None:
        raise UnsupportedError(f"{n.op} without weights is not modelled")
    hidden, gates = r.shape[-1], _GATES[n.op]
    names = [str(each.decode() if isinstance(each, bytes) else each).lower() for each in n.get("activations") or []]
    count = len(_DEFAULTS[n.op])
    chosen = names[number * count : (number + 1) * count] or _DEFAULTS[n.op]
    if len(chosen) != count or any(name not in _FUNCTIONS for name in chosen):
        raise UnsupportedError(f"{n.op} with {', '.join(chosen)} is not modelled")
    split = gates * hidden
    cell = _Cell(n, hidden, w, r, None if bias is None else bias.slice(0, 0, split),
                 None if bias is None else bias.slice(0, split, 2 * split), mine(7) if n.op == "LSTM" else None,
                 [_FUNCTIONS[name] for name in chosen])  # fmt: skip
    zero = n.to.constant(0, x.kind).expand((x.shape[1], hidden))
    h, c = _initial(n, 5, number, zero), _initial(n, 6, number, zero) if n.op == "LSTM" else zero
    steps: list[Tensor] = []
    for turn in range(x.shape[0]):
        at = x.shape[0] - 1 - turn if backward else turn
        now = x.slice(0, at, at + 1).reshape(x.shape[1:])
        next_h, next_c = cell.step(now, h, c)
        y = next_h
        if lengths is not None:
            going = (lengths.cast(PrimitiveType.S32) > turn).put(zero.shape, (0,))
            # Behind its end a sequence gives zeros, and its state stays what it was there.
            y, next_h, next_c = going.where(next_h, zero), going.where(next_h, h), going.where(next_c, c)
        h, c = next_h, next_c
        steps.append(y.unsqueeze(0))
    if backward:
        steps.reverse()
    whole = steps[0].concatenate(steps[1:], 0) if steps else zero.unsqueeze(0).slice(0, 0, 0)
    return whole, h, c


def _initial(n: Node, at: int, number: int, zero: Tensor) -> Tensor:
    given = n.optional(at)
    if given is None:
        return zero
    whole = given.move(0, 1) if n.get("layout", 0) else given
    return whole.slice(0, number, number + 1).reshape(zero.shape)
