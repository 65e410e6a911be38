"""Which attribute of an instruction is which field of its proto: the table that reader and writer share."""

from __future__ import annotations

from formats.hlo.attributes import (
    ConvolutionDimensionNumbers,
    DotDimensionNumbers,
    GatherDimensionNumbers,
    Metadata,
    ScatterDimensionNumbers,
    TriangularSolveOptions,
)
from formats.named_tuple import NamedTuple

__all__ = ["ALIAS_KINDS", "ENUMERATIONS", "NUMBER_LISTS", "OPAQUE", "PRECISIONS", "SCALARS", "SHARED", "VALUES"]

# Fields that both sides call the same and that hold one number, text or bytes.
SCALARS = (
    "name", "opcode", "id", "parameter_number", "tuple_index", "exponent_bits", "mantissa_bits", "epsilon",
    "feature_index", "comparison_direction", "comparison_type", "is_stable", "k", "largest", "custom_call_target",
    "backend_config", "custom_call_has_side_effect", "custom_call_api_version", "custom_call_schedule",
    "constrain_layout", "channel_id", "use_global_device_ids", "is_host_transfer", "infeed_config", "outfeed_config",
    "delta", "padding_type", "fusion_kind", "is_composite", "async_execution_thread", "indices_are_sorted",
    "unique_indices",
)  # fmt: skip

NUMBER_LISTS = ("dimensions", "gather_slice_sizes", "dynamic_slice_sizes", "fft_length")


class Value(NamedTuple):
    """An attribute that is a message of its own: its field, and the value's class."""

    attribute: str
    field: str
    kind: type


VALUES = (
    Value("metadata", "metadata", Metadata),
    Value("dot", "dot_dimension_numbers", DotDimensionNumbers),
    Value("convolution", "convolution_dimension_numbers", ConvolutionDimensionNumbers),
    Value("gather", "gather_dimension_numbers", GatherDimensionNumbers),
    Value("scatter", "scatter_dimension_numbers", ScatterDimensionNumbers),
    Value("triangular_solve", "triangular_solve_options", TriangularSolveOptions),
)

# Enumerations are words here, as HLO text has them; the position is the number.
ENUMERATIONS = {
    "fft_type": ("FFT", "IFFT", "RFFT", "IRFFT"),
    "distribution": ("rng_invalid", "rng_uniform", "rng_normal"),
    "rng_algorithm": ("rng_default", "rng_three_fry", "rng_philox"),
}
PRECISIONS = ("default", "high", "highest", "packed_nibble")
ALIAS_KINDS = ("undefined-alias", "may-alias", "must-alias")

# Messages that are kept as their bytes and written again; empty ones, which XLA writes everywhere, go.
OPAQUE = ("statistics_viz", "original_value", "result_accuracy")

# Fields that reader and writer treat in code of their own.
SHARED = (
    "shape", "literal", "window", "slice_dimensions", "padding_config", "operand_ids", "control_predecessor_ids",
    "called_computation_ids", "sharding", "frontend_attributes", "replica_groups", "collective_device_list",
    "iota_collective_device_list", "mesh_axes_replica_group_list", "source_target_pairs", "precision_config",
    "operand_shapes_with_layout", "cholesky_options",
    "output_operand_aliasing", "outfeed_shape", "ragged_dot_dimension_numbers", "feature_group_count",
    "batch_group_count",
)  # fmt: skip
