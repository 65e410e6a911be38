"""From descriptor blocks to the parts of a transfer. Source: formats.md 3.6."""

from __future__ import annotations

from math import prod

from emulator.dma.moves import check_operation
from emulator.dma.transfer import Copies, Part, Side, check_sizes
from emulator.errors import LoadError
from emulator.placement import Placement
from formats.dtypes import Dtype
from formats.errors import FormatError, UnsupportedError
from formats.neff import Descriptor, DmaBlock, Subgraph

__all__ = ["block_parts", "descriptor_copies"]

_DIMENSIONS = 4


def block_parts(block: DmaBlock, subgraph: Subgraph, placement: Placement, core: int) -> tuple[Part, ...]:
    """Return operation and copies of every descriptor of a block.

    Raises LoadError naming a variable that does not exist, UnsupportedError naming an operation that is not modelled.
    """
    where = f"{subgraph.name}: DMA block {block.block_id} of {block.queue}"
    return tuple(_part(d, descriptor_copies(d, placement, subgraph, core, where), where) for d in block.descriptors)


def _part(d: Descriptor, copies: Copies, where: str) -> Part:
    """Return the operation of a descriptor. A constant without a type is to be ignored (formats.md 3.6)."""
    if d.transpose_op is not None:
        return _permutation(d, copies, where)
    constant = d.constant if d.op in ("min", "max") and d.constant_dtype is not None else None
    if d.op != "transpose" or not d.transpose_shape:
        return Part(d.op, copies, constant, d.scale)
    source, target = copies[0]
    element = source.dtype.size if d.transpose_element_size is None else d.transpose_element_size
    if source.dtype != target.dtype:
        raise LoadError(f"{where}: a transpose with a shape cannot cast {source.dtype.name} to {target.dtype.name}")
    if element < 1 or prod(d.transpose_shape) * element != source.nbytes:
        raise LoadError(
            f"{where}: a transpose to {list(d.transpose_shape)} of {element}-byte elements does not hold "
            f"{source.nbytes} bytes"
        )
    return Part(d.op, copies, None, 1.0, d.transpose_shape, element)


def _permutation(d: Descriptor, copies: Copies, where: str) -> Part:
    """Return the part of a transpose that names the order of dimensions that comes out.

    Established is WZXY alone, by files whose kernels are public: the shape is W, Z, Y, X, outermost first, and in every
    block of it Y and X change places. W and Z stay outside, so a block is W times Z blocks of Y by X.
    """
    if d.op != "transpose" or d.transpose_op != "WZXY":
        raise UnsupportedError(
            f"{where}: operation {d.op!r} with transpose_op {d.transpose_op!r} is not modelled: only transposes of "
            "order WZXY are established"
        )
    source, target = copies[0]
    shape, element = d.transpose_shape, d.transpose_element_size
    if len(shape) != _DIMENSIONS or min(shape) < 1 or element is None or element < 1:
        raise LoadError(
            f"{where}: a transpose to {d.transpose_op} needs a shape of {_DIMENSIONS} positive sizes and an element "
            f"size, not {list(shape)} and {element}"
        )
    if source.dtype != target.dtype:
        raise LoadError(f"{where}: a transpose with a shape cannot cast {source.dtype.name} to {target.dtype.name}")
    _, _, rows, columns = shape
    if source.nbytes % (prod(shape) * element):
        raise LoadError(
            f"{where}: {source.nbytes} bytes are no whole number of blocks {list(shape)} of {element}-byte elements"
        )
    # As the patterns of a transpose with a shape: what comes out, innermost first. Blocks stay outside both.
    return Part("transpose", copies, None, 1.0, (rows, 1, 1, columns), element)


def descriptor_copies(
    descriptor: Descriptor, placement: Placement, subgraph: Subgraph, core: int, where: str
) -> Copies:
    """Return the copies of one descriptor; several sources share the destination."""
    d = descriptor
    check_operation(d.op, max(len(d.sources), 1), d.transpose_shape)
    target = _variable_side(
        d.target, d.target_offset, d.target_sizes, d.target_steps, d.target_dtype, placement, subgraph, core, where
    )
    sources = [(s.variable, s.offset, s.sizes, s.steps, s.dtype) for s in d.sources] or [
        (d.source, d.source_offset, d.source_sizes, d.source_steps, d.source_dtype)
    ]
    copies = tuple((_variable_side(*source, placement, subgraph, core, where), target) for source in sources)
    if d.op == "copy" and Dtype.UINT8 in (copies[0][0].dtype, target.dtype):
        # Element types are optional and default to bytes: a copy with one of them named moves bytes.
        copies = tuple(
            (source._replace(dtype=Dtype.UINT8), target._replace(dtype=Dtype.UINT8)) for source, target in copies
        )
    for source, target in copies:
        check_sizes(source, target, where)
    return copies


def _variable_side(
    name: str,
    offset: int,
    sizes: tuple[int, ...],
    steps: tuple[int, ...],
    dtype_name: str,
    placement: Placement,
    subgraph: Subgraph,
    core: int,
    where: str,
) -> Side:
    try:
        dtype = Dtype.from_numpy_name(dtype_name)
    except FormatError:
        raise LoadError(f"{where}: unknown element type {dtype_name!r} of {name!r}") from None
    dims, run = _dims(sizes, steps, dtype.size, f"{where}: {name!r}")
    variable = subgraph.variables.get(name)
    if variable is None:
        raise LoadError(f"{where} names variable {name!r}, which the definition does not have")
    if variable.var_id in placement.state_buffers:
        return Side("SBUF", core, offset, dims, run, dtype)
    tensor = placement.by_name.get(name)
    if tensor is None:
        raise LoadError(f"{where} names variable {name!r} ({variable.kind}), which holds no data")
    return Side("HBM", core, tensor.address + offset, dims, run, dtype, tensor.limit)


def _dims(
    sizes: tuple[int, ...], steps: tuple[int, ...], element: int, where: str
) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return outer dimensions (outermost first) and the contiguous run of sizes and steps given innermost first."""
    if not sizes or min(sizes) <= 0:
        raise LoadError(f"{where} has no bytes to move")
    if steps[0] == 1:
        return tuple(zip(reversed(steps[1:]), reversed(sizes[1:]), strict=True)), sizes[0]
    # An innermost step other than one byte: single elements apart, the size still counts their bytes.
    if sizes[0] % element:
        raise LoadError(f"{where} has a run of {sizes[0]} bytes, no whole number of elements of {element}")
    inner = ((steps[0], sizes[0] // element),) if sizes[0] > element else ()
    return (*zip(reversed(steps[1:]), reversed(sizes[1:]), strict=True), *inner), element
