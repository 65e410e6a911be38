"""One subgraph of a NEFF: what runs on one physical core, every part read when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from formats.engines import ENGINES
from formats.errors import FormatError, NotFoundError, UnsupportedError
from formats.neff.activation import (
    ActivationFunction,
    ActivationInfo,
    ActivationSet,
    Buckets,
    Controls,
    parse_act_info,
    parse_activation_set,
)
from formats.neff.container import Container
from formats.neff.debuginfo import DebugFile, DebugStep, SourceLocation, chain, locate
from formats.neff.definition import EXTENDED_FEATURE, Definition, Dialect, Queue, Variable, parse_definition
from formats.neff.fields import Fields
from formats.neff.graph import TensorInfo, parse_tensor_map
from formats.neff.npy import Npy, parse_npy
from formats.neff.operations import OPERATIONS, Operations, parse_operations
from formats.neff.transfers import DmaBlock, EngineFile, parse_engine_file

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from formats.isa import Instruction, Stream

__all__ = ["Streams", "Subgraph"]

_SOURCES = 1 << 12  # words whose places are remembered


class Streams(Mapping[str, "Stream"]):
    """The instruction streams of a subgraph by engine, decoded when first used; `decoded` are those that were."""

    def __init__(self, subgraph: Subgraph, decoded: dict[str, Stream]) -> None:
        self._subgraph = subgraph
        self._streams = decoded

    def __getitem__(self, engine: str) -> Stream:
        if engine not in self._streams:
            if engine not in ENGINES:
                raise KeyError(engine)
            from formats.isa import decode_stream  # deferred: start-up

            owner = self._subgraph
            self._streams[engine] = decode_stream(
                owner.stream_bytes(engine), owner.neff.target.generation, owner.dialect, f"{owner.name}/{engine}"
            )
        return self._streams[engine]

    def __contains__(self, engine: object) -> bool:
        return engine in ENGINES

    def __iter__(self) -> Iterator[str]:
        return iter(ENGINES)

    def __len__(self) -> int:
        return len(ENGINES)


class Subgraph:
    """What one physical core of the logical core runs.

    Every attribute raises FormatError where its member is missing or malformed.
    """

    def __init__(self, neff: Container, index: int, name: str, definition_member: str) -> None:
        self.neff, self.index, self.name = neff, index, name
        self.definition_member = definition_member
        self.folder = definition_member.rpartition("/")[0]
        self._decoded: dict[str, Stream] = {}

    def __repr__(self) -> str:
        return f"<Subgraph {self.name}>"

    @property
    def streams(self) -> Streams:
        """Return the instruction streams by engine; they hold the subgraph, which does not hold them."""
        return Streams(self, self._decoded)

    def member(self, name: str) -> str:
        """Return the archive name of a file that the definition names."""
        return f"{self.folder}/{name}" if self.folder else name

    def has(self, name: str | None) -> bool:
        """Return whether the archive holds a file that the definition names."""
        return name is not None and self.member(name) in self.neff.archive

    def read(self, name: str) -> bytes:
        """Return a file that the definition names.

        Raises FormatError when the archive does not hold it.
        """
        return self.neff.need(self.member(name))

    def parsed_bytes(self, name: str) -> bytes:
        """Return a file that is going to be parsed, under the cap for such files."""
        return self.neff.parsed_bytes(self.member(name))

    def _json(self, name: str) -> Fields:
        return self.neff.json_fields(self.member(name))

    @cached_property
    def definition(self) -> Definition:
        """Return everything `def.json` says."""
        return parse_definition(self.neff.json_fields(self.definition_member))

    @property
    def dialect(self) -> Dialect:
        """Return "extended" for files that say they hold words of ours, else "neuron"."""
        return "extended" if EXTENDED_FEATURE in self.definition.features else "neuron"

    @property
    def variables(self) -> Mapping[str, Variable]:
        """Return the variables by name."""
        return self.definition.variables

    @property
    def queues(self) -> Mapping[str, Queue]:
        """Return the DMA queues by name."""
        return self.definition.queues

    def queue_of(self, name: str) -> Queue | None:
        """Return the queue of that name, or the one that has a ring set (instance) of that name."""
        found = self.queues.get(name)
        return found or next((queue for queue in self.queues.values() if name in queue.queue_instances), None)

    @cached_property
    def variables_by_id(self) -> Mapping[int, Variable]:
        """Return the variables by var_id, as DMA words name them."""
        return {variable.var_id: variable for variable in self.variables.values()}

    @property
    def dge_table(self) -> Variable | None:
        """Return the table that DMA words index, if there is one."""
        return next((variable for variable in self.variables.values() if variable.kind == "dge-table"), None)

    def stream_bytes(self, engine: str) -> bytes:
        """Return the instruction words of an engine.

        Raises NotFoundError for a name that is not an engine, FormatError where the definition names no stream.
        """
        if engine not in ENGINES:
            raise NotFoundError(f"no engine {engine!r}, there are {' '.join(ENGINES)}")
        name = self.definition.engines[engine].instructions
        if name is None:
            raise FormatError("definition names no instruction file", path=self.definition_member, field=engine)
        return self.read(name)

    def decode(self, raw: bytes) -> Instruction:
        """Return one instruction in the file's target and dialect."""
        from formats.isa import decode  # deferred: start-up

        return decode(raw, self.neff.target.generation, self.dialect)

    @cached_property
    def engine_files(self) -> Mapping[str, EngineFile]:
        """Return what each engine's JSON says; engines without one are left out."""
        names = {engine: files.json for engine, files in self.definition.engines.items()}
        return {
            engine: parse_engine_file(engine, self._json(name)) for engine, name in names.items() if name is not None
        }

    @cached_property
    def dma_blocks(self) -> Mapping[tuple[str, int], DmaBlock]:
        """Return the DMA blocks of all engines by (queue, block id)."""
        blocks: dict[tuple[str, int], DmaBlock] = {}
        for file in self.engine_files.values():
            for block in file.dma:
                key = block.queue, block.block_id
                if key in blocks:
                    raise FormatError("two DMA blocks share queue and id", path=self.name, got=f"{key[0]} {key[1]}")
                blocks[key] = block
        return blocks

    @cached_property
    def tensors(self) -> Mapping[str, TensorInfo]:
        """Return the tensors of `tensor_map.json` by name; none where the file is missing."""
        return parse_tensor_map(self._json("tensor_map.json")) if self.has("tensor_map.json") else {}

    def npy(self, variable: str | Variable) -> Npy | None:
        """Return a constant's array file taken apart, or None where the constant is raw bytes."""
        name, data = self._constant_file(variable)
        if not name.endswith(".npy"):  # the name alone decides (formats.md 3.5)
            return None
        return parse_npy(data, self.member(name))

    def constant(self, variable: str | Variable) -> bytes:
        """Return the bytes that a constant occupies in device memory: the array's payload, or the raw file.

        Raises UnsupportedError for an array in another order than the device's: whether it is turned is not known.
        """
        name, data = self._constant_file(variable)
        if not name.endswith(".npy"):
            return data
        array = parse_npy(data, self.member(name))
        if array.fortran_order or array.descr[0] == ">":
            order = "columns first" if array.fortran_order else "most significant bytes first"
            raise UnsupportedError(f"{self.member(name)}: how a constant stored {order} is loaded is not known")
        return array.payload

    def constant_array(self, variable: str | Variable) -> npt.NDArray[Any]:
        """Return a constant as an array, raw files as uint8.

        bfloat16 and fp8 have their own type once ml_dtypes is imported, and are unsigned integers before.
        """
        import numpy as np

        array = self.npy(variable)
        if array is None:
            return np.frombuffer(self.constant(variable), dtype=np.uint8)
        try:
            stored = _plain_type(array.descr) or self._named_type(variable) or np.dtype(f"<u{array.item_size}")
        except TypeError:
            stored = np.dtype(object)
        if stored.hasobject or stored.itemsize != array.item_size:
            where = self.member(self._constant_file(variable)[0])
            raise FormatError("NumPy element type is not understood", path=where, got=array.descr)
        flat: npt.NDArray[Any] = np.frombuffer(array.payload, dtype=stored)
        return flat.reshape(array.shape, order="F" if array.fortran_order else "C")

    def _named_type(self, variable: str | Variable) -> np.dtype[Any] | None:
        """NumPy writes types it does not know as void; the tensor map has their name."""
        import numpy as np

        name = self._constant_file(variable)[0].removeprefix("value_").removesuffix(".npy")
        tensor = self.tensors.get(name)
        if tensor is None:
            return None
        try:
            return np.dtype(tensor.dtype)
        except TypeError:
            return None

    def _constant_file(self, variable: str | Variable) -> tuple[str, bytes]:
        found = self.variables.get(variable) if isinstance(variable, str) else variable
        if found is None:
            raise NotFoundError(f"{self.name}: no variable {variable!r}")
        if found.file_name is None:
            raise NotFoundError(f"{self.name}: variable {found.name!r} ({found.kind}) has no file")
        return found.file_name, self.read(found.file_name)

    @cached_property
    def activation_info(self) -> ActivationInfo | None:
        """Return what `act_info.json` says, or None where the file is missing."""
        file = self.engine_files.get("Activation")
        name = file.act_info if file is not None else None
        return parse_act_info(self._json(name)) if name is not None and self.has(name) else None

    @cached_property
    def activation_sets(self) -> tuple[ActivationSet, ...]:
        """Return the activation function sets that the subgraph uses, in the order that ACT_TABLE_LOAD selects by."""
        file = self.engine_files.get("Activation")
        names = file.activation_function_sets if file is not None else ()
        return tuple(self._activation_set(index, name) for index, name in enumerate(names))

    def _activation_set(self, index: int, name: str) -> ActivationSet:
        known = self.activation_info.find(name) if self.activation_info is not None else None
        fields = self._json((known.profile_file if known else "") or f"{name}.json")
        buckets, controls = fields.text("bkt_bin", f"{name}_bkt.bin"), fields.text("ctl_bin", f"{name}_ctrl.bin")
        return parse_activation_set(
            name,
            index,
            fields,
            Buckets(self.read(buckets), self.member(buckets)),
            Controls(self.read(controls), self.member(controls)),
        )

    @property
    def activation_functions(self) -> tuple[ActivationFunction, ...]:
        """Return the functions of all used sets, those of the first set first."""
        return tuple(function for item in self.activation_sets for function in item.functions)

    @cached_property
    def _debug(self) -> dict[str, DebugFile | None]:
        return {}

    def debug(self, engine: str) -> DebugFile | None:
        """Return the debug info whose i-th entry belongs to the i-th 64-byte slot of a stream, if there is any."""
        if engine not in self._debug:
            files = self.definition.engines[engine].asm_debug if engine in ENGINES else ()
            name = next((name for name in files if self.has(name)), None)
            self._debug[engine] = None if name is None else self.neff.debug_file(self.member(name))
        return self._debug[engine]

    def debug_parent(self, level: DebugFile) -> DebugFile | None:
        """Return the debug info one level up, or None where the archive does not hold it."""
        return self.neff.debug_parent(level, self.folder, self.index)

    def source_of(self, engine: str, pc: int) -> SourceLocation | None:
        """Return where the word in 64-byte slot `pc` of an engine comes from, or None where nothing is known."""
        known, where = self._sources, (engine, pc)
        if where not in known:
            asm = self.debug(engine)
            found = None if asm is None else locate(asm, pc, self.debug_parent)
            if found is not None and self.operations is not None:
                found = found._replace(operation=self.operations.of_word(found.name) or None)
            if len(known) >= _SOURCES:
                known.clear()
            known[where] = found
        return known[where]

    @cached_property
    def _sources(self) -> dict[tuple[str, int], SourceLocation | None]:
        return {}  # runs of a file warn of the same words

    @cached_property
    def operations(self) -> Operations | None:
        """Return the operations of the graph that the subgraph was compiled from, None where the file has none."""
        if not self.has(OPERATIONS):
            return None
        return parse_operations(self.parsed_bytes(OPERATIONS), self.member(OPERATIONS))

    def chain_of(self, engine: str, pc: int) -> tuple[DebugStep, ...]:
        """Return what the word in 64-byte slot `pc` comes from, from its own entry up to the framework's operation."""
        asm = self.debug(engine)
        return () if asm is None else chain(asm, pc, self.debug_parent)


def _plain_type(descr: str) -> np.dtype[Any] | None:
    """Return NumPy's own type, or None for void and for names that only another package knows (`<f1` is fp8)."""
    import numpy as np

    try:
        stored = np.dtype(descr)
    except TypeError:
        return None
    return None if stored.kind == "V" else stored
