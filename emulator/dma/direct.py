"""From direct DMA words to the loaded form and the copies of a transfer. Source: isa.md 8, 9."""

from __future__ import annotations

from emulator.addresses import AddressMap
from emulator.dma.transfer import Copies, Limit, Part, Side, check_sizes
from emulator.errors import LoadError
from emulator.placement import Placement
from formats.dtypes import Dtype
from formats.isa import DmaDirect2d, SendReceive
from formats.isa.operand import AccessPattern, DmaAddress, DmaPattern
from formats.named_tuple import NamedTuple
from formats.neuron_core import SBUF_PARTITION_STRIDE

__all__ = ["DirectContext", "named_dtype", "pattern_side", "send_copies", "side_of", "translate_direct"]

# Where a core's window ends for DMA: SBUF, PSUM and registers (formats.md 7.1).
_WINDOW = 0x4000000


class DirectContext(NamedTuple):
    """What direct DMA words of one core refer to."""

    placement: Placement
    addresses: AddressMap
    core: int


def translate_direct(word: DmaDirect2d, context: DirectContext, where: str) -> tuple[DmaDirect2d, Part]:
    """Return the loaded form of a direct DMA, and what it moves.

    In the word, variables become device addresses and table references stay; nothing else of it changes. Raises
    LoadError naming a variable or table entry that does not exist, or sides that do not fit together.
    """
    absolute: dict[str, DmaAddress] = {}
    pairs = (
        ("src", word.src, word.src_pattern, word.src_element_size, word.src_dtype),
        ("dst", word.dst, word.dst_pattern, word.dst_element_size, word.dst_dtype),
    )
    sides: list[Side] = []
    for name, address, pattern, run, dtype in pairs:
        side = side_of(address, pattern, run, named_dtype(dtype, where), context, f"{where}: {name}")
        sides.append(side)
        if address.form == "variable":
            base = context.addresses.sbuf(context.core) if side.space == "SBUF" else 0
            absolute[name] = DmaAddress("absolute", 0, base + side.address)
    source, target = sides
    check_sizes(source, target, where)
    loaded = DmaDirect2d.of(word).replace(**absolute)
    return loaded, Part("copy" if source.dtype == target.dtype else "cast", ((source, target),))


def side_of(
    address: DmaAddress, pattern: DmaPattern, run: int, dtype: Dtype, context: DirectContext, where: str
) -> Side:
    """Return one side; what counts from a table entry lies in the variable that the entry names."""
    (inner_step, outer_step), (inner, outer) = pattern
    dims: tuple[tuple[int, int], ...] = () if outer == 1 else ((outer_step, outer),)
    if inner != 1:
        dims = (*dims, (inner_step, inner))
    placement, core = context.placement, context.core
    if address.form == "table":
        limit = _table_limit(placement, address.index, where)
        return Side("HBM", core, limit.address + address.offset, dims, run, dtype, limit)
    if address.form == "variable":
        if address.index in placement.state_buffers:
            return Side("SBUF", core, address.offset, dims, run, dtype)
        tensor = placement.by_id.get(address.index)
        if tensor is None:
            raise LoadError(f"{where} names variable {address.index}, which the definition does not have")
        return Side("HBM", core, tensor.address + address.offset, dims, run, dtype, tensor.limit)
    for owner, base in enumerate(context.addresses.cores):
        # An address in a window that is no SBUF fails the bounds check of the transfer.
        if base <= address.offset < base + _WINDOW:
            return Side("SBUF", owner, address.offset - base, dims, run, dtype)
    return Side("HBM", core, address.offset, dims, run, dtype)


def _table_limit(placement: Placement, index: int, where: str) -> Limit:
    if placement.table is None:
        raise LoadError(f"{where} refers to a table, and the definition has none")
    limits = placement.table.limits
    if index >= len(limits):
        raise LoadError(f"{where} refers to entry {index} of {placement.table.name!r}, which has {len(limits)}")
    return limits[index]


def named_dtype(code: int, where: str) -> Dtype:
    """Return the element type of a code; an unknown one is a LoadError."""
    try:
        return Dtype(code)
    except ValueError:
        raise LoadError(f"{where} has the unknown element type {code:#x}") from None


def send_copies(word: SendReceive, core: int, peer: int, where: str) -> Copies:
    """Return the copy from this core's SBUF to the other core's."""
    dtype = named_dtype(word.dtype, where)
    if not dtype.size or dtype == Dtype.UNKNOWN:
        raise LoadError(f"{where}: the element type is not named")
    source = pattern_side(word.src, word.channels, dtype, core)
    target = pattern_side(word.peer_pattern, word.channels, dtype, peer)
    check_sizes(source, target, where)
    return ((source, target),)


def pattern_side(pattern: AccessPattern, channels: int, dtype: Dtype, core: int) -> Side:
    """Return a tile as a side: partitions first, then the dimensions, contiguous ones folded into the run."""
    dims = [(step * dtype.size, count) for step, count in zip(pattern.steps, pattern.counts, strict=True) if count != 1]
    run = dtype.size
    while dims and dims[0][0] == run:
        run *= dims.pop(0)[1]
    return Side("SBUF", core, pattern.address, ((SBUF_PARTITION_STRIDE, channels), *reversed(dims)), run, dtype)
