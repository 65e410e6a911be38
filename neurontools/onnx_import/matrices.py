"""ONNX operators that multiply and sum: products of matrices, convolutions, pools."""

from __future__ import annotations

from typing import Any

from formats.errors import UnsupportedError
from formats.hlo import PrimitiveType, Shape
from formats.hlo.attributes import ConvolutionDimensionNumbers, DotDimensionNumbers, WindowDimension
from neurontools.onnx_import.builder import Tensor, integer_range, neutral
from neurontools.onnx_import.registry import Node, operator

__all__: list[str] = []


@operator("MatMul")
def matmul(n: Node) -> Tensor:
    """Multiply matrices."""
    return n.input(0).dot(n.input(1))


def _rows(values: Tensor) -> Tensor:
    """Return what a vector says of rows (the left side, the result) as a column; of columns it broadcasts as it is."""
    return values.unsqueeze(-1) if values.rank == 1 else values


@operator("MatMulInteger")
def matmul_integer(n: Node) -> Tensor:
    """Multiply integers less their zero points."""
    a, b = n.input(0).cast(PrimitiveType.S32), n.input(1).cast(PrimitiveType.S32)
    of_a, of_b = n.optional(2), n.optional(3)
    a = a if of_a is None else a - _rows(of_a.cast(PrimitiveType.S32))
    return a.dot(b if of_b is None else b - of_b.cast(PrimitiveType.S32))


@operator("QLinearMatMul")
def quantised_matmul(n: Node) -> Tensor:
    """Multiply quantised matrices and quantise the product."""
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = (n.input(each).cast(PrimitiveType.F32) for each in range(8))
    kind = n.input(7).kind
    if not kind.is_integral:
        raise UnsupportedError(f"QLinearMatMul with elements of {kind.text} is not modelled")
    y = ((a - _rows(a_zero)) * _rows(a_scale)).dot((b - b_zero) * b_scale) / _rows(scale)
    low, high = integer_range(kind)
    return (y.unary("round-nearest-even") + _rows(zero)).maximum(low).minimum(high).cast(kind)


@operator("Gemm")
def gemm(n: Node) -> Tensor:
    """Return alpha a b + beta c."""
    a, b, c = n.input(0), n.input(1), n.optional(2)
    a = a.transpose((1, 0)) if n.get("transA", 0) else a
    b = b.transpose((1, 0)) if n.get("transB", 0) else b
    alpha, beta = float(n.get("alpha", 1.0)), float(n.get("beta", 1.0))
    found = a.dot(b) * alpha
    return found if c is None else found + c * beta


@operator("Einsum")
def einsum(n: Node) -> Tensor:
    """Sum products over letters, two operands at a time."""
    equation = n.required("equation").replace(" ", "")
    if "." in equation:
        equation = _without_dots(equation, [n.input(k).rank for k in range(len(n.inputs))])
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if not arrow:
        letters = left.replace(",", "")
        result = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    operands = [_diagonal(n.input(k), term) for k, term in enumerate(terms)]
    while len(operands) > 1:
        (a, x), (b, y), *rest = operands
        later = set(result) | {c for _, each in rest for c in each}
        operands = [_product(a, x, b, y, later), *rest]
    found, letters = operands[0]
    gone = [at for at, c in enumerate(letters) if c not in result]
    found = found.sum(gone) if gone else found
    letters = "".join(c for c in letters if c in result)
    return found.transpose([letters.index(c) for c in result])


def _without_dots(equation: str, ranks: list[int]) -> str:
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in equation]
    most = max(rank - len(t.replace("...", "")) for t, rank in zip(terms, ranks, strict=True) if "..." in t)
    full = [
        t.replace("...", "".join(spare[most - (rank - len(t.replace("...", ""))) : most]))
        for t, rank in zip(terms, ranks, strict=True)
    ]
    if not arrow:
        letters = left.replace("...", "").replace(",", "")
        result = "..." + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    return ",".join(full) + "->" + result.replace("...", "".join(spare[:most]))


def _diagonal(x: Tensor, letters: str) -> tuple[Tensor, str]:
    """Keep the diagonal of letters that come twice."""
    for c in set(letters):
        while letters.count(c) > 1:
            first, second = letters.index(c), letters.rindex(c)
            kind = PrimitiveType.S32
            same = x.to.iota(kind, x.shape, first).equals(x.to.iota(kind, x.shape, second))
            x = same.where(x, x.to.constant(0, x.kind)).sum([second])
            letters = letters[:second] + letters[second + 1 :]
    return x, letters


def _product(a: Tensor, x: str, b: Tensor, y: str, later: set[str]) -> tuple[Tensor, str]:
    # A dimension of one element broadcasts: it leaves the side that has it.
    a, x = _without_ones(a, x, dict(zip(y, b.shape, strict=True)))
    b, y = _without_ones(b, y, dict(zip(x, a.shape, strict=True)))
    batch = [c for c in x if c in y and c in later]
    away = [c for c in x if c in y and c not in later]
    numbers = DotDimensionNumbers(
        tuple(x.index(c) for c in away), tuple(y.index(c) for c in away),
        tuple(x.index(c) for c in batch), tuple(y.index(c) for c in batch),
    )  # fmt: skip
    rest_a, rest_b = [c for c in x if c not in y], [c for c in y if c not in x]
    letters = "".join([*batch, *rest_a, *rest_b])
    sizes = dict(zip(x, a.shape, strict=True)) | dict(zip(y, b.shape, strict=True))
    shape = Shape(a.kind, tuple(sizes[c] for c in letters))
    return a.to.emit("dot", [a, b], shape, dot=numbers), letters


def _without_ones(x: Tensor, letters: str, others: dict[str, int]) -> tuple[Tensor, str]:
    kept = [at for at, c in enumerate(letters) if x.shape[at] != 1 or others.get(c, 1) == 1]
    return x.reshape([x.shape[at] for at in kept]), "".join(letters[at] for at in kept)


def _auto_pad(n: Node) -> str:
    return n.choice("auto_pad", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


class _Places:
    """Kernel, strides, dilations and paddings of a windowed operator."""

    def __init__(self, n: Node, size: tuple[int, ...], kernel: list[int]) -> None:
        self.kernel = kernel
        rank = len(kernel)
        self.strides = n.get("strides") or [1] * rank
        self.dilations = n.get("dilations") or [1] * rank
        pads = n.get("pads") or [0] * (2 * rank)
        self.low, self.high = list(pads[:rank]), list(pads[rank:])
        auto = _auto_pad(n)
        for dim in range(rank):
            reach = (kernel[dim] - 1) * self.dilations[dim] + 1
            if auto in ("SAME_UPPER", "SAME_LOWER"):
                wanted = -(-size[dim] // self.strides[dim])
                total = max(0, (wanted - 1) * self.strides[dim] + reach - size[dim])
                small, large = total // 2, total - total // 2
                self.low[dim], self.high[dim] = (small, large) if auto == "SAME_UPPER" else (large, small)
            elif auto == "VALID":
                self.low[dim] = self.high[dim] = 0
        self.stated = self.low[:], self.high[:]
        for dim in range(rank if n.get("ceil_mode", 0) else 0):
            reach = (kernel[dim] - 1) * self.dilations[dim] + 1
            room = size[dim] + self.low[dim] + self.high[dim] - reach
            places = -(-room // self.strides[dim]) + 1
            if (places - 1) * self.strides[dim] >= size[dim] + self.low[dim]:
                places -= 1  # the last window must not begin in the padding behind
            self.high[dim] += max(0, (places - 1) * self.strides[dim] - room)

    def window(self, **more: Any) -> tuple[WindowDimension, ...]:
        """Return the window over the spatial dimensions."""
        return tuple(
            WindowDimension(self.kernel[d], self.strides[d], self.low[d], self.high[d], self.dilations[d], **more)
            for d in range(len(self.kernel))
        )


def _numbers(spatial: int, *, transposed: bool = False) -> ConvolutionDimensionNumbers:
    dims = tuple(range(2, 2 + spatial))
    kernel = (0, 1) if transposed else (1, 0)
    return ConvolutionDimensionNumbers(0, 1, dims, *kernel, dims, 0, 1, dims)


def _convolved(
    x: Tensor, w: Tensor, window: tuple[WindowDimension, ...], groups: int, *, transposed: bool = False
) -> Tensor:
    numbers = _numbers(x.rank - 2, transposed=transposed)
    outputs = w.shape[1] if transposed else w.shape[0]
    sizes = [each.positions(size) for each, size in zip(window, x.shape[2:], strict=True)]
    shape = Shape(x.kind, (x.shape[0], outputs, *sizes))
    return x.to.emit(
        "convolution", [x, w], shape, window=window, convolution=numbers, feature_group_count=groups
    )  # fmt: skip


def _biased(x: Tensor, bias: Tensor | None) -> Tensor:
    return x if bias is None else x + bias.put(x.shape, (1,))


@operator("Conv")
def conv(n: Node) -> Tensor:
    """Convolve, features in groups."""
    x, w = n.input(0), n.input(1)
    places = _Places(n, x.shape[2:], n.get("kernel_shape") or list(w.shape[2:]))
    return _biased(_convolved(x, w, places.window(), n.get("group", 1)), n.optional(2))


@operator("ConvInteger")
def conv_integer(n: Node) -> Tensor:
    """Convolve integers less their zero points."""
    x, w = n.input(0).cast(PrimitiveType.S32), n.input(1).cast(PrimitiveType.S32)
    for number in (2, 3):
        zero = n.optional(number)
        if zero is not None:
            if number == 2:
                x = x - zero.cast(PrimitiveType.S32).reshape(())
            elif zero.rank == 0 or zero.shape == (1,):
                w = w - zero.cast(PrimitiveType.S32).reshape(())
            else:
                w = w - zero.cast(PrimitiveType.S32).put(w.shape, (0,))
    places = _Places(n, x.shape[2:], n.get("kernel_shape") or list(w.shape[2:]))
    return _convolved(x, w, places.window(), n.get("group", 1))


@operator("ConvTranspose")
def conv_transpose(n: Node) -> Tensor:
    """Spread elements by a kernel: a convolution over a dilated base with the kernel turned round."""
    x, w, groups = n.input(0), n.input(1), n.get("group", 1)
    kernel = n.get("kernel_shape") or list(w.shape[2:])
    rank = len(kernel)
    strides, dilations = n.get("strides") or [1] * rank, n.get("dilations") or [1] * rank
    extra = n.get("output_padding") or [0] * rank
    pads = list(n.get("pads") or [0] * (2 * rank))
    auto, wanted = _auto_pad(n), n.get("output_shape")
    window = []
    for d in range(rank):
        reach = (kernel[d] - 1) * dilations[d] + 1
        full = (x.shape[2 + d] - 1) * strides[d] + reach + extra[d]
        low, high = pads[d], pads[rank + d]
        if wanted or auto in ("SAME_UPPER", "SAME_LOWER"):
            total = full - (wanted[-rank:][d] if wanted else x.shape[2 + d] * strides[d])
            low = total - total // 2 if auto != "SAME_UPPER" else total // 2
            high = total - low
        window.append(WindowDimension(kernel[d], 1, reach - 1 - low, reach - 1 - high + extra[d], dilations[d],
                                      strides[d], True))  # fmt: skip
    # Kernel: input features in groups, output features of a group; HLO wants input features of a group, all outputs.
    inputs, each = w.shape[0] // groups, w.shape[1]
    parts = w.reshape((groups, inputs, each, *w.shape[2:])).transpose((1, 0, 2, *range(3, 3 + rank)))
    whole = parts.reshape((inputs, groups * each, *w.shape[2:]))
    return _biased(_convolved(x, whole, tuple(window), groups, transposed=True), n.optional(2))


def _pooled(x: Tensor, opcode: str, start: float, window: tuple[WindowDimension, ...]) -> Tensor:
    whole = (WindowDimension(), WindowDimension(), *window)
    initial = x.to.constant(start, x.kind)
    return x.to.emit("reduce-window", [x, initial], window=whole, called=[x.to.body(opcode, x.kind)])


@operator("MaxPool")
def max_pool(n: Node) -> Tensor:
    """Return the maximum in each place of a window."""
    x = n.input(0)
    if n.outputs > 1:
        raise UnsupportedError("MaxPool with the positions of its maxima is not modelled")
    places = _Places(n, x.shape[2:], n.required("kernel_shape"))
    return _pooled(x, "maximum", neutral("maximum", x.kind), places.window())


@operator("AveragePool")
def average_pool(n: Node) -> Tensor:
    """Return the mean in each place of a window; padding counts only where that is asked for."""
    x = n.input(0)
    places = _Places(n, x.shape[2:], n.required("kernel_shape"))
    total = _pooled(x, "add", 0, places.window())
    ones = n.to.constant(1, x.kind).expand(x.shape)
    if n.get("count_include_pad", 0):
        # What ceil_mode adds behind is not padding, and never counts; what auto_pad adds is.
        low, high = places.stated
        ones = n.to.constant(1, x.kind).expand(
            (*x.shape[:2], *(s + a + b for s, a, b in zip(x.shape[2:], low, high, strict=True)))
        )
        rest = tuple(
            WindowDimension(w.size, w.stride, w.padding_low - a, w.padding_high - b, w.window_dilation)
            for w, a, b in zip(places.window(), low, high, strict=True)
        )
        return total / _pooled(ones, "add", 0, rest)
    return total / _pooled(ones, "add", 0, places.window())


@operator("LpPool")
def lp_pool(n: Node) -> Tensor:
    """Return the p-norm in each place of a window."""
    x, p = n.input(0), float(n.get("p", 2))
    places = _Places(n, x.shape[2:], n.required("kernel_shape"))
    return _pooled(x.unary("abs").binary("power", p), "add", 0, places.window()).binary("power", 1 / p)


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(n: Node) -> Tensor:
    """Fold the whole plane."""
    x = n.input(0)
    axes = list(range(2, x.rank))
    if n.op == "GlobalMaxPool":
        return x.reduce("maximum", axes, keep=True)
    if n.op == "GlobalAveragePool":
        return x.mean(axes, keep=True)
    p = float(n.get("p", 2))
    return x.unary("abs").binary("power", p).sum(axes, keep=True).binary("power", 1 / p)


@operator("Det")
def determinant(n: Node) -> Tensor:
    """Return determinants of up to three rows, by their terms."""
    x = n.input(0)
    size = x.shape[-1]
    if size > 3:
        raise UnsupportedError("determinants of more than three rows are not modelled")

    def at(row: int, column: int) -> Tensor:
        return x.slice(-2, row, row + 1).slice(-1, column, column + 1).reshape(x.shape[:-2])

    if size == 1:
        return at(0, 0)
    if size == 2:
        return at(0, 0) * at(1, 1) - at(0, 1) * at(1, 0)
    first = at(0, 0) * (at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1))
    second = at(0, 1) * (at(1, 0) * at(2, 2) - at(1, 2) * at(2, 0))
    return first - second + at(0, 2) * (at(1, 0) * at(2, 1) - at(1, 1) * at(2, 0))
