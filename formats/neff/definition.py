"""`def.json`, the start file of a subgraph: engines, variables, DMA queues, what the runtime keeps for itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from formats.engines import ENGINES, short_engine
from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neff.fields import Fields

__all__ = [
    "ENGINE_KEYS",
    "EXTENDED_FEATURE",
    "QUEUE_KINDS",
    "VARIABLE_KINDS",
    "Definition",
    "Dialect",
    "EngineFiles",
    "Queue",
    "Reservation",
    "Variable",
    "parse_definition",
]

ENGINE_KEYS: dict[str, str] = {name: short_engine(name) for name in ENGINES}
_KEY_ENGINES = {key: engine for engine, key in ENGINE_KEYS.items()}

# Files that carry this feature hold extension words and codes of ours; AWS's tools do not know it.
EXTENDED_FEATURE = "neurontools_extended"
Dialect = Literal["neuron", "extended"]

# Source: formats.md 3.5. All but tmp-buf and pointer were seen.
VARIABLE_KINDS: tuple[str, ...] = (
    "state-buffer",
    "input",
    "output",
    "file",
    "tmp-buf",
    "virtual",
    "pointer",
    "dge-table",
)
QUEUE_KINDS: tuple[str, ...] = ("in", "out", "data", "embedding_update", "dynamic")


class Variable(NamedTuple):
    """One variable of a subgraph; `size`, `alignment` and `backing_offset` are bytes.

    `backing_offset` is a virtual variable's place in the shared scratchpad, `entries` the var_ids of a dge-table.
    """

    name: str
    kind: str
    var_id: int
    size: int | None = None
    alignment: int | None = None
    file_name: str | None = None
    backing_offset: int | None = None
    entries: tuple[int, ...] = ()
    fabric_path: str | None = None
    referenced_var_id: int | None = None
    extra: Mapping[str, object] = {}


class Queue(NamedTuple):
    """One DMA queue set: `num_queues` rings that start together; a transfer raises its semaphore by that number.

    `scratch_offset` and `scratch_size` are bytes of each SBUF partition that descriptor generation keeps for itself.
    """

    name: str
    kind: str
    owner: str | None = None
    num_queues: int = 1
    semaphores: tuple[int, ...] = ()
    semaphore: int | None = None
    fabric_path: str = "main"
    queue_instances: tuple[str, ...] = ()
    pinned: bool = False
    scratch_offset: int | None = None
    scratch_size: int | None = None
    extra: Mapping[str, object] = {}

    @property
    def engine(self) -> str | None:
        """Return the engine that owns the queue, as streams are named."""
        return _KEY_ENGINES.get(self.owner or "")

    @property
    def all_semaphores(self) -> tuple[int, ...]:
        """Return every semaphore the queue names."""
        return self.semaphores if self.semaphore is None else (*self.semaphores, self.semaphore)


class EngineFiles(NamedTuple):
    """Members that belong to one engine, relative to the subgraph's folder; None where the definition names none."""

    json: str | None
    instructions: str | None
    asm_debug: tuple[str, ...]
    debug: tuple[str, ...]


class Reservation(NamedTuple):
    """Bytes of the state buffer that the runtime keeps: `offset` and `size` inside each of `partitions` partitions."""

    kind: str
    base_partition: int
    partitions: int
    offset: int
    size: int


class Definition(NamedTuple):
    """Everything `def.json` says; `raw` is the object as it was read. Source: formats.md 3.5."""

    name: str
    version: str
    engines: Mapping[str, EngineFiles]
    dma_debug: tuple[str, ...]
    queues: Mapping[str, Queue]
    variables: Mapping[str, Variable]
    features: tuple[str, ...]
    runtime_event_count: int
    runtime_semaphore_count: int
    reservations: tuple[Reservation, ...]
    fp8_conversion: Mapping[str, object]
    cc_streams: int
    rank_world_size: int
    raw: Mapping[str, object]


def parse_definition(fields: Fields) -> Definition:
    """Return the definition in a JSON object.

    Raises FormatError where a key has another kind than documented, or two variables share a var_id.
    """
    variables = {name: _variable(name, item) for name, item in fields.named_objects("var")}
    owners: dict[int, str] = {}
    for variable in variables.values():
        first = owners.setdefault(variable.var_id, variable.name)
        if first != variable.name:
            raise FormatError(
                "two variables share a var_id",
                path=fields.where,
                field="var",
                got=f"{first} and {variable.name} both {variable.var_id}",
            )
    return Definition(
        name=fields.text("name", "definition"),
        version=fields.text("version", ""),
        engines={engine: _engine_files(fields, key) for engine, key in ENGINE_KEYS.items()},
        dma_debug=fields.texts("dma_dbg"),
        queues={name: _queue(name, item) for name, item in fields.named_objects("dma_queue")},
        variables=variables,
        features=fields.texts("neff_features"),
        runtime_event_count=fields.integer("runtime_event_count", 0),
        runtime_semaphore_count=fields.integer("runtime_semaphore_count", 0),
        reservations=tuple(_reservation(item) for item in fields.objects("runtime_statebuffer_reservation")),
        fp8_conversion=fields.object("fp8_conversion_config").raw,
        cc_streams=fields.object("cc_streams").integer("num_streams", 0),
        rank_world_size=fields.integer("#rank_world_size", 0),
        raw=fields.raw,
    )


def _engine_files(fields: Fields, key: str) -> EngineFiles:
    return EngineFiles(
        fields.optional_text(key),
        fields.optional_text(f"{key}_instr"),
        fields.texts(f"{key}_asm_dbg"),
        fields.texts(f"{key}_dbg"),
    )


def _variable(name: str, fields: Fields) -> Variable:
    extra = fields.rest(
        "type",
        "var_id",
        "size",
        "alignment",
        "file_name",
        "backing_variable_off",
        "list",
        "fabric_path",
        "referenced_var_id",
        "ops",
    )
    return Variable(
        name,
        fields.text("type"),
        fields.integer("var_id"),
        fields.optional_integer("size"),
        fields.optional_integer("alignment"),
        fields.optional_text("file_name"),
        fields.optional_integer("backing_variable_off"),
        fields.integers("list"),
        fields.optional_text("fabric_path"),
        fields.optional_integer("referenced_var_id"),
        extra,
    )


def _queue(name: str, fields: Fields) -> Queue:
    scratch = fields.object("dynamic_dma")
    extra = fields.rest(
        "type",
        "owner",
        "num_queues",
        "semaphore_set",
        "semaphore",
        "fabric_path",
        "queue_instances",
        "pinned",
        "dynamic_dma",
    )
    return Queue(
        name,
        fields.text("type"),
        fields.optional_text("owner"),
        fields.integer("num_queues", 1),
        fields.integers("semaphore_set"),
        fields.optional_integer("semaphore"),
        fields.text("fabric_path", "main"),
        fields.texts("queue_instances"),
        fields.flag("pinned"),
        scratch.optional_integer("SB_scratch_partition_offset"),
        scratch.optional_integer("SB_scratch_partition_size"),
        extra,
    )


def _reservation(fields: Fields) -> Reservation:
    return Reservation(
        fields.text("type", ""),
        fields.integer("base_partition", 0),
        fields.integer("partitions", 0),
        fields.integer("offset", 0),
        fields.integer("size", 0),
    )
