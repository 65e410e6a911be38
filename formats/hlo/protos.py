"""The messages of XLA's HLO protos: names, numbers and kinds of fields as data, classes made from them at first use.

Facts of the schema `xla/service/hlo.proto` and `xla/xla_data.proto` of openxla/xla (compiler.md 1.1). Nested messages
have names of their own here, enumerations are int32, maps are repeated entries: the bytes are the same. Packed floating
point numbers are declared as bytes, so that a large constant is not a list of Python numbers on the way.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from formats.messages import message_types

__all__ = ["hlo_messages"]

_DATA = """
message TileProto { repeated int64 dimensions = 1; }
message LayoutProto { repeated int64 minor_to_major = 1; repeated TileProto tiles = 6;
  int64 element_size_in_bits = 7; int64 memory_space = 8; }
message ShapeProto { int32 element_type = 2; repeated int64 dimensions = 3; repeated bool is_dynamic_dimension = 6;
  repeated ShapeProto tuple_shapes = 4; LayoutProto layout = 5; }
message ProgramShapeProto { repeated ShapeProto parameters = 1; ShapeProto result = 2;
  repeated string parameter_names = 3; }
message LiteralProto { ShapeProto shape = 1; repeated LiteralProto tuple_literals = 10;
  repeated bytes preds = 2; repeated int32 s32s = 4; repeated int64 s64s = 5; repeated uint32 u32s = 6;
  repeated uint64 u64s = 7; repeated bytes f32s = 8; repeated bytes f64s = 9; repeated bytes c64s = 12;
  repeated bytes c128s = 18; bytes u8s = 3; bytes s8s = 15; bytes u16s = 16; bytes s16s = 17; bytes f16s = 11;
  bytes bf16s = 13; bytes s1s = 30; bytes u1s = 31; bytes s2s = 26; bytes u2s = 27; bytes s4s = 21; bytes u4s = 22;
  bytes f4e2m1fns = 32; bytes f8e3m4s = 29; bytes f8e4m3b11fnuzs = 23; bytes f8e4m3fns = 20; bytes f8e4m3fnuzs = 25;
  bytes f8e4m3s = 28; bytes f8e5m2fnuzs = 24; bytes f8e5m2s = 19; bytes f8e8m0fnus = 33; }
message OpMetadata { string op_type = 1; string op_name = 2; string source_file = 3; int32 source_line = 4;
  int32 source_end_line = 17; int32 source_column = 18; int32 source_end_column = 19; string deduplicated_name = 12;
  int32 stack_frame_id = 15; string scheduling_name = 16; }
message StringEntry { string key = 1; string value = 2; }
message FrontendAttributes { repeated StringEntry map = 1; }
message PaddingConfigDimension { int64 edge_padding_low = 1; int64 edge_padding_high = 2; int64 interior_padding = 3; }
message PaddingConfig { repeated PaddingConfigDimension dimensions = 1; }
message WindowDimension { int64 size = 1; int64 stride = 2; int64 padding_low = 3; int64 padding_high = 4;
  int64 window_dilation = 5; int64 base_dilation = 6; bool window_reversal = 7; }
message Window { repeated WindowDimension dimensions = 1; }
message GatherDimensionNumbers { repeated int64 offset_dims = 1; repeated int64 collapsed_slice_dims = 2;
  repeated int64 start_index_map = 3; int64 index_vector_dim = 4; repeated int64 operand_batching_dims = 5;
  repeated int64 start_indices_batching_dims = 6; }
message ScatterDimensionNumbers { repeated int64 update_window_dims = 1; repeated int64 inserted_window_dims = 2;
  repeated int64 scatter_dims_to_operand_dims = 3; int64 index_vector_dim = 4; repeated int64 input_batching_dims = 5;
  repeated int64 scatter_indices_batching_dims = 6; }
message ConvolutionDimensionNumbers { int64 input_batch_dimension = 7; int64 input_feature_dimension = 8;
  repeated int64 input_spatial_dimensions = 11; int64 kernel_input_feature_dimension = 3;
  int64 kernel_output_feature_dimension = 4; repeated int64 kernel_spatial_dimensions = 6;
  int64 output_batch_dimension = 9; int64 output_feature_dimension = 10;
  repeated int64 output_spatial_dimensions = 12; }
message DotDimensionNumbers { repeated int64 lhs_contracting_dimensions = 1;
  repeated int64 rhs_contracting_dimensions = 2; repeated int64 lhs_batch_dimensions = 3;
  repeated int64 rhs_batch_dimensions = 4; }
message RaggedDotDimensionNumbers { DotDimensionNumbers dot_dimension_numbers = 1;
  repeated int64 lhs_ragged_dimensions = 2; repeated int64 rhs_group_dimensions = 3; }
message TriangularSolveOptions { bool left_side = 1; bool lower = 2; bool unit_diagonal = 3; int32 transpose_a = 4; }
message CholeskyOptions { bool lower = 1; }
message OpSharding { int32 type = 1; ShapeProto tile_shape = 2; repeated int64 tile_assignment_dimensions = 3;
  repeated int64 tile_assignment_devices = 4; repeated OpSharding tuple_shardings = 5;
  bool replicate_on_last_tile_dim = 6; repeated int32 last_tile_dims = 8; repeated int64 iota_reshape_dims = 9;
  repeated int32 iota_transpose_perm = 10; bool is_shard_group = 11; int64 shard_group_id = 12;
  int32 shard_group_type = 13; }
message ReplicaGroup { repeated int64 replica_ids = 1; }
message IotaReplicaGroupListProto { int64 num_replica_groups = 1; int64 num_devices_per_group = 2;
  repeated int64 iota_reshape_dims = 3; repeated int32 iota_transpose_perm = 4; }
message CollectiveDeviceListProto { repeated ReplicaGroup replica_groups = 1;
  IotaReplicaGroupListProto iota_replica_group_list = 2; }
message MeshAxis { string name = 1; int64 size = 2; }
message MeshProto { repeated MeshAxis axes = 1; repeated int64 device_ids = 2; }
message SubAxis { int64 pre_size = 1; int64 size = 2; }
message AxisRefProto { int64 mesh_axis_index = 1; SubAxis sub_axis_info = 2; }
message MeshAxesReplicaGroupListProto { MeshProto mesh = 1; repeated AxisRefProto axes = 2; }
message SourceTarget { int64 source = 1; int64 target = 2; }
message PrecisionConfig { repeated int32 operand_precision = 1; int32 algorithm = 2; }
message OutputOperandAliasing { repeated int64 output_shape_index = 1; int64 operand_index = 2;
  repeated int64 operand_shape_index = 3; }
"""

_MODULE = """
message SliceDimensions { int64 start = 1; int64 limit = 2; int64 stride = 3; }
message HloInstructionProto { string name = 1; string opcode = 2; ShapeProto shape = 3; OpMetadata metadata = 7;
  LiteralProto literal = 8; int64 parameter_number = 9; string fusion_kind = 11; int64 tuple_index = 13;
  repeated int64 dimensions = 14; Window window = 15; ConvolutionDimensionNumbers convolution_dimension_numbers = 16;
  int64 feature_group_count = 50; int64 batch_group_count = 58; repeated SliceDimensions slice_dimensions = 17;
  int32 exponent_bits = 18; int32 mantissa_bits = 19; repeated int64 dynamic_slice_sizes = 20;
  PaddingConfig padding_config = 21; bytes outfeed_config = 22; int32 distribution = 23; float epsilon = 24;
  int64 feature_index = 25; int64 channel_id = 26; bytes infeed_config = 27; string custom_call_target = 28;
  ShapeProto outfeed_shape = 29; DotDimensionNumbers dot_dimension_numbers = 30;
  RaggedDotDimensionNumbers ragged_dot_dimension_numbers = 90; int32 fft_type = 31; repeated int64 fft_length = 32;
  string comparison_direction = 63; GatherDimensionNumbers gather_dimension_numbers = 33;
  repeated int64 gather_slice_sizes = 34; int64 id = 35; repeated int64 operand_ids = 36;
  repeated int64 control_predecessor_ids = 37; repeated int64 called_computation_ids = 38; OpSharding sharding = 40;
  bytes backend_config = 43; int64 all_reduce_id = 45; bool is_host_transfer = 47;
  ScatterDimensionNumbers scatter_dimension_numbers = 48; repeated ReplicaGroup replica_groups = 49;
  PrecisionConfig precision_config = 51; repeated SourceTarget source_target_pairs = 52; bool constrain_layout = 56;
  repeated ShapeProto operand_shapes_with_layout = 57; TriangularSolveOptions triangular_solve_options = 59;
  bool is_stable = 60; CholeskyOptions cholesky_options = 62; bool custom_call_has_side_effect = 65; int64 delta = 66;
  bool indices_are_sorted = 67; FrontendAttributes frontend_attributes = 68; bool unique_indices = 69;
  int32 rng_algorithm = 70; bool use_global_device_ids = 71; string comparison_type = 72;
  repeated OutputOperandAliasing output_operand_aliasing = 74; int32 padding_type = 75; int32 custom_call_schedule = 76;
  int32 custom_call_api_version = 77; string async_execution_thread = 79; int64 k = 81; bool largest = 85;
  CollectiveDeviceListProto collective_device_list = 87; bool is_composite = 89; bytes statistics_viz = 82;
  bytes original_value = 88; bytes result_accuracy = 91; IotaReplicaGroupListProto iota_collective_device_list = 92;
  MeshAxesReplicaGroupListProto mesh_axes_replica_group_list = 93; }
message HloComputationProto { string name = 1; repeated HloInstructionProto instructions = 2;
  ProgramShapeProto program_shape = 4; int64 id = 5; int64 root_id = 6; bool is_fusion_computation = 7;
  string execution_thread = 8; }
message AliasEntryProto { repeated int64 output_shape_index = 1; int64 parameter_number = 2;
  repeated int64 parameter_shape_index = 3; int32 kind = 4; }
message HloInputOutputAliasProto { repeated AliasEntryProto entries = 1; }
message FileLocation { int32 file_name_id = 1; int32 function_name_id = 2; int32 line = 3; int32 column = 4; }
message StackFrame { int32 file_location_id = 1; int32 parent_frame_id = 2; }
message StackFrameIndexProto { repeated string file_names = 1; repeated string function_names = 2;
  repeated FileLocation file_locations = 3; repeated StackFrame stack_frames = 4; }
message HloModuleProto { string name = 1; string entry_computation_name = 2;
  repeated HloComputationProto computations = 3;
  ProgramShapeProto host_program_shape = 4; int64 id = 5; int64 entry_computation_id = 6;
  HloInputOutputAliasProto input_output_alias = 8; bool is_dynamic = 11; StackFrameIndexProto stack_frame_index = 17;
  FrontendAttributes frontend_attributes = 19; }
message HloProto { HloModuleProto hlo_module = 1; }
message HloSnapshot { HloProto hlo = 1; repeated LiteralProto arguments = 2; LiteralProto result = 3;
  string execution_platform = 4; }
"""


@cache
def hlo_messages() -> dict[str, Any]:
    """Return the message classes by name."""
    return message_types("neurontools.xla", _DATA + _MODULE, proto3=True)
