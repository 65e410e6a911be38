"""The attributes of HLO text, each once: its word, the attribute of an instruction, and how the value is written."""

from __future__ import annotations

from typing import Any

from formats.hlo.module import Instruction
from formats.hlo.shapes import PrimitiveType, Shape
from formats.named_tuple import NamedTuple

__all__ = ["ATTRIBUTES", "CALLED", "IGNORED", "TextAttribute", "assign", "is_shown", "value_of"]


class TextAttribute(NamedTuple):
    """One attribute; `field` may have a part, as `dot.lhs_contracting_dimensions`.

    `shown_by` names opcodes that print it always; others print what is not neutral, or never where `only` is set.
    """

    word: str
    field: str
    codec: str
    shown_by: tuple[str, ...] = ()
    only: bool = False


_A = TextAttribute
_DIMENSIONS = ("broadcast", "transpose", "reverse", "concatenate", "reduce", "sort", "map", "all-gather",
               "reduce-scatter", "all-to-all", "get-dimension-size", "all-gather-start")  # fmt: skip
# fmt: off
ATTRIBUTES = (
    _A("index", "tuple_index", "integer", ("get-tuple-element",), only=True),
    _A("iota_dimension", "dimensions", "integer", ("iota",), only=True),
    _A("dimensions", "dimensions", "integers", _DIMENSIONS),
    _A("window", "window", "window", ("reduce-window", "select-and-scatter", "convolution"), only=True),
    _A("dim_labels", "convolution", "labels", ("convolution",), only=True),
    _A("feature_group_count", "feature_group_count", "integer"),
    _A("batch_group_count", "batch_group_count", "integer"),
    _A("lhs_batch_dims", "dot.lhs_batch_dimensions", "integers"),
    _A("lhs_contracting_dims", "dot.lhs_contracting_dimensions", "integers", ("dot",)),
    _A("rhs_batch_dims", "dot.rhs_batch_dimensions", "integers"),
    _A("rhs_contracting_dims", "dot.rhs_contracting_dimensions", "integers", ("dot",)),
    _A("lhs_ragged_dims", "ragged_dot.lhs_ragged_dimensions", "integers"),
    _A("rhs_group_dims", "ragged_dot.rhs_group_dimensions", "integers"),
    _A("offset_dims", "gather.offset_dims", "integers", ("gather",)),
    _A("collapsed_slice_dims", "gather.collapsed_slice_dims", "integers", ("gather",)),
    _A("start_index_map", "gather.start_index_map", "integers", ("gather",)),
    _A("operand_batching_dims", "gather.operand_batching_dims", "integers"),
    _A("start_indices_batching_dims", "gather.start_indices_batching_dims", "integers"),
    _A("index_vector_dim", "gather.index_vector_dim", "integer", ("gather",)),
    _A("slice_sizes", "gather_slice_sizes", "integers", ("gather",)),
    _A("update_window_dims", "scatter.update_window_dims", "integers", ("scatter",)),
    _A("inserted_window_dims", "scatter.inserted_window_dims", "integers", ("scatter",)),
    _A("scatter_dims_to_operand_dims", "scatter.scatter_dims_to_operand_dims", "integers", ("scatter",)),
    _A("input_batching_dims", "scatter.input_batching_dims", "integers"),
    _A("scatter_indices_batching_dims", "scatter.scatter_indices_batching_dims", "integers"),
    _A("indices_are_sorted", "indices_are_sorted", "boolean"),
    _A("unique_indices", "unique_indices", "boolean"),
    _A("slice", "slices", "slices", ("slice",)),
    _A("dynamic_slice_sizes", "dynamic_slice_sizes", "integers", ("dynamic-slice",)),
    _A("padding", "padding", "paddings", ("pad",)),
    _A("exponent_bits", "exponent_bits", "integer", ("reduce-precision",)),
    _A("mantissa_bits", "mantissa_bits", "integer", ("reduce-precision",)),
    _A("epsilon", "epsilon", "number", ("batch-norm-training", "batch-norm-inference", "batch-norm-grad")),
    _A("feature_index", "feature_index", "integer", ("batch-norm-training", "batch-norm-inference", "batch-norm-grad")),
    _A("direction", "comparison_direction", "word", ("compare",)),
    _A("type", "comparison_type", "word"),
    _A("is_stable", "is_stable", "boolean"),
    _A("k", "k", "integer", ("topk",)),
    _A("largest", "largest", "boolean", ("topk",)),
    _A("fft_type", "fft_type", "word", ("fft",)),
    _A("fft_length", "fft_length", "integers", ("fft",)),
    _A("distribution", "distribution", "word", ("rng",)),
    _A("algorithm", "rng_algorithm", "word", ("rng-bit-generator",)),
    _A("left_side", "triangular_solve.left_side", "boolean"),
    _A("lower", "triangular_solve.lower", "boolean"),
    _A("unit_diagonal", "triangular_solve.unit_diagonal", "boolean"),
    _A("transpose_a", "triangular_solve.transpose_a", "word", ("triangular-solve",)),
    _A("channel_id", "channel_id", "integer"),
    _A("replica_groups", "devices", "devices",
       ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-broadcast")),
    _A("use_global_device_ids", "use_global_device_ids", "boolean"),
    _A("source_target_pairs", "source_target_pairs", "pairs", ("collective-permute",)),
    _A("is_host_transfer", "is_host_transfer", "boolean"),
    _A("delta", "delta", "integer"),
    _A("kind", "fusion_kind", "word", ("fusion",)),
    _A("is_composite", "is_composite", "boolean"),
    _A("async_execution_thread", "async_execution_thread", "string"),
    _A("custom_call_target", "custom_call_target", "string", ("custom-call",)),
    _A("operand_layout_constraints", "operand_shapes_with_layout", "shapes"),
    _A("custom_call_has_side_effect", "custom_call_has_side_effect", "boolean"),
    _A("output_to_operand_aliasing", "output_aliasing", "aliases"),
    _A("schedule", "custom_call_schedule", "word"),
    _A("api_version", "custom_call_api_version", "word"),
    _A("padding_type", "padding_type", "word"),
    _A("infeed_config", "infeed_config", "bytes"),
    _A("outfeed_config", "outfeed_config", "bytes"),
    _A("outfeed_shape", "outfeed_shape", "shape"),
    _A("operand_precision", "operand_precision", "words"),
    _A("dot_algorithm", "algorithm", "integer"),
    _A("sharding", "sharding", "sharding"),
    _A("frontend_attributes", "frontend_attributes", "texts"),
    _A("metadata", "metadata", "metadata"),
    _A("backend_config", "backend_config", "bytes"),
)
# fmt: on

# Attributes whose values are computations: the place among those that an instruction calls.
CALLED = {
    "to_apply": 0, "calls": 0, "called_computation": 0, "body": 0, "condition": 1, "select": 0, "scatter": 1,
    "true_computation": 0, "false_computation": 1, "branch_computations": 0,
}  # fmt: skip
# Read over: they say nothing of what an instruction computes.
IGNORED = frozenset(("origin", "statistics", "result_accuracy", "largest_k"))

_WORDS = {
    "transpose_a": ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
    "schedule": ("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"),
    "api_version": ("API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
                    "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"),
    "padding_type": ("PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"),
}  # fmt: skip
_NEUTRAL = Instruction("", "", Shape(PrimitiveType.TOKEN))


def _raw(instruction: Instruction, attribute: TextAttribute) -> Any:
    if instruction.opcode == "ragged-dot" and attribute.field.startswith("dot."):
        return getattr(instruction.ragged_dot.dot_dimension_numbers, attribute.field.removeprefix("dot."))
    if instruction.opcode == "scatter" and attribute.field == "gather.index_vector_dim":
        return instruction.scatter.index_vector_dim
    if instruction.opcode == "cholesky" and attribute.word == "lower":
        return instruction.cholesky_lower
    value: Any = instruction
    for part in attribute.field.split("."):
        value = getattr(value, part)
    return value


def value_of(instruction: Instruction, attribute: TextAttribute) -> Any:
    """Return the value of an attribute as its codec prints it."""
    value = _raw(instruction, attribute)
    if attribute.word in _WORDS:
        words = _WORDS[attribute.word]
        return words[value] if 0 <= value < len(words) else words[0]
    if attribute.word == "iota_dimension":
        return (value or (0,))[0]
    return value


def is_shown(instruction: Instruction, attribute: TextAttribute) -> bool:
    """Return whether an instruction prints an attribute."""
    if instruction.opcode in attribute.shown_by:
        return True
    if attribute.only or (attribute.word == "dimensions" and instruction.opcode == "iota"):
        return False
    if attribute.word == "index_vector_dim":
        return instruction.opcode == "scatter"
    if attribute.word == "api_version":
        return instruction.custom_call_api_version > 1  # 1 is what a text means that says nothing
    if attribute.word == "type":
        return instruction.comparison_type == "TOTALORDER"  # the others follow from the operands
    return bool(_raw(instruction, attribute) != _raw(_NEUTRAL, attribute))


def assign(instruction: Instruction, attribute: TextAttribute, value: Any) -> bool:
    """Set an attribute as its codec read it; False where the value is none of its words."""
    import dataclasses  # deferred: start-up

    if attribute.word in _WORDS:
        if value not in _WORDS[attribute.word]:
            return False
        value = _WORDS[attribute.word].index(value)
    if attribute.word == "iota_dimension":
        value = (value,)
    field = attribute.field
    if instruction.opcode == "scatter" and field == "gather.index_vector_dim":
        field = "scatter.index_vector_dim"
    if instruction.opcode == "cholesky" and attribute.word == "lower":
        field = "cholesky_lower"
    if instruction.opcode == "ragged-dot" and field.startswith("dot."):
        inner = dataclasses.replace(instruction.ragged_dot.dot_dimension_numbers, **{field.removeprefix("dot."): value})
        instruction.ragged_dot = dataclasses.replace(instruction.ragged_dot, dot_dimension_numbers=inner)
        return True
    if "." in field:
        whole, part = field.split(".")
        setattr(instruction, whole, dataclasses.replace(getattr(instruction, whole), **{part: value}))
    else:
        setattr(instruction, field, value)
        if attribute.word == "operand_layout_constraints":
            instruction.constrain_layout = True
    return True
