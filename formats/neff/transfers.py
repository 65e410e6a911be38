"""`<Engine>.json`: the engine's DMA blocks and descriptors, and the names of its tables."""

from __future__ import annotations

from collections.abc import Mapping

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neff.fields import Fields

__all__ = [
    "DESCRIPTOR_OPS",
    "FARTHEST",
    "MAX_DIMENSIONS",
    "Descriptor",
    "DmaBlock",
    "EngineFile",
    "Source",
    "descriptor_json",
    "extent",
    "parse_engine_file",
]

# A step of a dimension of one element reaches nothing, so no bound of a memory holds it; addresses have 64 bits.
FARTHEST = (1 << 62) - 1
# Source: formats.md 3.6. copy and cast were seen.
MAX_DIMENSIONS = 4  # of a side (formats.md 3.6)
DESCRIPTOR_OPS: tuple[str, ...] = ("copy", "cast", "add", "min", "max", "fma", "transpose")


class Source(NamedTuple):
    """One source of a descriptor with several: variable, byte offset, sizes and steps, innermost first."""

    variable: str
    dtype: str
    offset: int
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    extra: Mapping[str, object] = {}


class Descriptor(NamedTuple):
    """One transfer between variables, at most four dimensions a side, innermost first.

    Offsets and steps are bytes; the innermost size is bytes, the other sizes are counts. `source` and `target` name
    variables; `sources` lists them where an operation combines several. Source: formats.md 3.6.
    `transpose_op` names the order of dimensions that comes out; compiler 2.21 writes it instead of `op`.
    """

    source: str
    source_offset: int
    source_sizes: tuple[int, ...]
    source_steps: tuple[int, ...]
    target: str
    target_offset: int
    target_sizes: tuple[int, ...]
    target_steps: tuple[int, ...]
    op: str = "copy"
    source_dtype: str = "uint8"
    target_dtype: str = "uint8"
    sources: tuple[Source, ...] = ()
    scale: float = 1.0
    scale_dtype: str | None = None
    constant: float | None = None
    constant_dtype: str | None = None
    transpose_shape: tuple[int, ...] = ()
    transpose_element_size: int | None = None
    transpose_op: str | None = None
    num_tiling_dimensions: int = 1
    extra: Mapping[str, object] = {}


class DmaBlock(NamedTuple):
    """Descriptors that one trigger word starts; `semaphore` rises by the queue's `num_queues` when all are done."""

    queue: str
    block_id: int
    engine: str
    semaphore: int | None
    descriptors: tuple[Descriptor, ...]
    event: int | None = None
    remote_semaphores: tuple[int, ...] = ()
    comment: str | None = None
    instance_name: str | None = None
    extra: Mapping[str, object] = {}


class EngineFile(NamedTuple):
    """Everything `<Engine>.json` says."""

    engine: str
    name: str
    instructions: str | None
    dma: tuple[DmaBlock, ...]
    act_info: str | None
    act_semaphore: int | None
    activation_function_sets: tuple[str, ...]
    dve_tables: tuple[Mapping[str, object], ...]
    extra: Mapping[str, object]


def parse_engine_file(engine: str, fields: Fields) -> EngineFile:
    """Return what the engine's JSON says.

    Raises FormatError for wrong kinds, for descriptors whose sizes and steps differ in number, and for two blocks with
    one queue and id.
    """
    blocks = tuple(_block(engine, item) for item in fields.objects("dma"))
    seen: set[tuple[str, int]] = set()
    for block in blocks:
        if (block.queue, block.block_id) in seen:
            raise FormatError(
                "two DMA blocks share queue and id",
                path=fields.where,
                field="dma",
                got=f"{block.queue} {block.block_id}",
            )
        seen.add((block.queue, block.block_id))
    return EngineFile(
        engine,
        fields.text("name", ""),
        fields.optional_text("instr"),
        blocks,
        fields.optional_text("act_info"),
        fields.optional_integer("act_semaphore"),
        fields.texts("activation_function_sets"),
        tuple(item.raw for item in fields.objects("dve_tables")),
        fields.rest("name", "instr", "dma", "act_info", "act_semaphore", "activation_function_sets", "dve_tables"),
    )


def extent(offset: int, sizes: tuple[int, ...], steps: tuple[int, ...]) -> tuple[int, int]:
    """Return the first byte that a pattern touches and the one after its last; equal when it touches none."""
    if not sizes or min(sizes) <= 0:
        return offset, offset
    low = high = offset
    for size, step in zip(sizes, steps, strict=True):
        reach = (size - 1) * step
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + 1


def descriptor_json(descriptor: Descriptor) -> dict[str, object]:
    """Return a descriptor as the engine's JSON holds it; values that equal their default are left out."""
    # Compiler 2.21 leaves `op` out where `transpose_op` says what is done.
    implied = descriptor.transpose_op is not None and descriptor.op == "transpose"
    out: dict[str, object] = {} if implied else {"op": descriptor.op}
    if descriptor.sources:
        out["from_arr"] = [
            {
                "from": s.variable,
                "from_dtype": s.dtype,
                "from_off": s.offset,
                "from_sizes": list(s.sizes),
                "from_steps": list(s.steps),
            }
            for s in descriptor.sources
        ]
    else:
        out |= {
            "from": descriptor.source,
            "from_dtype": descriptor.source_dtype,
            "from_off": descriptor.source_offset,
            "from_sizes": list(descriptor.source_sizes),
            "from_steps": list(descriptor.source_steps),
        }
    out |= {
        "to": descriptor.target,
        "to_dtype": descriptor.target_dtype,
        "to_off": descriptor.target_offset,
        "to_sizes": list(descriptor.target_sizes),
        "to_steps": list(descriptor.target_steps),
        "num_tiling_dimensions": descriptor.num_tiling_dimensions,
    }
    if descriptor.op == "fma":
        out["scale"] = descriptor.scale
    optional = {
        "scale_dtype": descriptor.scale_dtype,
        "constant": descriptor.constant,
        "constant_dtype": descriptor.constant_dtype,
        "transpose_shape": list(descriptor.transpose_shape) or None,
        "transpose_element_size": descriptor.transpose_element_size,
        "transpose_op": descriptor.transpose_op,
    }
    out |= {key: value for key, value in optional.items() if value is not None}
    return out | dict(descriptor.extra)


def _block(engine: str, fields: Fields) -> DmaBlock:
    instance = fields.optional_text("instance_name")
    queue = fields.optional_text("queue") or instance
    if queue is None:
        raise fields.fail("queue", "a queue or an instance name")
    return DmaBlock(
        queue,
        fields.integer("id"),
        engine,
        fields.optional_integer("semaphore"),
        tuple(_descriptor(item) for item in fields.objects("desc")),
        fields.optional_integer("event"),
        fields.integers("remote_semaphores"),
        fields.optional_text("#comment"),
        instance,
        fields.rest("queue", "instance_name", "id", "semaphore", "desc", "event", "remote_semaphores", "#comment"),
    )


def _descriptor(fields: Fields) -> Descriptor:
    sources = tuple(
        _side(item, "from")._replace(extra=item.rest(*_side_keys("from"))) for item in fields.objects("from_arr")
    )
    if sources and "from" in fields:
        raise FormatError("two ways to name what is read", path=fields.where, field="from", expected="from_arr alone")
    # with several sources, the first stands for them where one is asked for
    source = sources[0] if sources else _side(fields, "from")
    target = _side(fields, "to")
    transpose_op = fields.optional_text("transpose_op")
    constant = None if fields.raw.get("constant") is None else fields.number("constant")
    known = (
        "op",
        "from_arr",
        "scale",
        "scale_dtype",
        "constant",
        "constant_dtype",
        "transpose_shape",
        "transpose_element_size",
        "transpose_op",
        "num_tiling_dimensions",
        *_side_keys("from"),
        *_side_keys("to"),
    )
    return Descriptor(
        source.variable,
        source.offset,
        source.sizes,
        source.steps,
        target.variable,
        target.offset,
        target.sizes,
        target.steps,
        fields.text("op", "copy" if transpose_op is None else "transpose"),
        source.dtype,
        target.dtype,
        sources,
        fields.number("scale", 1.0),
        fields.optional_text("scale_dtype"),
        constant,
        fields.optional_text("constant_dtype"),
        fields.integers("transpose_shape"),
        fields.optional_integer("transpose_element_size"),
        transpose_op,
        fields.integer("num_tiling_dimensions", 1),
        fields.rest(*known),
    )


def _side_keys(side: str) -> tuple[str, ...]:
    return tuple(f"{side}{end}" for end in ("", "_dtype", "_off", "_sizes", "_steps"))


def _side(fields: Fields, side: str) -> Source:
    sizes, steps = fields.integers(f"{side}_sizes"), fields.integers(f"{side}_steps")
    if len(sizes) != len(steps):
        raise FormatError(
            "sizes and steps differ in number",
            path=fields.where,
            field=f"{side}_sizes",
            got=f"{len(sizes)} and {len(steps)}",
        )
    offset = fields.integer(f"{side}_off")
    for key, value in (("off", offset), *(("sizes", one) for one in sizes), *(("steps", one) for one in steps)):
        if abs(value) > FARTHEST:
            raise FormatError("lies beyond every address", path=fields.where, field=f"{side}_{key}", got=str(value))
    return Source(fields.text(side), fields.text(f"{side}_dtype", "uint8"), offset, sizes, steps)
