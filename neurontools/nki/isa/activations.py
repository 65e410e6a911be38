"""Activation functions on the Scalar engine."""

from __future__ import annotations

from typing import Any

from formats import isa as words
from neurontools.builder.trace import Space, View
from neurontools.nki.isa.checks import column, free_one, same_free, same_partitions, scalar_or_column, tile
from neurontools.nki.isa.constants import reduce_cmd as commands
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.refusals import reject
from neurontools.nki.operators import operator_of
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, threads, tracer

__all__ = ["activation", "activation_reduce"]

# ACTIVATE holds element types in four bits (isa.md 7): newer types need the extended word
_NIBBLE = 16
_SBUF = Space.SBUF
_IDLE, _LOAD = commands.idle, commands.load_reduce
_BIAS_DTYPES = (
    "float32",
    "bfloat16",
    "float16",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e5m2",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
)


def function_of(t: Tracer, instruction: str, op: Any) -> str:
    """Return the name of the activation function that an operator stands for."""
    found = operator_of(op)
    if found is not None and found.name == "prelu":
        return "parametric_relu"  # without a parameter, whose default is 0 where there is one
    if found is None or found.function is None:
        raise reject(t, instruction, "op", repr(op), "must be an nl activation function")
    return found.function


def activation(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: Any = commands.idle,
    name: str | None = None,
) -> NkiInstruction:
    """Compute dst = op(data * scale + bias) and, on request, sum it into the accumulator registers.

    Plain calls become ACTIVATE; a scale per partition, a constant bias or a sum needs the extended word.
    `reduce_res` adds one word that reads the registers out.
    """
    return _activation("activation", dst, op, data, bias, scale, reduce_op, reduce_res, reduce_cmd, name)


def activation_reduce(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    reduce_op: Any,
    reduce_res: NkiTensor | None,
    bias: Any = None,
    scale: Any = 1.0,
    name: str | None = None,
) -> NkiInstruction:
    """Compute an activation, and the sum of its result per partition in `reduce_res`."""
    return _activation(
        "activation_reduce", dst, op, data, bias, scale, reduce_op, reduce_res, commands.reset_reduce, name
    )


def _activation(
    instruction: str,
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    bias: Any,
    scale: Any,
    reduce_op: Any,
    reduce_res: NkiTensor | None,
    reduce_cmd: Any,
    name: str | None,
) -> NkiInstruction:
    t = threads.tracer or tracer()
    key: tuple[Any, ...] | None = None
    if reduce_res is None and reduce_op is None and reduce_cmd is _IDLE:
        try:
            kind = bias._kind or bias._find_kind() if bias is not None else None
            wide = scale._kind or scale._find_kind() if scale.__class__ is NkiTensor else scale.__class__
            key = instruction, dst._kind or dst._find_kind(), op, data._kind or data._find_kind(), kind, wide
            known = t.known.get(key)
        except (AttributeError, TypeError):  # something else than a tensor or an operator
            key = known = None
        if known is not None:
            word, function = known
            views = {"src": data._view or data.base_view, "dst": dst._view or dst.base_view}
            given: dict[str, object] = {"function": function}
            if scale.__class__ is NkiTensor:
                views["scale_pointer"] = free_one(scale._view or scale.base_view)
            else:
                given["scale"] = float(scale)
            if bias is not None:
                views["bias_pointer"] = free_one(bias._view or bias.base_view)
            return NkiInstruction(t.compute(word, "Activation", views, given, name))
    src, out = tile(t, instruction, "data", data), tile(t, instruction, "dst", dst)
    if out.partitions != src.partitions:
        same_partitions(t, instruction, "dst and data", out, src)
    if dst.shape != data.shape:
        same_free(t, instruction, "dst and data", dst, data)
    function = function_of(t, instruction, op)
    operands: dict[str, View] = {"src": src, "dst": out}
    fields: dict[str, object] = {"function": function}
    simple = src.dtype < _NIBBLE and out.dtype < _NIBBLE
    found = scalar_or_column(t, instruction, "scale", scale, src.partitions, ("float32",))
    if isinstance(found, View):
        operands["scale_pointer"] = found
        simple = False
    else:
        fields["scale"] = float(found)
    if bias is not None:
        if function == "reciprocal" and t.generation < 3 and bias.__class__ is NkiTensor:
            # Source: nki.api.shared, engine selection.
            raise reject(t, instruction, "bias", bias.name, "nl.reciprocal takes no bias before gen3")
        simple = _bias(t, instruction, bias, src.partitions, operands, fields) and simple
    if function == "copy" and (bias is not None or fields.get("scale") != 1.0):
        # The engine's copy takes neither scale nor bias (isa.md 11); NKI's does, and its identity is the same function.
        fields["function"] = "identity"
    command = _command(t, instruction, reduce_op, reduce_cmd)
    if command is not _IDLE:
        fields["reduce_command"] = words.ReduceCommand(command.value)
        fields["reduce_op"] = words.AluOp.ADD
        simple = False
    word = words.Activate if simple else words.ActivationExtended
    # Whether a copy is one goes by the scale.
    if key is not None and function != "copy" and scale.__class__ in (NkiTensor, int, float):
        t.known.note(key, (word, function))
    handle = NkiInstruction(t.compute(word, "Activation", operands, fields, name))
    if reduce_res is not None:
        result = column(t, instruction, "reduce_res", reduce_res, src.partitions)
        t.compute(words.ActivationReadAccumulator, "Activation", {"dst": result}, {}, name)
    return handle


def _bias(
    t: Tracer, instruction: str, bias: Any, partitions: int, operands: dict[str, View], fields: dict[str, object]
) -> bool:
    """Put the bias in place; return whether ACTIVATE can carry it."""
    found = scalar_or_column(t, instruction, "bias", bias, partitions, _BIAS_DTYPES)
    if isinstance(found, View):
        operands["bias_pointer"] = found
        # the bias pointer of ACTIVATE is an address in SBUF (isa.md 7)
        return found.dtype < _NIBBLE and found.allocation.space is _SBUF
    # a word without a bias adds nothing, on every generation
    if found == 0:
        return True
    if not t.limits.activation_constant_bias:
        raise reject(
            t, instruction, "bias", found, "a constant bias needs gen3 (give a tile of one value per partition)"
        )
    fields["bias"] = float(found)
    return False


def _command(t: Tracer, instruction: str, reduce_op: Any, reduce_cmd: Any) -> Any:
    if reduce_cmd.__class__ is not commands or reduce_cmd is _LOAD:
        raise reject(t, instruction, "reduce_cmd", reduce_cmd, "must be idle, reset, reduce or reset_reduce")
    if reduce_op is not None:
        found = operator_of(reduce_op)
        if found is None or found.name != "add":
            raise reject(t, instruction, "reduce_op", repr(reduce_op), "must be nl.add")
    return reduce_cmd
