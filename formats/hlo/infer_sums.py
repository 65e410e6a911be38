"""Shapes of sums, windows, gathers, scatters, sorts and collectives: the rules that need more than a line."""

from __future__ import annotations

from formats.hlo.attributes import DotDimensionNumbers
from formats.hlo.infer import MismatchError, body_takes, distinct, need, rule
from formats.hlo.module import Instruction
from formats.hlo.shapes import PrimitiveType, Shape, tuple_of

__all__: list[str] = []


def _dot_dimensions(a: Shape, b: Shape, n: DotDimensionNumbers) -> tuple[int, ...]:
    distinct((*n.lhs_batch_dimensions, *n.lhs_contracting_dimensions), a.rank, "dimensions of a dot's left side")
    distinct((*n.rhs_batch_dimensions, *n.rhs_contracting_dimensions), b.rank, "dimensions of a dot's right side")
    for left, right, what in ((n.lhs_batch_dimensions, n.rhs_batch_dimensions, "batch"),
                              (n.lhs_contracting_dimensions, n.rhs_contracting_dimensions, "contracting")):  # fmt: skip
        need([a.dimensions[d] for d in left] == [b.dimensions[d] for d in right],
             f"{what} dimensions of {a} and {b} differ")  # fmt: skip
    used_a = {*n.lhs_batch_dimensions, *n.lhs_contracting_dimensions}
    used_b = {*n.rhs_batch_dimensions, *n.rhs_contracting_dimensions}
    return (*(a.dimensions[d] for d in n.lhs_batch_dimensions),
            *(size for d, size in enumerate(a.dimensions) if d not in used_a),
            *(size for d, size in enumerate(b.dimensions) if d not in used_b))  # fmt: skip


@rule("dot")
def _dot(instruction: Instruction, shapes: list[Shape]) -> Shape:
    need(all(shape.is_array for shape in shapes), "operands of a dot must be arrays")
    # The element type is the module's choice: bf16 operands may be summed to fp32 (preferred_element_type).
    return Shape(instruction.shape.element_type, _dot_dimensions(shapes[0], shapes[1], instruction.dot))


@rule("ragged-dot")
def _ragged_dot(instruction: Instruction, shapes: list[Shape]) -> Shape | None:
    numbers = instruction.ragged_dot
    need(len(numbers.lhs_ragged_dimensions) == 1, "a ragged dot has one ragged dimension")
    distinct(numbers.lhs_ragged_dimensions, shapes[0].rank, "ragged dimensions")
    distinct(numbers.rhs_group_dimensions, shapes[1].rank, "group dimensions")
    inner = numbers.dot_dimension_numbers
    ragged = numbers.lhs_ragged_dimensions[0]
    need(shapes[2].rank >= 1 and shapes[2].element_type.is_integral, "sizes of groups are no list of integers")
    # Groups along what is summed or batched need no right side of their own, and what comes out depends on the form.
    if ragged in inner.lhs_contracting_dimensions or ragged in inner.lhs_batch_dimensions:
        need(not numbers.rhs_group_dimensions, "this form of a ragged dot has no group dimension")
        _dot_dimensions(shapes[0], shapes[1], inner)
        return None
    need(len(numbers.rhs_group_dimensions) == 1, "this form of a ragged dot has one group dimension")
    group = numbers.rhs_group_dimensions[0]
    need(shapes[1].dimensions[group] == shapes[2].dimensions[-1],
         f"{shapes[1].dimensions[group]} right sides for {shapes[2].dimensions[-1]} groups")  # fmt: skip
    # Each row of the left side meets the right side of its group: a plain dot with one right side without its groups.
    right = shapes[1].with_dimensions(tuple(s for d, s in enumerate(shapes[1].dimensions) if d != group))
    moved = DotDimensionNumbers(
        inner.lhs_contracting_dimensions,
        tuple(dim - (dim > group) for dim in inner.rhs_contracting_dimensions),
        inner.lhs_batch_dimensions,
        tuple(dim - (dim > group) for dim in inner.rhs_batch_dimensions),
    )
    return Shape(instruction.shape.element_type, _dot_dimensions(shapes[0], right, moved))


def _window(instruction: Instruction, rank: int) -> None:
    need(len(instruction.window) == rank, f"a window of {len(instruction.window)} dimensions over {rank}")
    for each in instruction.window:
        need(each.size > 0 and each.stride > 0 and each.window_dilation > 0 and each.base_dilation > 0,
             "a window's size, stride or dilation is not positive")  # fmt: skip


@rule("convolution")
def _convolution(instruction: Instruction, shapes: list[Shape]) -> Shape:
    base, kernel = shapes
    n = instruction.convolution
    spatial = len(n.input_spatial_dimensions)
    need(spatial == len(n.kernel_spatial_dimensions) == len(n.output_spatial_dimensions), "labels of different lengths")
    distinct((n.input_batch_dimension, n.input_feature_dimension, *n.input_spatial_dimensions), base.rank, "labels")
    distinct((n.kernel_input_feature_dimension, n.kernel_output_feature_dimension, *n.kernel_spatial_dimensions),
              kernel.rank, "labels")  # fmt: skip
    distinct((n.output_batch_dimension, n.output_feature_dimension, *n.output_spatial_dimensions),
              spatial + 2, "labels")  # fmt: skip
    need(base.rank == kernel.rank == spatial + 2, "a convolution's sides have different ranks")
    _window(instruction, spatial)
    features, batches = instruction.feature_group_count, instruction.batch_group_count
    inputs = base.dimensions[n.input_feature_dimension]
    outputs = kernel.dimensions[n.kernel_output_feature_dimension]
    batch = base.dimensions[n.input_batch_dimension]
    # Groups of batches are what the gradient of grouped features looks like; XLA has no convolution with both.
    need(features > 0 and batches > 0 and (features == 1 or batches == 1), "groups of features and of batches")
    need(inputs == kernel.dimensions[n.kernel_input_feature_dimension] * features,
         f"{inputs} input features in {features} groups")  # fmt: skip
    need(outputs % (features * batches) == 0 and batch % batches == 0, "groups do not divide features or batches")
    sizes = [0] * (spatial + 2)
    sizes[n.output_batch_dimension] = batch // batches
    sizes[n.output_feature_dimension] = outputs
    for dim, window in enumerate(instruction.window):
        need(window.size == kernel.dimensions[n.kernel_spatial_dimensions[dim]], "a window of another size than kernel")
        sizes[n.output_spatial_dimensions[dim]] = window.positions(base.dimensions[n.input_spatial_dimensions[dim]])
    return Shape(instruction.shape.element_type, tuple(sizes))


def _folded(instruction: Instruction, shapes: list[Shape], dimensions: tuple[int, ...]) -> Shape:
    """Check operands, initial values and body of a fold, and return its result."""
    need(len(shapes) % 2 == 0, "other initial values than operands")
    count = len(shapes) // 2
    need(all(each.dimensions == shapes[0].dimensions for each in shapes[:count]), "operands of different dimensions")
    need(all(each.is_scalar for each in shapes[count:]), "an initial value is no scalar")
    body = instruction.to_apply
    found = [each.shape for each in body.parameters]
    need(len(found) == 2 * count and all(each.is_scalar for each in found), f"%{body.name} does not fold {count}")
    result = body.root.shape
    parts = result.tuple_shapes if result.is_tuple else (result,)
    need(len(parts) == count, f"%{body.name} gives {len(parts)} values for {count}")
    # Types are the body's: it may fold bf16 in fp32.
    folded = [part.with_dimensions(dimensions) for part in parts]
    return tuple_of(*folded) if instruction.shape.is_tuple else folded[0]


@rule("reduce")
def _reduce(instruction: Instruction, shapes: list[Shape]) -> Shape:
    distinct(instruction.dimensions, shapes[0].rank, "dimensions")
    kept = tuple(size for dim, size in enumerate(shapes[0].dimensions) if dim not in instruction.dimensions)
    return _folded(instruction, shapes, kept)


@rule("reduce-window")
def _reduce_window(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _window(instruction, shapes[0].rank)
    sizes = [each.positions(size) for each, size in zip(instruction.window, shapes[0].dimensions, strict=True)]
    return _folded(instruction, shapes, tuple(sizes))


@rule("select-and-scatter")
def _select_and_scatter(instruction: Instruction, shapes: list[Shape]) -> Shape:
    values, source, initial = shapes
    _window(instruction, values.rank)
    sizes = tuple(each.positions(size) for each, size in zip(instruction.window, values.dimensions, strict=True))
    need(source.dimensions == sizes, f"{len(sizes)} dimensions of places, sources {source}")
    need(initial.is_scalar, "the initial value is no scalar")
    kind = Shape(values.element_type)
    body_takes(instruction.select, [kind, kind], "select")
    body_takes(instruction.scatter_body, [kind, kind], "scatter")
    return values


@rule("map")
def _map(instruction: Instruction, shapes: list[Shape]) -> Shape:
    need(all(each.dimensions == shapes[0].dimensions for each in shapes), "operands of different dimensions")
    body_takes(instruction.to_apply, [Shape(each.element_type) for each in shapes], "mapped computation")
    return instruction.to_apply.root.shape.with_dimensions(shapes[0].dimensions)


@rule("gather")
def _gather(instruction: Instruction, shapes: list[Shape]) -> Shape:
    values, indices = shapes
    n, sizes = instruction.gather, instruction.gather_slice_sizes
    need(indices.element_type.is_integral, "indices are no integers")
    need(0 <= n.index_vector_dim <= indices.rank, "the indices' dimension is not there")
    distinct((*n.collapsed_slice_dims, *n.operand_batching_dims), values.rank, "collapsed dimensions")
    distinct((*n.start_index_map, *n.operand_batching_dims), values.rank, "indexed dimensions")
    need(len(sizes) == values.rank and all(0 <= a <= b for a, b in zip(sizes, values.dimensions, strict=True)),
         f"slices {list(sizes)[:8]} of {values}")  # fmt: skip
    # A dimension one behind the last says that each number is an index vector by itself.
    length = indices.dimensions[n.index_vector_dim] if n.index_vector_dim < indices.rank else 1
    need(len(n.start_index_map) == length, f"index vectors of {length} for {len(n.start_index_map)} dimensions")
    need(all(sizes[dim] <= 1 for dim in (*n.collapsed_slice_dims, *n.operand_batching_dims)), "a slice is not dropped")
    need(len(n.operand_batching_dims) == len(n.start_indices_batching_dims), "batch dimensions differ")
    away = {*n.collapsed_slice_dims, *n.operand_batching_dims}
    offsets = [size for dim, size in enumerate(sizes) if dim not in away]
    batch = [size for dim, size in enumerate(indices.dimensions) if dim != n.index_vector_dim]
    rank = len(offsets) + len(batch)
    distinct(n.offset_dims, rank, "offset dimensions")
    need(len(n.offset_dims) == len(offsets), "offset dimensions are other than the slices have")
    distinct(n.start_indices_batching_dims, indices.rank, "batch dimensions")
    need(n.index_vector_dim not in n.start_indices_batching_dims, "index vectors along a batch dimension")
    # Offset dimensions have the places they name, batch dimensions the others in their order.
    result, rest = [0] * rank, iter(batch)
    for dim in range(rank):
        result[dim] = offsets[n.offset_dims.index(dim)] if dim in n.offset_dims else next(rest)
    return values.with_dimensions(tuple(result))


@rule("scatter")
def _scatter(instruction: Instruction, shapes: list[Shape]) -> Shape:
    need(len(shapes) % 2 == 1, "other updates than operands")
    count = len(shapes) // 2
    values, indices, updates = shapes[0], shapes[count], shapes[count + 1]
    n = instruction.scatter
    need(indices.element_type.is_integral, "indices are no integers")
    need(0 <= n.index_vector_dim <= indices.rank, "the indices' dimension is not there")
    distinct((*n.inserted_window_dims, *n.input_batching_dims), values.rank, "inserted dimensions")
    distinct((*n.scatter_dims_to_operand_dims, *n.input_batching_dims), values.rank, "indexed dimensions")
    distinct(n.update_window_dims, updates.rank, "window dimensions")
    distinct(n.scatter_indices_batching_dims, indices.rank, "batch dimensions")
    need(n.index_vector_dim not in n.scatter_indices_batching_dims, "index vectors along a batch dimension")
    need(len(n.input_batching_dims) == len(n.scatter_indices_batching_dims), "batch dimensions differ")
    length = indices.dimensions[n.index_vector_dim] if n.index_vector_dim < indices.rank else 1
    need(len(n.scatter_dims_to_operand_dims) == length, f"index vectors of {length}")
    away = {*n.inserted_window_dims, *n.input_batching_dims}
    window = [size for dim, size in enumerate(values.dimensions) if dim not in away]
    need(len(window) == len(n.update_window_dims), "windows of other dimensions than the operand has")
    need(all(updates.dimensions[d] <= size for d, size in zip(n.update_window_dims, window, strict=True)),
         f"a window of {updates} is larger than {values}")  # fmt: skip
    batch = [size for dim, size in enumerate(indices.dimensions) if dim != n.index_vector_dim]
    stated = [size for dim, size in enumerate(updates.dimensions) if dim not in n.update_window_dims]
    need(batch == stated, f"updates for {stated} index vectors, indices for {batch}")
    need(all(each.dimensions == values.dimensions for each in shapes[:count]), "operands of different dimensions")
    need(all(each.dimensions == updates.dimensions for each in shapes[count + 1 :]), "updates of different dimensions")
    taken = instruction.to_apply.parameters
    need(len(taken) == 2 * count and all(each.shape.is_scalar for each in taken), "the body does not take values and "
         "updates")  # fmt: skip
    return tuple_of(*shapes[:count]) if instruction.shape.is_tuple else values


@rule("sort")
def _sort(instruction: Instruction, shapes: list[Shape]) -> Shape:
    need(len(instruction.dimensions) == 1, "sort along other than one dimension")
    distinct(instruction.dimensions, shapes[0].rank, "dimensions")
    need(all(each.dimensions == shapes[0].dimensions for each in shapes), "operands of different dimensions")
    # It is given two elements of each operand side by side: the keys may be any of them.
    body_takes(instruction.to_apply, [Shape(each.element_type) for each in shapes for _ in range(2)], "comparator")
    need(instruction.to_apply.root.shape == Shape(PrimitiveType.PRED), "the comparator gives no predicate")
    return tuple_of(*shapes) if instruction.shape.is_tuple else shapes[0]


@rule("topk")
def _topk(instruction: Instruction, shapes: list[Shape]) -> Shape:
    values = shapes[0]
    need(values.rank > 0 and 0 <= instruction.k <= values.dimensions[-1], f"the {instruction.k} largest of {values}")
    kept = values.with_dimensions((*values.dimensions[:-1], instruction.k))
    return tuple_of(kept, kept.with_type(PrimitiveType.S32))


@rule("fft")
def _fft(instruction: Instruction, shapes: list[Shape]) -> Shape:
    lengths, values = instruction.fft_length, shapes[0]
    need(instruction.fft_type in ("FFT", "IFFT", "RFFT", "IRFFT"), "no such transform")
    need(0 < len(lengths) <= values.rank and all(length > 0 for length in lengths), "lengths of a transform")
    before = values.dimensions[: values.rank - len(lengths)]
    kind = values.element_type
    if instruction.fft_type == "RFFT":
        whole = {PrimitiveType.F32: PrimitiveType.C64, PrimitiveType.F64: PrimitiveType.C128}.get(kind)
        need(values.dimensions[len(before) :] == lengths, "a transform of another length than its operand")
        if whole is None:
            raise MismatchError(f"a real transform of {kind.text}")
        # Half of the spectrum of real numbers mirrors the other half.
        return Shape(whole, (*before, *lengths[:-1], lengths[-1] // 2 + 1))
    need(kind.is_complex, f"a transform of {kind.text}")
    if instruction.fft_type == "IRFFT":
        need(
            values.dimensions[len(before) :] == (*lengths[:-1], lengths[-1] // 2 + 1),
            "half a spectrum of another length",
        )
        return Shape(PrimitiveType.F32 if kind is PrimitiveType.C64 else PrimitiveType.F64, (*before, *lengths))
    need(values.dimensions[len(before) :] == lengths, "a transform of another length than its operand")
    return values


@rule("triangular-solve")
def _triangular_solve(instruction: Instruction, shapes: list[Shape]) -> Shape:
    a, b = shapes
    need(a.rank >= 2 and a.rank == b.rank and a.dimensions[-1] == a.dimensions[-2], f"a triangular system of {a}")
    need(1 <= instruction.triangular_solve.transpose_a <= 3, "no such transpose of a triangular matrix")
    side = b.dimensions[-2] if instruction.triangular_solve.left_side else b.dimensions[-1]
    need(a.dimensions[:-2] == b.dimensions[:-2] and side == a.dimensions[-1], f"{b} is no right side of {a}")
    return b


@rule("cholesky")
def _cholesky(_: Instruction, shapes: list[Shape]) -> Shape:
    need(shapes[0].rank >= 2 and shapes[0].dimensions[-1] == shapes[0].dimensions[-2], f"a factor of {shapes[0]}")
    return shapes[0]


@rule("rng-bit-generator")
def _random(instruction: Instruction, shapes: list[Shape]) -> Shape:
    stated = instruction.shape
    need(stated.is_tuple and len(stated.tuple_shapes) == 2, "random bits come with the next state")
    state = shapes[0]
    # Key and counter: 64 bits of each, or a counter of 128, which Philox has.
    need(state.rank == 1 and state.nbytes in (16, 24), f"a state of {state}")
    need(instruction.rng_algorithm in ("rng_default", "rng_three_fry", "rng_philox"), "no such algorithm")
    return tuple_of(state, stated.tuple_shapes[1])


def _channels(instruction: Instruction, shapes: list[Shape]) -> tuple[int, tuple[int, ...]]:
    feature = instruction.feature_index
    need(0 <= feature < shapes[0].rank, "the feature dimension is not there")
    size = (shapes[0].dimensions[feature],)
    return feature, size


@rule("batch-norm-training", "batch-norm-inference", "batch-norm-grad")
def _batch_norm(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _, size = _channels(instruction, shapes)
    vectors = shapes[1:4] if instruction.opcode == "batch-norm-grad" else shapes[1:]
    need(all(each.dimensions == size for each in vectors), f"vectors of other than {size[0]} features")
    vector = shapes[1]
    return shapes[0] if instruction.opcode == "batch-norm-inference" else tuple_of(shapes[0], vector, vector)


@rule("all-reduce", "collective-permute", "collective-broadcast")
def _kept(instruction: Instruction, shapes: list[Shape]) -> Shape:
    return tuple_of(*shapes) if instruction.shape.is_tuple else shapes[0]


@rule("all-to-all")
def _exchanged(instruction: Instruction, shapes: list[Shape]) -> Shape | None:
    """Return the operands' shapes where each goes to another rank; of one that is cut, the result says how."""
    need(all(shape.is_array for shape in shapes), "operands must be arrays")
    if instruction.shape.is_tuple:
        return tuple_of(*shapes)
    need(len(shapes) == 1, f"one result of {len(shapes)} operands")
    return None


@rule("all-gather", "reduce-scatter")
def _resized(instruction: Instruction, shapes: list[Shape]) -> Shape | None:
    need(len(instruction.dimensions) == 1, "along other than one dimension")
    distinct(instruction.dimensions, shapes[0].rank, "dimensions")
    ranks = {len(group) for group in instruction.replica_groups}
    need(len(ranks) <= 1, "groups of different sizes")
    results = len(instruction.shape.tuple_shapes) if instruction.shape.is_tuple else 1
    need(results == len(shapes), f"{results} results of {len(shapes)} operands")
    # No groups mean one of all ranks, and the module does not say how many there are.
    if not ranks or instruction.shape.is_tuple:
        return None
    count, along = ranks.pop(), instruction.dimensions[0]
    size = shapes[0].dimensions[along]
    if instruction.opcode == "reduce-scatter":
        need(count > 0 and size % count == 0, f"{size} elements among {count}")
    sizes = list(shapes[0].dimensions)
    sizes[along] = size * count if instruction.opcode == "all-gather" else size // count
    return shapes[0].with_dimensions(tuple(sizes))
