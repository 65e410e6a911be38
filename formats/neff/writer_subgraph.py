"""The part of a NEFF that one physical core runs, collected call by call; every call checks what it is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial

from formats.engines import ENGINES
from formats.errors import FormatError
from formats.neff.debug_writer import DebugFiles, Entries, EntryFields, EntryMaker
from formats.neff.definition import (
    ENGINE_KEYS,
    EXTENDED_FEATURE,
    QUEUE_KINDS,
    VARIABLE_KINDS,
    Definition,
    Queue,
    Reservation,
    Variable,
)
from formats.neff.graph import TensorInfo
from formats.neff.made import Content, JsonContent, SaidCore
from formats.neff.npy import parse_npy
from formats.neff.transfers import DESCRIPTOR_OPS, Descriptor, DmaBlock
from formats.neff.writer_kept import Declaration, Tables, kept_definition, kept_queue
from formats.neff.writer_said import DEFINITION_VERSION, definition_as_read, engine_members, engines_as_read
from formats.neff.writer_values import (
    block_json,
    constant_file,
    dtype_name,
    function_code,
    json_bytes,
    queue_json,
    reservation_json,
    shape_tuple,
    tensor_json,
    variable_json,
)
from formats.neuron_core import PARTITIONS, SBUF_BYTES, SBUF_TAKEN, WORD
from formats.targets import Target

__all__ = ["SubgraphWriter"]

# What the gen3 runtime keeps of every partition (formats.md 3.5); other generations show nothing of the kind.
_GEN3_RESERVATION = Reservation(
    "evtaccel", 0, PARTITIONS, SBUF_BYTES["gen3"] - SBUF_TAKEN["gen3"][1], SBUF_TAKEN["gen3"][1]
)
# as many of each, from 0 on, belong to the runtime in every known file (formats.md 3.5)
_RUNTIME_EVENTS, _RUNTIME_SEMAPHORES = 12, 3
_ENTRY = 32
_ENTRY_LENGTHS = frozenset({1, 2, 3, 4})  # of debug entries
_ALL = frozenset(ENGINES)
_TENSOR_KINDS = "input", "output", "constant", ""


@cache
def _engine_names(folder: str) -> tuple[tuple[str, str, str], ...]:
    """Return each engine with the members of its words and of what else it has; there are two folders."""
    return tuple([(engine, f"{folder}/{engine}.bin", f"{folder}/{engine}.json") for engine in ENGINES])


@cache
def _prelude_of(generation: str) -> bytes:
    """Return the words of an engine that has nothing to do."""
    from formats.isa import OpcodeCC, SetOrderingMode  # deferred: start-up

    marker = b"" if generation == "gen2" else OpcodeCC().encode()
    return SetOrderingMode().encode() + marker


class SubgraphWriter:
    """Collect one subgraph; variables, queues and tensors keep the order of the calls in nothing but their numbers.

    An engine without a stream gets the prelude that the compiler gives idle engines.
    """

    def __init__(self, target: Target, index: int, lnc: int) -> None:
        self.target, self.index, self.name = target, index, f"sg{index:02d}"
        self._features = ["neff_feature_vnc"] if lnc > 1 else []
        self._reservations = [_GEN3_RESERVATION] if target.generation == "gen3" else []
        self._streams: dict[str, bytes] = {}
        self._variables: dict[str, Variable] = {}
        self._ids: set[int] = set()
        self._next_id = 1
        self._queues: dict[str, Queue] = {}
        self._blocks: dict[str, dict[tuple[str, int], DmaBlock]] = {engine: {} for engine in ENGINES}
        self._tensors: dict[str, TensorInfo] = {}
        self._implied: set[str] = set()
        self._sets: dict[str, tuple[dict[str, int], dict[str, Content]]] = {}
        self._constants: dict[str, bytes] = {}
        self._debug: dict[str, Entries] = {}
        self._declared: Declaration | None = None  # all variables and tensors so far, where those are another's too

    def stream(self, engine: str, data: bytes | bytearray) -> None:
        """Set the instruction words of an engine."""
        if engine not in ENGINES:
            raise self._no_engine(engine)
        if len(data) % WORD:
            raise FormatError(
                "stream is not made of whole words",
                path=self.name,
                field=engine,
                expected="a multiple of 64 bytes",
                got=len(data),
            )
        self._streams[engine] = bytes(data)

    def streams(self, words: Mapping[str, bytes], debug: Mapping[str, EntryMaker]) -> None:
        """Set the words of all engines at once, and what makes where they come from, as `stream` and `debug` do."""
        if words.keys() != _ALL or debug.keys() != _ALL or any(map(WORD.__rmod__, map(len, words.values()))):
            for engine, data in words.items():
                self.stream(engine, data)
            for engine, entries in debug.items():
                self.debug(engine, entries)
        else:
            self._streams |= words
            self._debug |= debug

    def variable(
        self,
        name: str,
        kind: str,
        size: int | None = None,
        *,
        var_id: int | None = None,
        alignment: int | None = None,
        file_name: str | None = None,
        backing_offset: int | None = None,
        entries: Sequence[int] = (),
        fabric_path: str | None = None,
        referenced_var_id: int | None = None,
    ) -> int:
        """Add a variable and return its var_id, the lowest free one unless it is given (`state-buffer` takes 0).

        `size`, `alignment`, `backing_offset` are bytes; `entries` are the var_ids of a `dge-table`.
        """
        if kind not in VARIABLE_KINDS:
            raise FormatError(
                "unknown variable type", path=self.name, field=name, expected=" ".join(VARIABLE_KINDS), got=repr(kind)
            )
        if name in self._variables:
            raise FormatError("two variables of one name", path=self.name, field=name)
        if var_id is None:
            # 0 is the state buffer's in every known file.
            var_id = 0 if kind == "state-buffer" else self._next_id
        # DMA words have 28 bits for it (isa.md 8)
        if var_id in self._ids or not 0 <= var_id < 1 << 28:
            raise FormatError("var_id is taken or impossible", path=self.name, field=name, got=var_id)
        self._declared = None
        self._ids.add(var_id)
        while self._next_id in self._ids:
            self._next_id += 1
        self._variables[name] = Variable(
            name,
            kind,
            var_id,
            size,
            alignment,
            file_name,
            backing_offset,
            tuple(entries),
            fabric_path,
            referenced_var_id,
        )
        return var_id

    def constant(self, name: str, content: object, *, var_id: int | None = None, alignment: int | None = None) -> int:
        """Add a constant with its variable and return the var_id.

        `content` is an array (written as `.npy`), the bytes of an `.npy` file, or other bytes (written as they are).
        """
        data, tensor = constant_file(name, content)
        file_name = f"value_{name}.npy" if tensor is not None else f"value_{name}.bin"
        size = len(data) if tensor is None else len(parse_npy(data, file_name).payload)
        number = self.variable(
            name, "file", size, var_id=var_id, alignment=alignment, file_name=file_name, fabric_path="main"
        )
        self._constants[file_name] = data
        if tensor is not None and name not in self._tensors:
            self.tensor(name, tensor[0], tensor[1], "constant")
            self._implied.add(name)
        return number

    def queue(
        self,
        name: str,
        kind: str,
        owner: str,
        num_queues: int = 16,
        semaphores: Sequence[int] = (),
        *,
        semaphore: int | None = None,
        fabric_path: str = "main",
        scratch_offset: int | None = None,
        scratch_size: int | None = None,
    ) -> None:
        """Add a DMA queue of `num_queues` rings; `owner` is an engine ("SP") or its short name ("sp")."""
        if kind not in QUEUE_KINDS:
            raise FormatError(
                "unknown queue type", path=self.name, field=name, expected=" ".join(QUEUE_KINDS), got=repr(kind)
            )
        owner = ENGINE_KEYS.get(owner, owner)
        if owner not in ENGINE_KEYS.values():
            raise FormatError(
                "queue owner is not an engine", path=self.name, field=name, expected=" ".join(ENGINES), got=repr(owner)
            )
        if name in self._queues:
            raise FormatError("two queues of one name", path=self.name, field=name)
        self._queues[name] = kept_queue(
            name, kind, owner, num_queues, tuple(semaphores), semaphore, fabric_path,
            None if scratch_size is None else scratch_offset or 0, scratch_size,
        )  # fmt: skip

    def dma_block(
        self,
        queue: str,
        block_id: int,
        engine: str,
        descriptors: Iterable[Descriptor],
        *,
        semaphore: int | None = None,
        event: int | None = None,
        remote_semaphores: Sequence[int] = (),
        comment: str | None = None,
    ) -> None:
        """Add the descriptors that the word `PSEUDO_DMA_TRIGGER queue block_id` of an engine starts."""
        if engine not in ENGINES:
            raise self._no_engine(engine)
        key = queue, block_id
        for blocks in self._blocks.values():
            if key in blocks:
                raise FormatError("two DMA blocks share queue and id", path=self.name, got=f"{queue} {block_id}")
        found = tuple(descriptors)
        for item in found:
            self._check_descriptor(item)
        self._blocks[engine][key] = DmaBlock(
            queue, block_id, engine, semaphore, found, event, tuple(remote_semaphores), comment
        )

    def _check_descriptor(self, item: Descriptor) -> None:
        for sizes, steps in ((item.source_sizes, item.source_steps), (item.target_sizes, item.target_steps)):
            if not 1 <= len(sizes) <= 4 or len(sizes) != len(steps):
                raise FormatError(
                    "descriptor needs one to four sizes and as many steps", path=self.name, got=f"{sizes} {steps}"
                )
        if item.op not in DESCRIPTOR_OPS:
            raise FormatError(
                "unknown descriptor operation", path=self.name, expected=" ".join(DESCRIPTOR_OPS), got=repr(item.op)
            )

    def tensor(self, name: str, dtype: object, shape: Sequence[int], kind: str) -> None:
        """Add an entry of `tensor_map.json`: kind "input", "output", "constant" or "" for anything else.

        An array constant has an entry already; it may be given another one, for a type that `.npy` cannot name.
        """
        if name in self._tensors and name not in self._implied:
            raise FormatError("two tensors of one name", path=self.name, field=name)
        tensor = TensorInfo(name, dtype_name(dtype), shape_tuple(shape), kind)
        if kind not in _TENSOR_KINDS:
            raise FormatError("unknown tensor kind", path=self.name, field=name, got=repr(kind))
        self._declared = None
        self._tensors[name] = tensor
        self._implied.discard(name)

    def activation_set(
        self,
        name: str,
        functions: Mapping[str, int] | Iterable[str],
        *,
        buckets: bytes = b"",
        controls: bytes = b"",
        profiles: Iterable[Mapping[str, object]] = (),
    ) -> dict[str, int]:
        """Add a set of activation functions and return the code of each; words select sets in the order of these calls.

        Names alone take the codes of formats.isa.ActivationFunction. Without `profiles` (rows of `profile_meta_data`,
        with the tables `buckets` and `controls`) a function has a name and a code but no table: closed form.
        """
        codes = dict(functions) if isinstance(functions, Mapping) else {item: function_code(item) for item in functions}
        if name in self._sets:
            raise FormatError("two activation sets of one name", path=self.name, field=name)
        if len(set(codes.values())) != len(codes) or not all(0 <= code < 256 for code in codes.values()):
            raise FormatError("activation codes are not distinct bytes", path=self.name, field=name, got=str(codes))
        rows = list(profiles) or [{"func_name": f"{item}_0p", "func_id": code} for item, code in codes.items()]
        profile = JsonContent(
            json_bytes,
            lambda: {
                "bkt_bin": f"{name}_bkt.bin",
                "ctl_bin": f"{name}_ctrl.bin",
                "profile_meta_data": rows,
                "bkt_entry_cnt": len(buckets) // _ENTRY,
                "ctl_entry_cnt": len(controls) // _ENTRY,
            },
        )
        self._sets[name] = codes, {f"{name}.json": profile, f"{name}_bkt.bin": buckets, f"{name}_ctrl.bin": controls}
        return codes

    def debug(self, engine: str, entries: Iterable[EntryFields | None] | EntryMaker) -> None:
        """Set where the instructions of an engine come from: (name, file, line), optionally the tensor's text, or None.

        One entry per instruction, or one per 64-byte slot; the counts must match the stream. What makes them once
        somebody asks makes one such per slot.
        """
        if engine not in ENGINES:
            raise self._no_engine(engine)
        if callable(entries):
            self._debug[engine] = entries
            return
        kept = list(entries)
        if () in kept or not set(map(len, filter(None, kept))) <= _ENTRY_LENGTHS:
            raise FormatError("debug entry is not (name, file, line)", path=self.name, field=engine)
        self._debug[engine] = kept

    def feature(self, name: str) -> None:
        """Add a name to `neff_features`."""
        if name not in self._features:
            self._features.append(name)

    def reserve(self, kind: str, offset: int, size: int, base_partition: int = 0, partitions: int = PARTITIONS) -> None:
        """Keep bytes of the state buffer from the program; the gen3 runtime's own reservation is there already."""
        self._reservations.append(Reservation(kind, base_partition, partitions, offset, size))

    def declaration(self) -> Declaration:
        """Return the variables and tensors so far, for other files of the process to adopt.

        Raises FormatError where one of them is a constant, which brings its values along.
        """
        if self._constants:
            raise FormatError("constants are each file's own", path=self.name, got=next(iter(self._constants)))
        self._declared = Declaration(
            dict(self._variables), set(self._ids), self._next_id, dict(self._tensors), set(self._implied)
        )
        return self._declared

    def adopt(self, declared: Declaration) -> None:
        """Take the variables and tensors of another subgraph, which this one was about to add one by one."""
        if self._variables or self._tensors:
            raise FormatError("variables are adopted behind others", path=self.name)
        self._variables, self._ids, self._next_id = dict(declared.variables), set(declared.ids), declared.next_id
        self._tensors, self._implied = dict(declared.tensors), set(declared.implied)
        self._declared = declared

    def tables(self) -> Tables | None:
        """Return all that decides the definition and what rules find in it; None where it is this file's alone."""
        if self._declared is None or any(self._blocks.values()):
            return None
        return (
            self._declared, tuple(map(id, self._queues.values())), tuple(self._features), tuple(self._reservations),
            tuple(self._debug),
        )  # fmt: skip

    def words(self) -> dict[str, bytes]:
        """Return the members that are the words of the engines."""
        streams = self._streams
        return {
            binary: streams[engine] if engine in streams else self._prelude()
            for engine, binary, _ in _engine_names(self.name)
        }

    def bytes_at_hand(self) -> int:
        """Return how many bytes there are of other members that need not be made."""
        return sum(map(len, self._constants.values())) + sum(
            [len(one) for _, parts in self._sets.values() for one in parts.values() if one.__class__ is bytes]
        )

    def members_key(self) -> tuple[object, ...] | None:
        """Return what decides the names of all members; None where what makes one may refuse what it was given."""
        if self._debug and not all(map(callable, self._debug.values())):
            return None
        return self.index, tuple(self._constants), tuple(self._sets), tuple(self._debug)

    def said(self) -> SaidCore:
        """Return what a reader finds of the subgraph."""
        content = JsonContent(json_bytes, self._definition)  # kept here it would make a cycle

        def read() -> Definition | None:
            return definition_as_read(
                content,
                {name: self._variables[name] for name in sorted(self._variables)},
                {name: self._queues[name] for name in sorted(self._queues)},
                self._features,
                self._reservations,
                (_RUNTIME_EVENTS, _RUNTIME_SEMAPHORES),
                engine_members(frozenset(self._debug)),
            )

        definition = kept_definition(self.tables(), content, read)
        return SaidCore(self.name, f"{self.name}/def.json", definition, engines_as_read(self._blocks, self._sets))

    def files(self) -> dict[str, Content]:
        """Return the members by their names in the archive; JSON is made when somebody reads it."""
        folder = f"{self.name}/"
        files: dict[str, Content] = {**self.words()}
        for engine, _, text in _engine_names(self.name):
            files[text] = JsonContent(json_bytes, partial(self._engine_json, engine))
        entries: dict[str, Entries] = {}
        for engine, given in self._debug.items():
            if callable(given):
                entries[engine] = given
                continue
            size = len(self._streams[engine] if engine in self._streams else self._prelude())
            entries[engine] = given if len(given) * WORD == size else self._per_slot(engine, given)
        for name, data in self._constants.items():
            files[folder + name] = data
        for _, parts in self._sets.values():
            for name, content in parts.items():
                files[folder + name] = content
        files[f"{folder}act_info.json"] = JsonContent(json_bytes, self._act_info)
        files[f"{folder}tensor_map.json"] = JsonContent(json_bytes, self._tensor_map)
        files[f"{folder}def.json"] = JsonContent(json_bytes, self._definition)
        files |= DebugFiles(self.index, self.name, entries).members()
        return files

    def _no_engine(self, engine: str) -> FormatError:
        return FormatError("no such engine", path=self.name, expected=" ".join(ENGINES), got=repr(engine))

    def _prelude(self) -> bytes:
        return _prelude_of(self.target.generation)

    def _per_slot(self, engine: str, entries: list[EntryFields | None]) -> list[EntryFields | None]:
        """Return one entry per 64-byte slot, of entries that are one per instruction."""
        from formats.isa import decode_stream  # deferred: start-up

        data = self._streams[engine] if engine in self._streams else self._prelude()
        dialect = "extended" if EXTENDED_FEATURE in self._features else "neuron"
        offsets = decode_stream(data, self.target.generation, dialect).offsets
        if len(entries) != len(offsets):
            raise FormatError(
                "debug entries do not match the stream",
                path=self.name,
                field=engine,
                expected=f"{len(offsets)} instructions or {len(data) // WORD} words",
                got=len(entries),
            )
        ends = [*offsets[1:], len(data)]
        return [
            entry
            for entry, start, end in zip(entries, offsets, ends, strict=True)
            for _ in range((end - start) // WORD)
        ]

    def _engine_json(self, engine: str) -> dict[str, object]:
        out: dict[str, object] = {
            "dma": list(map(block_json, self._blocks[engine].values())),
            "instr": f"{engine}.bin",
            "name": f"{engine}.json",
        }
        if engine == "Activation":
            out |= {"act_info": "act_info.json", "activation_function_sets": list(self._sets)}
        elif engine == "DVE":
            out["dve_tables"] = []
        return out

    def _act_info(self) -> dict[str, object]:
        return {
            "pwp_file_keys": ["bkt_bin", "ctrl_bin", "profile_json"],
            "act_func_sets": [
                {
                    "name": name,
                    "bkt_bin": f"{name}_bkt.bin",
                    "ctrl_bin": f"{name}_ctrl.bin",
                    "profile_json": f"{name}.json",
                    "act": dict.fromkeys(codes, 0),
                }
                for name, (codes, _) in self._sets.items()
            ],
        }

    def _tensor_map(self) -> dict[str, object]:
        return {name: tensor_json(self._tensors[name]) for name in sorted(self._tensors)}

    def _definition(self) -> dict[str, object]:
        out: dict[str, object] = {
            "name": "definition",
            "version": DEFINITION_VERSION,
            "cc_streams": {"num_streams": 0},
            "debug_info": {},
            "dma_dbg": [],
            "dma_queue": {name: queue_json(self._queues[name]) for name in sorted(self._queues)},
            "neff_features": self._features,
            "runtime_event_count": _RUNTIME_EVENTS,
            "runtime_semaphore_count": _RUNTIME_SEMAPHORES,
            "runtime_statebuffer_reservation": list(map(reservation_json, self._reservations)),
            "var": {name: variable_json(self._variables[name]) for name in sorted(self._variables)},
        }
        for engine, members in engine_members(frozenset(self._debug)).items():
            key = ENGINE_KEYS[engine]
            out |= {
                key: members.json,
                f"{key}_instr": members.instructions,
                f"{key}_asm_dbg": list(members.asm_debug),
                f"{key}_dbg": list(members.debug),
            }
        return out
