"""How much device memory a NEFF takes, by the categories that the Neuron runtime reports. Source: runtime.md 3.1.

Sizes are bytes. What the runtime adds that no file tells (its own buffers, the rings of its own transfers) is not
counted; each category says how it is known.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from formats.neff.reader import Neff
    from formats.neff.subgraph import Subgraph
    from formats.neff.transfers import Descriptor

__all__ = ["MICROCODE_BYTES", "Category", "device_memory", "scratchpad_page"]

_MIB = 1 << 20
# Of every physical core; the documentation says MB.
MICROCODE_BYTES = 96 * _MIB
_CONTIGUOUS_PAGE, _PAGE = 64 * _MIB, 512 * _MIB
_DESCRIPTOR_BYTES, _DESCRIPTOR_REACH, _RING_LEAST = 16, 65536, 32
_OWN_TABLES = "_table.bin", "_bkt.bin", "_ctrl.bin"


class Category(NamedTuple):
    """One row of the ledger: name as the runtime's table has it, bytes over all cores of the file, source."""

    name: str
    bytes: int
    provenance: str
    cite: str


def scratchpad_page(generation: str, lnc: int) -> int:
    """Return the bytes that scratchpad memory is taken in: LNC 1 of gen3 and gen4 has pages, the others one region."""
    return _PAGE if lnc == 1 and generation in ("gen3", "gen4") else _CONTIGUOUS_PAGE


def device_memory(neff: Neff) -> tuple[Category, ...]:
    """Return what a loaded file and one set of its inputs and outputs take, category by category.

    Tensors are those of the graph, once for all cores; everything else is each core's own.
    """
    code = constants = scratch = private = tables = io = spill = 0
    tensors: dict[str, int] = {}
    page = scratchpad_page(neff.target.generation, neff.lnc)
    for graph in neff.subgraphs:
        code += MICROCODE_BYTES + sum(len(graph.stream_bytes(engine)) for engine in graph.streams)
        need = 0
        for variable in graph.variables.values():
            size = max(0, variable.size or 0)
            if variable.kind in ("input", "output"):
                tensors[variable.name] = size
            elif variable.kind == "virtual":
                need = max(need, (variable.backing_offset or 0) + size)
            elif variable.kind == "file":
                constants += size
            elif variable.kind == "tmp-buf":
                private += size
        scratch += -(-need // page) * page
        folder = f"{graph.folder}/" if graph.folder else ""
        tables += sum(m.size for m in neff.members if m.name.startswith(folder) and m.name.endswith(_OWN_TABLES))
        of_io, of_spill = _rings(graph)
        io, spill = io + of_io, spill + of_spill
    return (
        Category("Model Code", code, "documented", "runtime.md 3.1: 96 MB of microcode per physical core"),
        Category("Model Constants", constants, "documented", "runtime.md 3.1"),
        Category("Tensors", sum(tensors.values()), "documented", "runtime.md 3.1: allocated by the caller"),
        Category("Shared Scratchpad", scratch, "documented", f"runtime.md 3.1: pages of {page // _MIB} MiB"),
        Category("Scratchpad", private, "inferred", "formats.md 3.5: variables of type tmp-buf"),
        Category("Runtime", tables, "inferred", "runtime.md 3.1: activation and DVE tables of the file"),
        Category("DMA Rings IO", io, "inferred", "formats.md 8.1: 16 bytes a descriptor, both ends"),
        Category("DMA Rings Spill", spill, "inferred", "formats.md 8.1"),
    )


def _rings(graph: Subgraph) -> tuple[int, int]:
    """Return the bytes of descriptors that touch inputs or outputs, and of the others.

    Transfers that words describe themselves are made on the device and need none.
    """
    io = spill = 0
    for block in graph.dma_blocks.values():
        for descriptor in block.descriptors:
            number = 2 * _DESCRIPTOR_BYTES * _elements(descriptor)
            kinds = {
                one.kind
                for name in (descriptor.source, descriptor.target)
                if (one := graph.variables.get(name)) is not None
            }
            if kinds & {"input", "output"}:
                io += number
            else:
                spill += number
    least = 2 * _DESCRIPTOR_BYTES * _RING_LEAST
    return max(io, least) if io else 0, max(spill, least) if spill else 0


def _elements(descriptor: Descriptor) -> int:
    """Return the descriptors of the hardware that one of the file becomes: a run of bytes each, at most 64 KiB."""
    sizes = descriptor.target_sizes
    if not sizes or min(sizes) < 1:
        return 0
    return prod(sizes[1:]) * -(-sizes[0] // _DESCRIPTOR_REACH)
