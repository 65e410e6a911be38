"""From instruction words and descriptor blocks to the sides of a transfer. Source: isa.md 8, formats.md 3.6."""

from __future__ import annotations

from collections.abc import Callable

from emulator.addresses import AddressMap
from emulator.dma.moves import check_operation
from emulator.dma.transfer import Copies, Limit, Part, Side
from emulator.errors import LoadError
from emulator.placement import DeviceTensor, Placement
from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.isa import DmaDirect2d, SendReceive
from formats.isa.operand import PSUM_BASE, AccessPattern, DmaAddress, DmaPattern
from formats.neff import Descriptor, DmaBlock, Subgraph

__all__ = ["absolute_word", "block_parts", "descriptor_copies", "direct_copies", "send_copies"]


def absolute_word(word: DmaDirect2d, placement: Placement, addresses: AddressMap, core: int, where: str) -> DmaDirect2d:
    """Return the loaded form of a direct DMA: variables as device addresses, table references as they are.

    Raises LoadError naming a variable or table entry that does not exist. Source: isa.md 9.
    """
    changes = {}
    for name in ("src", "dst"):
        address: DmaAddress = getattr(word, name)
        if address.form == "variable":
            if address.index in placement.state_buffers:
                base = addresses.sbuf(core)
            elif address.index in placement.by_id:
                base = placement.by_id[address.index].address
            else:
                raise LoadError(f"{where}: {name} names variable {address.index}, which the definition does not have")
            changes[name] = DmaAddress("absolute", 0, base + address.offset)
        elif address.form == "table":
            _table_entry(placement, address.index, f"{where}: {name}")
    return DmaDirect2d.from_raw(bytes((DmaDirect2d.OPCODE,)) + word.raw[1:]).replace(**changes)


def _table_entry(placement: Placement, index: int, where: str) -> DeviceTensor:
    if placement.table is None:
        raise LoadError(f"{where} refers to a table, and the definition has none")
    if index >= len(placement.table.entries):
        raise LoadError(
            f"{where} refers to entry {index} of {placement.table.name!r}, which has {len(placement.table.entries)}"
        )
    return placement.table.entries[index]


def direct_copies(
    pseudo: DmaDirect2d, word: DmaDirect2d, placement: Placement, addresses: AddressMap, core: int, where: str
) -> Callable[[], Copies]:
    """Return a function that gives the copies of a direct DMA at the moment it is triggered.

    `pseudo` is the compiler's word, whose variables bound the addresses of `word`; table entries are looked up at the
    call.
    """
    sides = []
    for name in ("src", "dst"):
        address: DmaAddress = getattr(word, name)
        pattern: DmaPattern = getattr(word, f"{name}_pattern")
        run = getattr(word, f"{name}_element_size")
        dtype = _dtype(getattr(word, f"{name}_dtype"), f"{where}: {name}")
        limit = None
        original: DmaAddress = getattr(pseudo, name)
        if original.form == "variable" and original.index in placement.by_id:
            limit = placement.by_id[original.index].limit
        dims = tuple(
            (step, count)
            for step, count in zip(reversed(pattern.steps), reversed(pattern.counts), strict=True)
            if count != 1
        )
        if address.form == "table":
            sides.append(Side("HBM", core, address.offset, dims, run, dtype))
        else:
            sides.append(_place_side(address.offset, dims, run, dtype, limit, addresses, core))
    tables = [getattr(word, name).index if getattr(word, name).form == "table" else None for name in ("src", "dst")]
    _check_sizes(sides[0], sides[1], where)
    if tables == [None, None]:
        fixed: Copies = ((sides[0], sides[1]),)
        return lambda: fixed

    def resolve() -> Copies:
        source, target = (
            side if index is None else _through_table(side, index, placement, where)
            for side, index in zip(sides, tables, strict=True)
        )
        return ((source, target),)

    return resolve


def _through_table(side: Side, index: int, placement: Placement, where: str) -> Side:
    tensor = _table_entry(placement, index, where)
    return side._replace(address=tensor.address + side.address, limit=tensor.limit)


def _place_side(
    address: int,
    dims: tuple[tuple[int, int], ...],
    run: int,
    dtype: Dtype,
    limit: Limit | None,
    addresses: AddressMap,
    core: int,
) -> Side:
    """Return a side at an absolute device address: SBUF where a core's window holds it, else HBM."""
    place = addresses.locate(address)
    if limit is None and place.kind == "sbuf":
        return Side("SBUF", place.core, address - addresses.sbuf(place.core), dims, run, dtype)
    if (
        limit is None
        and place.kind != "hbm"
        and addresses.core_base(core) <= address < addresses.core_base(core) + 2 * PSUM_BASE
    ):
        # A window address that is no SBUF: the bounds check of the transfer names it.
        return Side("SBUF", core, address - addresses.sbuf(core), dims, run, dtype)
    return Side("HBM", core, address, dims, run, dtype, limit)


def _dtype(code: int, where: str) -> Dtype:
    try:
        return Dtype(code)
    except ValueError:
        raise LoadError(f"{where} has the unknown element type {code:#x}") from None


def _check_sizes(source: Side, target: Side, where: str) -> None:
    if not source.nbytes or not target.nbytes:
        raise LoadError(f"{where} has no bytes to move")
    have, want = source.nbytes // source.dtype.size, target.nbytes // target.dtype.size
    if source.run % source.dtype.size or target.run % target.dtype.size:
        raise LoadError(f"{where}: a run of {source.run} or {target.run} bytes is no whole number of elements")
    if have != want:
        raise LoadError(f"{where}: source has {have} elements and destination {want}")


def block_parts(block: DmaBlock, subgraph: Subgraph, placement: Placement, core: int) -> tuple[Part, ...]:
    """Return operation and copies of every descriptor of a block.

    Raises LoadError naming a variable that does not exist, UnsupportedError naming an operation that is not modelled.
    """
    where = f"{subgraph.name}: DMA block {block.block_id} of {block.queue}"
    return tuple(
        Part(d.op, descriptor_copies(d, placement, subgraph, core, where), d.constant) for d in block.descriptors
    )


def descriptor_copies(
    descriptor: Descriptor, placement: Placement, subgraph: Subgraph, core: int, where: str
) -> Copies:
    """Return the copies of one descriptor; several sources share the destination."""
    d = descriptor
    check_operation(d.op, max(len(d.sources), 1), d.transpose_shape, d.constant)
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
        _check_sizes(source, target, where)
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


def send_copies(word: SendReceive, core: int, peer: int, where: str) -> Copies:
    """Return the copy from this core's SBUF to the other core's."""
    dtype = _dtype(word.dtype, where)
    if not dtype.size or dtype == Dtype.UNKNOWN:
        raise LoadError(f"{where}: the element type is not named")
    source = _pattern_side(word.src, word.channels, dtype, core)
    target = _pattern_side(word.peer_pattern, word.channels, dtype, peer)
    _check_sizes(source, target, where)
    return ((source, target),)


def _pattern_side(pattern: AccessPattern, channels: int, dtype: Dtype, core: int) -> Side:
    """Return a tile as a side: partitions first, then the dimensions, contiguous ones folded into the run."""
    dims = [(step * dtype.size, count) for step, count in zip(pattern.steps, pattern.counts, strict=True) if count != 1]
    run = dtype.size
    while dims and dims[0][0] == run:
        run *= dims.pop(0)[1]
    return Side("SBUF", core, pattern.address, ((0x40000, channels), *reversed(dims)), run, dtype)
