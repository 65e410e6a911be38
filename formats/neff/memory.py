"""How much device memory a NEFF takes, by the categories that the Neuron runtime reports. Source: runtime.md 3.1.

Sizes are bytes. Figures that no document gives are those of 35 public captures, which hold the runtime's own records:
two of trn1 (runtime 2.23.27), 23 of trn2 with runtime 2.27.23 and ten with 2.30.51, all of these with LNC 2. Profiler
buffers and collectives are not counted.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from formats.neff.reader import Neff
    from formats.neff.subgraph import Subgraph
    from formats.neff.transfers import Descriptor

__all__ = ["MICROCODE_BYTES", "Category", "device_memory", "scratchpad_need", "scratchpad_page"]

Version = tuple[int, ...]

_MIB = 1 << 20
# Of every physical core. The documented 96 MB hold on trn1; captured trn2 takes a sixtieth of it.
MICROCODE_BYTES = {"gen2": 100_669_644, "gen3": 1_744_584}
_DOCUMENTED_MICROCODE = 96 * _MIB
# Less with runtime 2.27.23: microcode of trn2, and what the loader puts around the streams.
_SMALLER_BEFORE, _SMALLER = (2, 30), (40_648, 2_304)
_CONTIGUOUS_PAGE, _PAGE = 64 * _MIB, 512 * _MIB
_CONTIGUOUS_SINCE = (2, 33)
# What the loader puts around the streams of a core, and more for each queue; 26 to 32 KB in every capture.
_LOADER_BYTES, _LOADER_QUEUE_BYTES = 29_568, 1_024
_TABLE_BYTES = 83_968  # of a core that uses activation functions
_GENERIC_BYTES, _STDIO_BYTES = 38_912, 1_088
_GENERATOR_BYTES = 8  # beside the tensors, for each table that descriptors are made with
_RUNTIME_RINGS, _TABLE_RINGS = 30_720, 2_048
_DESCRIPTOR_BYTES, _DESCRIPTOR_REACH, _RING_LEAST, _RING_STEP, _RINGS = 16, 65536, 64, 16, 16
_TABLES = "_bkt.bin", "_ctrl.bin"
_CAPTURES = "formats.md 6.1: memory records of public captures"


class Category(NamedTuple):
    """One row of the ledger: name as the runtime's table has it, bytes over all cores of the file, source."""

    name: str
    bytes: int
    provenance: str
    cite: str


def scratchpad_page(generation: str, lnc: int, runtime: Version | None = None) -> int:
    """Return the bytes that scratchpad memory is taken in.

    It is pages up to runtime 2.32, and where none is named: every capture has them. Later ones take one region, but for
    LNC 1 of gen3 and gen4.
    """
    pages = runtime is None or runtime < _CONTIGUOUS_SINCE or (lnc == 1 and generation in ("gen3", "gen4"))
    return _PAGE if pages else _CONTIGUOUS_PAGE


def scratchpad_need(graph: Subgraph) -> int:
    """Return the bytes that a subgraph uses of shared scratchpad memory."""
    ends = [(one.backing_offset or 0) + max(0, one.size or 0) for one in graph.variables.values()
            if one.kind == "virtual"]  # fmt: skip
    return max(ends, default=0)


def device_memory(neff: Neff, runtime: Version | None = None) -> tuple[Category, ...]:
    """Return what a loaded file and one set of its inputs and outputs take, category by category.

    Tensors are those of the graph, once for all cores; everything else is each core's own.
    """
    generation = neff.target.generation
    microcode, loader = MICROCODE_BYTES.get(generation, _DOCUMENTED_MICROCODE), _LOADER_BYTES
    if generation == "gen3" and runtime is not None and runtime < _SMALLER_BEFORE:
        microcode, loader = microcode - _SMALLER[0], loader - _SMALLER[1]
    page = scratchpad_page(generation, neff.lnc, runtime)
    code = constants = scratch = private = runs = io = spill = feeding = generators = 0
    tensors: dict[str, int] = {}
    for graph in neff.subgraphs:
        tables = any(one.name.startswith(f"{graph.folder}/" if graph.folder else "") and one.name.endswith(_TABLES)
                     for one in neff.members)  # fmt: skip
        queues = {queue for queue, _ in graph.dma_blocks}
        code += microcode + sum(len(graph.stream_bytes(engine)) for engine in graph.streams)
        code += loader + _LOADER_QUEUE_BYTES * len(queues) + _TABLE_BYTES * tables
        scratch += -(-scratchpad_need(graph) // page) * page
        for variable in graph.variables.values():
            size = max(0, variable.size or 0)
            if variable.kind in ("input", "output"):
                tensors[variable.name] = size
            elif variable.kind == "file":
                constants += size
            elif variable.kind == "tmp-buf":
                private += size
            elif variable.kind == "dge-table":
                generators += _GENERATOR_BYTES
        # The records of trn1 have neither of the two that trn2's have beside the output of GpSimd.
        runs += _STDIO_BYTES + (0 if generation == "gen2" else _GENERIC_BYTES)
        feeding += 0 if generation == "gen2" else _RUNTIME_RINGS + _TABLE_RINGS * tables
        of_io, of_spill = _rings(graph)
        io, spill = io + of_io, spill + of_spill
    known = generation in MICROCODE_BYTES
    seen = "observed" if known else "inferred"
    return (
        Category("Model Code", code, "observed", f"{_CAPTURES}: streams, microcode, tables") if known
        else Category("Model Code", code, "documented", "runtime.md 3.1: 96 MB of microcode per physical core"),
        Category("Model Constants", constants, "documented", "runtime.md 3.1"),
        Category("Tensors", sum(tensors.values()) + generators, "observed" if generators else "documented",
                 "runtime.md 3.1: allocated by the caller" + (f"; {_CAPTURES}: 8 bytes a table" if generators else "")),
        _shared(scratch, page, seen=generation == "gen3" and neff.lnc > 1),
        Category("Scratchpad", private, "inferred", "formats.md 3.5: variables of type tmp-buf"),
        Category("Runtime", runs, seen, f"{_CAPTURES}: generic, output of GpSimd"),
        Category("DMA Rings IO", io, "inferred", f"{_CAPTURES}: within 1 percent"),
        Category("DMA Rings Spill", spill, "inferred", f"{_CAPTURES}: within 13 percent"),
        Category("DMA Rings Runtime", feeding, seen, f"{_CAPTURES}: instruction fetch and tables"),
    )  # fmt: skip


def _shared(nbytes: int, page: int, *, seen: bool) -> Category:
    name, pages = "Shared Scratchpad", f"pages of {page // _MIB} MiB"
    if page == _CONTIGUOUS_PAGE:
        return Category(name, nbytes, "documented", f"runtime.md 3.1: {pages}")
    return Category(name, nbytes, "observed" if seen else "inferred", f"{_CAPTURES}: {pages}")


def _rings(graph: Subgraph) -> tuple[int, int]:
    """Return the bytes of the rings of queues that touch inputs or outputs, and of the others.

    A queue has a ring for both ends on sixteen DMA engines, with its share of every transfer's descriptors and of what
    signals its end. Transfers that words describe themselves are made on the device and need none.
    """
    each: dict[str, int] = {}
    outside: set[str] = set()
    for block in graph.dma_blocks.values():
        signals = 2 if any(_lanes(one) for one in block.descriptors) else 1
        number = sum(_elements(one) for one in block.descriptors)
        each[block.queue] = each.get(block.queue, 0) + -(-number // _RINGS) + signals
        for descriptor in block.descriptors:
            found = (graph.variables.get(name) for name in (descriptor.source, descriptor.target))
            if any(one is not None and one.kind in ("input", "output") for one in found):
                outside.add(block.queue)
    sizes = {queue: max(_RING_LEAST, (number // _RING_STEP + 1) * _RING_STEP) * 2 * _DESCRIPTOR_BYTES * _RINGS
             for queue, number in each.items()}  # fmt: skip
    io = sum(size for queue, size in sizes.items() if queue in outside)
    return io, sum(sizes.values()) - io


def _elements(descriptor: Descriptor) -> int:
    """Return the descriptors of the hardware that one of the file becomes: a run of bytes each, at most 64 KiB."""
    sizes = descriptor.target_sizes
    if not sizes or min(sizes) < 1:
        return 0
    lanes = _lanes(descriptor)
    if lanes:
        # A transpose moves rows of two-byte elements: wider ones take as many passes.
        return max(prod(descriptor.source_sizes[1:]), prod(sizes[1:])) * lanes
    return prod(sizes[1:]) * -(-sizes[0] // _DESCRIPTOR_REACH)


def _lanes(descriptor: Descriptor) -> int:
    """Return how many two-byte lanes the elements of a transposing descriptor have; 0 for any other descriptor."""
    return max(1, (descriptor.transpose_element_size or 0) // 2) if descriptor.transpose_shape else 0
