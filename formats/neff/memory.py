"""How much device memory a NEFF takes, by the categories that the Neuron runtime reports. Source: runtime.md 3.1.

Sizes are bytes. Figures that no document gives are those of 35 public captures, which hold the runtime's own records:
two of trn1 (runtime 2.23.27), 23 of trn2 with runtime 2.27.23 and ten with 2.30.51, all of these with LNC 2. Profiler
buffers and collectives are not counted.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from formats.named_tuple import NamedTuple
from formats.neff.definition import ENGINE_KEYS
from formats.neuron_core import DESCRIPTOR_LIMIT, DMA_ENGINES
from formats.nrt.memory import BY_KEY, CONTIGUOUS_PAGE, CONTIGUOUS_SINCE, PAGE_SIZES, USES

if TYPE_CHECKING:
    from formats.neff.reader import Neff
    from formats.neff.subgraph import Subgraph
    from formats.neff.transfers import Descriptor

__all__ = [
    "MICROCODE_BYTES", "PROFILER_BYTES", "Category", "core_uses", "device_memory", "model_uses", "private_variables",
    "profiler_bytes", "ring_uses", "scratchpad_need", "scratchpad_page",
]  # fmt: skip

Version = tuple[int, ...]

_MIB = 1 << 20
# Of every physical core. The documented 96 MB hold on trn1; captured trn2 takes a sixtieth of it.
MICROCODE_BYTES = {"gen2": 100_669_644, "gen3": 1_744_584}
_DOCUMENTED_MICROCODE = 96 * _MIB
# Microcode of trn2 is so much less with runtime 2.27.23.
_SMALLER_BEFORE, _SMALLER = (2, 30), 40_648
_SMALL_SINCE = (2, 27)
# Of every physical core, captured on trn2: with runtime 2.27.23, and with 2.30.51. About 2 GB are documented.
PROFILER_BYTES = (2_415_919_104, 2_554_331_136)
# What the loader puts around the streams of a core, and more for each queue; 26 to 32 KB in every capture.
_LOADER = {"pe": 6_592, "act": 5_568, "pool": 6_272, "dve": 6_208, "sp": 4_928}
_LOADER_LESS = {"pe": 384, "act": 320, "pool": 640, "dve": 576, "sp": 384}  # of the same, before 2.30
_LOADER_QUEUE_BYTES = 1_024
_TABLE_BYTES = 83_968  # of a core that uses activation functions
_GENERIC_BYTES, _STDIO_BYTES = 38_912, 1_088
_GENERATOR_BYTES = 8  # beside the tensors, for each table that descriptors are made with
_RUNTIME_RINGS, _TABLE_RINGS = 30_720, 2_048
# Of these, what a core has before it has a model: so the documented table (runtime.md 3.2) minus what its NEFFs have.
_CORE_GENERIC_BYTES, _CORE_RINGS = 12_288, 28_672
# A descriptor takes 16 bytes (runtime.md 3.1); a ring has at least 64, in steps of 16 (formats.md 6.1).
_DESCRIPTOR_BYTES, _RING_LEAST, _RING_STEP = 16, 64, 16
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
    pages = runtime is None or runtime < CONTIGUOUS_SINCE or (lnc == 1 and generation in ("gen3", "gen4"))
    return PAGE_SIZES[0] * _MIB if pages else CONTIGUOUS_PAGE


def scratchpad_need(graph: Subgraph) -> int:
    """Return the bytes that a subgraph uses of shared scratchpad memory."""
    ends = [(one.backing_offset or 0) + max(0, one.size or 0) for one in graph.variables.values()
            if one.kind == "virtual"]  # fmt: skip
    return max(ends, default=0)


def private_variables(graph: Subgraph, page: int) -> dict[str, int]:
    """Return the scratchpad variables that cross the end of a page, which pages apart cannot hold, with their bytes."""
    return {one.name: size for one in graph.variables.values()
            if one.kind == "virtual" and (size := max(0, one.size or 0))
            and (one.backing_offset or 0) % page + size > page}  # fmt: skip


def profiler_bytes(generation: str, runtime: Version | None = None) -> int | None:
    """Return the bytes of a physical core's profiler buffers; None for a chip of which no capture has a record."""
    if generation != "gen3":
        return None
    return PROFILER_BYTES[runtime is None or runtime >= _SMALLER_BEFORE]


def core_uses(generation: str, runtime: Version | None = None) -> dict[str, int]:
    """Return what a physical core takes before anything is loaded, by use (`formats.nrt.memory.USES`).

    Runtimes before 2.27 have the documented 96 MB of microcode on every chip, as the documented table of May 2025.
    """
    microcode = MICROCODE_BYTES.get(generation, _DOCUMENTED_MICROCODE)
    if generation == "gen3" and runtime is not None and runtime < _SMALLER_BEFORE:
        microcode = MICROCODE_BYTES["gen2"] if runtime < _SMALL_SINCE else microcode - _SMALLER
    if generation == "gen2":
        return {"ucode": microcode, "pool stdio": _STDIO_BYTES}
    return {"ucode": microcode, "generic": _CORE_GENERIC_BYTES, "pool stdio": _STDIO_BYTES,
            "dma rings runtime": _CORE_RINGS}  # fmt: skip


def model_uses(graph: Subgraph, generation: str, runtime: Version | None = None) -> dict[str, int]:
    """Return what loading one subgraph takes on its physical core beyond `core_uses`, by use.

    Neither scratchpad pages nor tensors are in it: those depend on what else is loaded. Rings by queue are `ring_uses`.
    """
    folder = f"{graph.folder}/" if graph.folder else ""
    tables = any(one.name.startswith(folder) and one.name.endswith(_TABLES) for one in graph.neff.members)
    less = _LOADER_LESS if generation == "gen3" and runtime is not None and runtime < _SMALLER_BEFORE else {}
    found = {use: nbytes - less.get(use, 0) for use, nbytes in _LOADER.items()}
    for engine in graph.streams:
        found[ENGINE_KEYS[engine]] += len(graph.stream_bytes(engine))
    for queue in {queue for queue, _ in graph.dma_blocks}:
        known = graph.queue_of(queue)
        owner = None if known is None else known.engine
        found[ENGINE_KEYS.get(owner or "", "pool")] += _LOADER_QUEUE_BYTES
    found["act table"] = _TABLE_BYTES * tables
    found["weight"] = found["scratchpad"] = 0
    for variable in graph.variables.values():
        kept = {"file": "weight", "tmp-buf": "scratchpad"}.get(variable.kind)
        if kept:
            found[kept] += max(0, variable.size or 0)
    # The records of trn1 have neither of the two that trn2's have beside the output of GpSimd.
    found["generic"] = 0 if generation == "gen2" else _GENERIC_BYTES - _CORE_GENERIC_BYTES
    found["dma rings runtime"] = 0 if generation == "gen2" else _RUNTIME_RINGS - _CORE_RINGS + _TABLE_RINGS * tables
    return {use: nbytes for use, nbytes in found.items() if nbytes}


def device_memory(neff: Neff, runtime: Version | None = None) -> tuple[Category, ...]:
    """Return what a loaded file and one set of its inputs and outputs take, category by category.

    Tensors are those of the graph, once for all cores; everything else is each core's own.
    """
    generation = neff.target.generation
    page = scratchpad_page(generation, neff.lnc, runtime)
    taken: dict[str, int] = {}
    scratch = generators = 0
    tensors: dict[str, int] = {}
    for graph in neff.subgraphs:
        for uses in (core_uses(generation, runtime), model_uses(graph, generation, runtime)):
            for use, nbytes in uses.items():
                category = USES[use].category
                taken[category] = taken.get(category, 0) + nbytes
        for use, nbytes in ring_uses(graph).values():
            taken[USES[use].category] = taken.get(USES[use].category, 0) + nbytes
        scratch += -(-scratchpad_need(graph) // page) * page
        for variable in graph.variables.values():
            if variable.kind in ("input", "output"):
                tensors[variable.name] = max(0, variable.size or 0)
            elif variable.kind == "dge-table":
                generators += _GENERATOR_BYTES
    known = generation in MICROCODE_BYTES
    seen = "observed" if known else "inferred"

    def row(key: str, provenance: str, cite: str) -> Category:
        return Category(BY_KEY[key].name, taken.get(key, 0), provenance, cite)

    return (
        row("code", "observed", f"{_CAPTURES}: streams, microcode, tables") if known
        else row("code", "documented", "runtime.md 3.1: 96 MB of microcode per physical core"),
        row("constants", "documented", "runtime.md 3.1"),
        Category("Tensors", sum(tensors.values()) + generators, "observed" if generators else "documented",
                 "runtime.md 3.1: allocated by the caller" + (f"; {_CAPTURES}: 8 bytes a table" if generators else "")),
        _shared(scratch, page, seen=generation == "gen3" and neff.lnc > 1),
        row("scratchpad", "inferred", "formats.md 3.5: variables of type tmp-buf"),
        row("runtime", seen, f"{_CAPTURES}: generic, output of GpSimd"),
        row("rings_io", "inferred", f"{_CAPTURES}: within 1 percent"),
        row("rings_spill", "inferred", f"{_CAPTURES}: within 13 percent"),
        row("rings_runtime", seen, f"{_CAPTURES}: instruction fetch and tables"),
    )  # fmt: skip


def _shared(nbytes: int, page: int, *, seen: bool) -> Category:
    name, pages = "Shared Scratchpad", f"pages of {page // _MIB} MiB"
    if page == CONTIGUOUS_PAGE:
        return Category(name, nbytes, "documented", f"runtime.md 3.1: {pages}")
    return Category(name, nbytes, "observed" if seen else "inferred", f"{_CAPTURES}: {pages}")


def ring_uses(graph: Subgraph) -> dict[str, tuple[str, int]]:
    """Return the use and the bytes of the rings of each queue.

    A queue has a ring for both ends on sixteen DMA engines, with its share of every transfer's descriptors and of what
    signals its end. Transfers that words describe themselves are made on the device and need none.
    """
    each: dict[str, int] = {}
    outside: set[str] = set()
    for block in graph.dma_blocks.values():
        signals = 2 if any(_lanes(one) for one in block.descriptors) else 1
        number = sum(_elements(one) for one in block.descriptors)
        each[block.queue] = each.get(block.queue, 0) + -(-number // DMA_ENGINES) + signals
        for descriptor in block.descriptors:
            found = (graph.variables.get(name) for name in (descriptor.source, descriptor.target))
            if any(one is not None and one.kind in ("input", "output") for one in found):
                outside.add(block.queue)
    return {queue: ("dma rings io" if queue in outside else "dma rings spill",
                    max(_RING_LEAST, (number // _RING_STEP + 1) * _RING_STEP) * 2 * _DESCRIPTOR_BYTES * DMA_ENGINES)
            for queue, number in each.items()}  # fmt: skip


def _elements(descriptor: Descriptor) -> int:
    """Return the descriptors of the hardware that one of the file becomes: a run of bytes each, at most 64 KiB."""
    sizes = descriptor.target_sizes
    if not sizes or min(sizes) < 1:
        return 0
    lanes = _lanes(descriptor)
    if lanes:
        # A transpose moves rows of two-byte elements: wider ones take as many passes.
        return max(prod(descriptor.source_sizes[1:]), prod(sizes[1:])) * lanes
    return prod(sizes[1:]) * -(-sizes[0] // DESCRIPTOR_LIMIT)


def _lanes(descriptor: Descriptor) -> int:
    """Return how many two-byte lanes the elements of a transposing descriptor have; 0 for any other descriptor."""
    return max(1, (descriptor.transpose_element_size or 0) // 2) if descriptor.transpose_shape else 0
