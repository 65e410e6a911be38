"""Matrix multiplication and transposition."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

from formats import isa as words
from formats.dtypes import Dtype
from formats.neuron_core import PARTITIONS, PSUM_BANK_BYTES
from neurontools.builder.limits import TRANSPOSE_VECTOR
from neurontools.builder.trace import Space, View
from neurontools.nki.dtype import float32
from neurontools.nki.isa.checks import flag, pick_engine, tensor, tile
from neurontools.nki.isa.constants import engine as engines
from neurontools.nki.isa.constants import matmul_perf_mode
from neurontools.nki.isa.indirection import check_product, first_partition
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.moves import tensor_copy
from neurontools.nki.isa.refusals import reject, unsupported
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.storage import identity_tile, new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, threads, tracer

__all__ = ["nc_matmul", "nc_transpose"]

_SBUF, _PSUM = Space.SBUF, Space.PSUM
_FLOAT32 = Dtype.FLOAT32
_NO_MODE = matmul_perf_mode.none
_FULL_WIDTH = ("float32", "tfloat32")


def psum_span(t: Tracer, instruction: str, view: View) -> None:
    """Refuse a result that crosses a PSUM bank. Source: hardware.md 2.1."""
    if t.limits.psum_crosses_banks:
        return
    start = view.offset + (view.allocation.address[1] if view.allocation.address else 0)
    reach = 1
    for step, count in view.dims:
        reach += step * (count - 1)
    last = start + reach * view.dtype.size - 1
    if start // PSUM_BANK_BYTES != last // PSUM_BANK_BYTES:
        t.limit(reject(t, instruction, "dst", f"bytes {start} to {last} of a PSUM partition",
                       f"must not cross a bank of {PSUM_BANK_BYTES} bytes"))  # fmt: skip


def nc_matmul(
    dst: NkiTensor,
    stationary: NkiTensor,
    moving: NkiTensor,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    accumulate: bool | None = None,
    tile_position: Any = (),
    tile_size: Any = (),
    perf_mode: Any = matmul_perf_mode.none,
    name: str | None = None,
) -> NkiInstruction:
    """Compute dst = stationary.T @ moving on the Tensor engine, contracting over partitions, into PSUM.

    Transpose mode moves bits, so a result of another type than the source's is an ordinary product.

    The onezero hints change cost only and are not recorded; row tiling changes placement only and is checked.
    """
    t = threads.tracer or tracer()
    key: tuple[Any, ...] | None
    try:
        key = ("nc_matmul", dst._kind or dst._find_kind(), stationary._kind or stationary._find_kind(),
               moving._kind or moving._find_kind(), is_transpose, accumulate)  # fmt: skip
        if not (perf_mode is _NO_MODE and tile_position == tile_size == () and is_transpose.__class__ is bool
                and (accumulate is None or accumulate.__class__ is bool)):  # fmt: skip
            key = None
        known = None if key is None else t.known.get(key)
    except (AttributeError, TypeError):  # something else than a tensor
        key = known = None
    if known is not None and key is not None:
        left, right = stationary._view or stationary.base_view, moving._view or moving.base_view
        out = dst._view or dst.base_view
        if not known[1]:
            address = dst.allocation.address
            start = out.offset if address is None else out.offset + address[1]
            if start % PSUM_BANK_BYTES + key[1].span > PSUM_BANK_BYTES:
                psum_span(t, "nc_matmul", out)
        return NkiInstruction(t.matmul(out, left, right, accumulate, known[0], name))
    left = _source(t, "stationary", stationary)
    right = _source(t, "moving", moving)
    out = tile(t, "nc_matmul", "dst", dst)
    if out.allocation.space is not _PSUM:
        raise reject(t, "nc_matmul", "dst", f"{dst.name} in SBUF", "must be in PSUM")
    columns, width, into = prod(stationary.shape[1:]), prod(moving.shape[1:]), prod(dst.shape[1:])
    # AWS's own kernels give the mode by its name.
    halves = perf_mode is not _NO_MODE and perf_mode not in (_NO_MODE, _NO_MODE.value)
    if halves:
        _double_row(t, stationary, moving, perf_mode)
        columns, width = columns // 2, width // 2
    limits = t.limits
    if is_transpose is not False:
        is_transpose = bool(flag(t, "nc_matmul", "is_transpose", is_transpose))
    if left.partitions != right.partitions:
        raise reject(t, "nc_matmul", "partition count of stationary and moving",
                     f"{left.partitions} and {right.partitions}",
                     "must be equal (the contraction dimension)")  # fmt: skip
    if columns > PARTITIONS:
        t.limit(reject(t, "nc_matmul", "stationary free size", columns, f"at most {PARTITIONS}"))
    # a type of NKI equals more than its name, which comparing takes a while to find out
    most = limits.moving_free.get(str(dst.dtype), limits.moving_free["float32"])
    if width > most:
        t.limit(reject(t, "nc_matmul", "moving free size", width, f"at most {most}"))
    if out.partitions != columns:
        raise reject(
            t, "nc_matmul", "partition count of dst", out.partitions, f"must be the {columns} columns of stationary"
        )
    if into != width:
        raise reject(t, "nc_matmul", "free size of dst", into, f"must be the {width} of moving")
    _matmul_dtypes(t, dst, stationary, moving, is_transpose)
    if t.indirect:
        check_product(t, "nc_matmul", tile_position, is_transpose, stationary=stationary, moving=moving)
    if tile_position or tile_size:
        _array_tile(t, left, columns, tile_position, tile_size)
        if halves and tuple(tile_size)[1] != PARTITIONS:
            raise reject(t, "nc_matmul", "tile_size", tile_size, "double_row cannot be combined with column tiling")
    psum_span(t, "nc_matmul", out)
    pieces = _bank_pieces(t, dst, moving) if t.lenient and not (halves or t.indirect) else []
    if len(pieces) > 1:  # warned of already: the array writes one bank at a time, so it takes as many products
        for bank, part in pieces[:-1]:
            nc_matmul(bank, stationary, part, is_transpose=is_transpose, accumulate=accumulate, name=name)
        dst, moving = pieces[-1]
        out, right = dst.view_of_storage, moving.view_of_storage
    keep = None if accumulate is None else bool(flag(t, "nc_matmul", "accumulate", accumulate))
    if halves:
        # The array takes both halves of the contraction at once; two products into one sum give the same result.
        t.matmul(out, stationary[:, 0].view_of_storage, moving[:, 0].view_of_storage, keep, False, name)
        left, right = stationary[:, 1].view_of_storage, moving[:, 1].view_of_storage
        return NkiInstruction(t.matmul(out, left, right, keep if keep is None else True, False, name))
    is_turned = is_transpose and out.dtype is left.dtype
    if key is not None:
        t.known.note(key, (is_turned, t.limits.psum_crosses_banks))
    return NkiInstruction(t.matmul(out, left, right, keep, is_turned, name))


def _bank_pieces(t: Tracer, dst: NkiTensor, moving: NkiTensor) -> list[tuple[NkiTensor, NkiTensor]]:
    """Return the parts of a result that lie in one PSUM bank each, with what is multiplied for them."""
    if t.limits.psum_crosses_banks or not (dst.is_contiguous() and moving.is_contiguous()):
        return []
    flat, source = dst.reshape((dst.shape[0], -1)), moving.reshape((moving.shape[0], -1))
    bank = PSUM_BANK_BYTES // dst.itemsize
    row = dst.allocation.partition_bytes // dst.itemsize
    base = (dst.allocation.address[1] // dst.itemsize if dst.allocation.address else 0) + dst.offset % row
    edges = [0, *range(bank - base % bank, dst.free_size, bank), dst.free_size]
    return [(flat[:, low:high], source[:, low:high]) for low, high in pairwise(edges)]


_DOUBLE_ROW = ("float8_e4m3", "float8_e5m2", "float8_e4m3fn")


def _double_row(t: Tracer, stationary: NkiTensor, moving: NkiTensor, perf_mode: Any) -> None:
    """Check the operands of double FP8 mode: 8-bit floats whose first free dimension is 2."""
    if perf_mode not in (matmul_perf_mode.double_row, matmul_perf_mode.double_row.value):
        raise reject(t, "nc_matmul", "perf_mode", repr(perf_mode), "must be none or double_row")
    if t.generation < 3:
        raise reject(t, "nc_matmul", "perf_mode", perf_mode, "needs gen3")
    for argument, one in (("stationary", stationary), ("moving", moving)):
        if one.dtype not in _DOUBLE_ROW:
            raise reject(t, "nc_matmul", argument, f"of {one.dtype}", f"double_row takes {' or '.join(_DOUBLE_ROW)}")
        if one.ndim < 3 or one.shape[1] != 2:
            raise reject(t, "nc_matmul", argument, f"of shape {one.shape}", "double_row needs a dimension 1 of size 2")


def _source(t: Tracer, argument: str, value: Any) -> View:
    view = tile(t, "nc_matmul", argument, value)
    if view.allocation.space is not _SBUF:
        raise reject(t, "nc_matmul", argument, f"{value.name} in PSUM", "must be in SBUF")
    return view


def _matmul_dtypes(t: Tracer, dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, is_transpose: bool) -> None:
    """Refuse type combinations the array does not have. Source: hardware.md 3.3 and the nc_matmul docstring."""
    combination = ("matmul_dtypes", dst.dtype, stationary.dtype, moving.dtype, is_transpose)
    if combination in t.cache:
        return  # looked at before
    kinds = (stationary.dtype, moving.dtype)
    for argument, one in zip(("stationary", "moving"), kinds, strict=True):
        if one not in t.limits.matmul_dtypes:
            raise reject(
                t, "nc_matmul", argument, f"of {one}", f"must be one of {', '.join(sorted(t.limits.matmul_dtypes))}"
            )
    if (kinds[0] in _FULL_WIDTH) != (kinds[1] in _FULL_WIDTH):
        raise reject(
            t, "nc_matmul", "stationary and moving", f"of {kinds[0]} and {kinds[1]}", "float32 goes with float32 only"
        )
    if set(map(str, kinds)) == {"float8_e4m3", "float8_e4m3fn"}:
        raise reject(t, "nc_matmul", "stationary and moving", f"of {kinds[0]} and {kinds[1]}", "cannot be mixed")
    allowed = set(t.limits.moving_free)
    if is_transpose and t.limits.transpose_exact:
        allowed.add(str(stationary.dtype))
    if str(dst.dtype) not in allowed:
        raise reject(t, "nc_matmul", "dst", f"of {dst.dtype}", f"must be {' or '.join(sorted(allowed))}")
    t.cache[combination] = True


def _array_tile(t: Tracer, left: View, width: int, position: Any, size: Any) -> None:
    """Check tiling of the array. Source: nc_matmul docstring; AWS's kernels use column tiles of 32 and 64 as well."""
    if len(tuple(position)) != 2 or len(tuple(size)) != 2:
        raise reject(t, "nc_matmul", "tile_position and tile_size", f"{position} and {size}", "must both be pairs")
    (row, column), (rows, columns) = position, size
    sizes = (64, PARTITIONS) if t.generation < 3 else (32, 64, PARTITIONS)
    if rows not in sizes:
        raise reject(t, "nc_matmul", "tile_size", size, f"row size must be {' or '.join(map(str, sizes))}")
    if columns not in sizes:
        raise reject(t, "nc_matmul", "tile_size", size, f"column size must be {' or '.join(map(str, sizes))}")
    if column % columns or not 0 <= column < PARTITIONS:
        raise reject(
            t, "nc_matmul", "tile_position", position, f"column start must be a multiple of {columns} below 128"
        )
    if width > columns:
        raise reject(t, "nc_matmul", "stationary free size", width, f"at most the {columns} columns of the tile")
    if row % rows or not 0 <= row < PARTITIONS:
        raise reject(t, "nc_matmul", "tile_position", position, f"row start must be a multiple of {rows} below 128")
    if left.partitions > rows:
        raise reject(
            t, "nc_matmul", "partition count of stationary", left.partitions, f"at most the {rows} rows of the tile"
        )


def nc_transpose(
    dst: NkiTensor, data: NkiTensor, engine: Any = engines.unknown, name: str | None = None
) -> NkiInstruction:
    """Swap partitions and (flattened) free dimensions of a tile.

    Tensor engine (SBUF to PSUM, up to 128 x 128) when a side is over 32 or the result goes from SBUF to PSUM; else
    Vector. A dst larger than the result is filled from its corner.
    """
    t = threads.tracer or tracer()
    instruction = "nc_transpose"
    tensor(t, instruction, "data", data)
    tensor(t, instruction, "dst", dst)
    rows, columns = data.shape[0], data.free_size
    if dst.shape[0] > columns or dst.free_size > rows:
        if dst.ndim != 2 or dst.shape[0] < columns or dst.shape[1] < rows:
            raise reject(t, instruction, "dst", f"of shape {dst.shape}", f"must hold ({columns}, {rows})")
        dst = dst[0:columns, 0:rows]
    elif (dst.shape[0], dst.free_size) != (columns, rows):
        raise reject(
            t, instruction, "dst", f"of shape {dst.shape}", f"must be ({columns}, {rows}) for data {data.shape}"
        )
    src, out = tile(t, instruction, "data", data), tile(t, instruction, "dst", dst)
    to_psum = src.allocation.space is _SBUF and out.allocation.space is _PSUM
    default = "PE" if to_psum or max(rows, columns) > TRANSPOSE_VECTOR else "DVE"
    chosen = pick_engine(t, instruction, engine, default, ("PE", "DVE"))
    if chosen == "PE":
        return _array_transpose(t, dst, data, src, out, name)
    if max(rows, columns) > TRANSPOSE_VECTOR:
        raise reject(t, instruction, "data", f"of shape {data.shape}", "the Vector engine transposes 32 x 32 or less")
    if src.dtype is not out.dtype:
        raise reject(t, instruction, "dst", f"of {dst.dtype}", f"must have the type of data, {data.dtype}")
    return NkiInstruction(t.compute(words.VectorTranspose, "DVE", {"src": src, "dst": out}, {}, name))


def _array_transpose(
    t: Tracer, dst: NkiTensor, data: NkiTensor, src: View, out: View, name: str | None
) -> NkiInstruction:
    """Multiply by the identity in transpose mode."""
    instruction = "nc_transpose"
    if src.allocation.space is not _SBUF or out.allocation.space is not _PSUM:
        raise reject(t, instruction, "data and dst",
                     f"in {src.allocation.space.value} and {out.allocation.space.value}",
                     "the Tensor engine reads SBUF and writes PSUM")  # fmt: skip
    if data.free_size > PARTITIONS:
        raise reject(t, instruction, "data", f"of shape {data.shape}", "the Tensor engine transposes 128 x 128 or less")
    same = src.dtype is out.dtype
    if not same and not (out.dtype is _FLOAT32 and src.dtype.is_float):
        wider = ", or float32" if src.dtype.is_float else ""
        raise reject(t, instruction, "dst", f"of {dst.dtype}", f"must have the type of data, {data.dtype}{wider}")
    psum_span(t, instruction, out)
    if not src.dtype.is_float:
        if not t.limits.transpose_exact:
            return _product_transpose(t, dst, data, name)
        # In transpose mode the array moves bits, so integers travel as floats of their width.
        as_float = {1: Dtype.FLOAT8E5, 2: Dtype.BFLOAT16, 4: Dtype.FLOAT32}[src.dtype.size]
        src, out = src._replace(dtype=as_float), out._replace(dtype=as_float)
    identity = identity_tile(t, src.dtype)
    start, rows = first_partition(src), src.partitions
    # the array contracts equal partitions: its identity begins where the data does
    moving = identity[start : start + rows, start : start + rows].view_of_storage
    return NkiInstruction(t.matmul(out, src, moving, False, out.dtype is src.dtype, name))


def _product_transpose(t: Tracer, dst: NkiTensor, data: NkiTensor, name: str | None) -> NkiInstruction:
    """Transpose narrow integers where the array only multiplies: as float32, which holds them, and back."""
    if data.itemsize == 4:
        raise unsupported("nc_transpose", f"{data.dtype} on the Tensor engine of {t.limits.generation}")
    values = new_tensor(t, data.shape, float32)
    turned = new_tensor(t, dst.shape, float32, MemoryRegion.psum)
    tensor_copy(values, data, name=name)
    nc_transpose(turned, values, engines.tensor, name)
    return tensor_copy(dst, turned, name=name)
