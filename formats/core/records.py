"""The notes of a core dump. The manual page neuron-core(5) is made from these declarations.

Times are picoseconds of the device, sizes and offsets bytes, addresses device addresses unless a field says otherwise.
"""

from typing import Annotated

from formats.core.declare import note
from formats.named_tuple import NamedTuple

# ruff: noqa: RUF012  (records are values: nobody changes the dictionaries they have by default)

__all__ = [
    "VERSION",
    "Allocation",
    "ChecksumsNote",
    "CounterBank",
    "CountersNote",
    "Descriptor",
    "DeviceNote",
    "DumpNote",
    "EngineState",
    "EnginesNote",
    "EnvironmentNote",
    "FaultNote",
    "FindingState",
    "FindingsNote",
    "Flight",
    "JournalEntry",
    "JournalNote",
    "LogNote",
    "MapNote",
    "NeffNote",
    "ProgramNote",
    "QueueState",
    "QueuesNote",
    "Range",
    "RingState",
    "RingsNote",
    "SignalState",
    "Source",
    "SourceLine",
    "StatusNote",
    "Stream",
    "TensorState",
    "TensorsNote",
    "TransferState",
    "WaitState",
    "Waiting",
    "WaitsNote",
    "Window",
]

VERSION = 1
_BASE = 0x4E540000  # "NT": below it readelf takes the numbers of a core's notes for those of Linux


class Source(NamedTuple):
    """Where a word comes from."""

    file: Annotated[str | None, "Source file as the program names it."] = None
    line: Annotated[int | None, "Line in it, from 1 on."] = None
    name: Annotated[str, "The compiler's name of the instruction."] = ""
    tensor: Annotated[str | None, "Text of the tensor it belongs to."] = None
    kernel: Annotated[str | None, "Name of the kernel."] = None


class Range(NamedTuple):
    """Bytes that something touches; on chip the same bytes of several partitions."""

    space: Annotated[str, "SBUF, PSUM or HBM."] = ""
    core: Annotated[int, "Physical core; 0 in HBM."] = 0
    first: Annotated[int, "First partition."] = 0
    partitions: Annotated[int, "Number of partitions; 1 in HBM."] = 1
    byte: Annotated[int, "First byte of each partition; in HBM the device address."] = 0
    nbytes: Annotated[int, "Bytes from the first one to the last."] = 0
    steps: Annotated[tuple[tuple[int, int], ...], "Step and count of a strided pattern, outermost first."] = ()
    run: Annotated[int, "Contiguous bytes of each element of a strided pattern; 0 where all bytes are touched."] = 0


@note(_BASE + 1, "dump")
class DumpNote(NamedTuple):
    """What this file is: read it first."""

    version: Annotated[int, "Version of this format; a reader refuses a higher one."] = VERSION
    level: Annotated[str, "light (no memories but what the fault names) or full."] = "light"
    created: Annotated[str, "Date and time, ISO 8601, UTC."] = ""
    tool: Annotated[str, "Program that wrote the file."] = ""
    tool_version: Annotated[str, "Version of that program."] = ""
    device: Annotated[str, "What was dumped: emulated, or neuron for a real device."] = "emulated"
    target: Annotated[str, "Chip: trn1, inf2, trn2 or trn3."] = ""
    generation: Annotated[str, "Generation of the chip: gen2, gen3 or gen4."] = ""
    cores: Annotated[int, "Physical cores of the logical core."] = 1
    outcome: Annotated[str, "running, finished, fault or hang."] = ""
    time_ps: Annotated[int, "Device time."] = 0
    completions: Annotated[int, "Instructions that have completed."] = 0
    pid: Annotated[int, "Process that wrote the file."] = 0
    seed: Annotated[int | None, "Seed of a shaken schedule; null for the plain one."] = None
    timing: Annotated[bool, "Whether device time was modelled."] = True


@note(_BASE + 2, "status")
class StatusNote(NamedTuple):
    """What the Neuron runtime reports."""

    code: Annotated[int, "NRT_STATUS, 0 for success."] = 0
    name: Annotated[str, "Its name."] = ""
    location: Annotated[str, "Function of libnrt that failed."] = ""


@note(_BASE + 3, "fault")
class FaultNote(NamedTuple):
    """What stopped the execution; absent where nothing did."""

    kind: Annotated[
        str,
        "oob, partitions, bank, alignment, access, operand, semaphore, branch, numerical, timeout or unsupported; of "
        "the hardware: collectives, hbm-ue, hbm-ue-repairable, sram-ue, dma-abort, nq-overflow, network or "
        "lost-device.",
    ] = ""
    message: Annotated[str, "What happened, on one line."] = ""
    core: Annotated[int, "Physical core, -1 unknown."] = -1
    engine: Annotated[str, "Engine, or DMA queue."] = ""
    pc: Annotated[int, "Compiler pc of the word: its index in the stream of the NEFF."] = -1
    text: Annotated[str, "The word, in the profiler's grammar."] = ""
    opcode: Annotated[str, "Its mnemonic."] = ""
    source: Annotated[Source | None, "Where the word comes from."] = None
    operand: Annotated[str | None, "Operand at fault."] = None
    space: Annotated[str | None, "SBUF, PSUM (engine addresses) or HBM (device addresses)."] = None
    address: Annotated[tuple[int, int] | None, "First address touched, and the one behind the last."] = None
    expected: Annotated[str | None, "What would have been allowed: the limit."] = None
    got: Annotated[str | None, "What was found: the index."] = None
    time_ps: Annotated[int, "When."] = -1
    tensor: Annotated[str | None, "Variable that the access belongs to."] = None


@note(_BASE + 4, "neff")
class NeffNote(NamedTuple):
    """The file that ran."""

    name: Annotated[str, "Network name of its header."] = ""
    uuid: Annotated[str, "UUID of its header, 32 hexadecimal digits."] = ""
    hash: Annotated[str, "Hash of its header, 64 hexadecimal digits."] = ""
    path: Annotated[str, "Where it was read from."] = ""
    size: Annotated[int, "Bytes of the file, 0 unknown."] = 0
    version: Annotated[str, "Format version, major.minor."] = ""
    features: Annotated[tuple[str, ...], "Features that it asks for."] = ()
    extended: Annotated[bool, "Whether it has words that neurontools defines."] = False
    subgraphs: Annotated[tuple[str, ...], "Names of its subgraphs, one per physical core."] = ()


class Waiting(NamedTuple):
    """What an engine waits for."""

    kind: Annotated[str, "semaphore or event."] = "semaphore"
    core: Annotated[int, "Core of the semaphore."] = 0
    number: Annotated[int, "Its number."] = 0
    mode: Annotated[int, "Wait mode as in the word."] = 0
    value: Annotated[int, "Value of the condition."] = 0
    since_ps: Annotated[int, "Since when."] = 0
    condition: Annotated[str, "The condition in the profiler's grammar."] = ""
    present: Annotated[int, "Present value."] = 0


class Flight(NamedTuple):
    """A word that has issued and not completed."""

    word: Annotated[int, "Its index among the loaded words."] = 0
    pc: Annotated[int, "Its compiler pc."] = 0
    issued_ps: Annotated[int, "When it issued."] = 0


class EngineState(NamedTuple):
    """One engine."""

    core: Annotated[int, "Physical core."] = 0
    engine: Annotated[str, "PE, Activation, Pool, DVE or SP."] = ""
    state: Annotated[str, "run, wait, fault, done or stopped; in earlier dumps idle, running, waiting or done."] = "run"
    pc: Annotated[int, "Compiler pc of the oldest word that has not completed."] = 0
    position: Annotated[int, "Index of the next word to issue among the loaded words."] = 0
    words: Annotated[int, "Loaded words."] = 0
    completed: Annotated[int, "Words completed."] = 0
    text: Annotated[str | None, "The word at pc, null at the end."] = None
    opcode: Annotated[str | None, "Its mnemonic."] = None
    source: Annotated[Source | None, "Where it comes from."] = None
    waiting: Annotated[Waiting | None, "What the engine waits for."] = None
    in_flight: Annotated[tuple[Flight, ...], "Words that have issued and not completed."] = ()
    registers: Annotated[tuple[int, ...], "Registers, unsigned; zeros at the end are left out."] = ()
    accumulators: Annotated[tuple[int, ...], "Bits of the fp32 accumulators; zeros at the end are left out."] = ()
    busy_ps: Annotated[int, "How long it was busy."] = 0


@note(_BASE + 5, "engines")
class EnginesNote(NamedTuple):
    """The engines of every core."""

    engines: Annotated[tuple[EngineState, ...], "The engines."] = ()


class CounterBank(NamedTuple):
    """Semaphores and events of one core."""

    core: Annotated[int, "Physical core."] = 0
    semaphores: Annotated[tuple[int, ...], "Values by number."] = ()
    events: Annotated[tuple[int, ...], "0 or 1 by number."] = ()


@note(_BASE + 6, "counters")
class CountersNote(NamedTuple):
    """Semaphores and events."""

    banks: Annotated[tuple[CounterBank, ...], "One per core."] = ()


class SignalState(NamedTuple):
    """Something that signals what an engine waits for."""

    core: Annotated[int, "Physical core."] = 0
    engine: Annotated[str, "Engine whose word signals, or DMA queue."] = ""
    owner: Annotated[str, "Engine whose stream holds the word."] = ""
    pc: Annotated[int, "Its compiler pc."] = 0
    text: Annotated[str, "The word."] = ""
    state: Annotated[str, "done, running, blocked, queued or faulted."] = ""
    amount: Annotated[int | None, "What it adds; null where it writes."] = None
    behind: Annotated[int | None, "For queued ones, the pc that its engine stands at."] = None
    source: Annotated[Source | None, "Where the word comes from."] = None


class WaitState(NamedTuple):
    """One engine that waits."""

    core: Annotated[int, "Physical core."] = 0
    engine: Annotated[str, "The engine."] = ""
    pc: Annotated[int, "Compiler pc of the word that waits."] = 0
    text: Annotated[str, "The word."] = ""
    opcode: Annotated[str, "Its mnemonic."] = ""
    source: Annotated[Source | None, "Where it comes from."] = None
    kind: Annotated[str, "semaphore or event."] = "semaphore"
    number: Annotated[int, "Number of the semaphore or event."] = 0
    condition: Annotated[str, "The condition in the profiler's grammar."] = ""
    need: Annotated[int, "Value of the condition."] = 0
    present: Annotated[int, "Present value."] = 0
    since_ps: Annotated[int, "Since when it waits."] = 0
    overshoot: Annotated[bool, "Whether the value went past the one that is waited for."] = False
    signals: Annotated[tuple[SignalState, ...], "What could signal it: all that is pending, and the last done."] = ()
    done: Annotated[int, "Signals already given."] = 0
    pending: Annotated[int, "Signals not yet given."] = 0


@note(_BASE + 7, "waits")
class WaitsNote(NamedTuple):
    """Who waits for whom: the wait-for graph."""

    reason: Annotated[str, "deadlock, livelock, a limit, or why the dump was taken."] = ""
    time_ps: Annotated[int, "When."] = 0
    waits: Annotated[tuple[WaitState, ...], "The engines that wait."] = ()
    cycles: Annotated[tuple[tuple[tuple[int, str], ...], ...], "Chains of core and engine that wait in a circle."] = ()
    running: Annotated[tuple[str, ...], "What engines were at that do not wait."] = ()


class TransferState(NamedTuple):
    """A DMA transfer that is not complete."""

    number: Annotated[int, "Number of the transfer on this device."] = 0
    engine: Annotated[str, "Engine whose word triggered it."] = ""
    pc: Annotated[int, "Compiler pc of that word."] = 0
    text: Annotated[str, "What it moves, on one line."] = ""
    nbytes: Annotated[int, "Bytes it writes."] = 0
    moving: Annotated[bool, "Whether its data is moving."] = False
    semaphore: Annotated[int | None, "Semaphore that it raises."] = None
    increment: Annotated[int, "By how much."] = 0
    remote: Annotated[tuple[int, int, int] | None, "Core, semaphore and increment on another core."] = None
    triggered_ps: Annotated[int, "When its word completed."] = -1
    started_ps: Annotated[int, "When its first byte moves."] = -1
    planned_ps: Annotated[int, "When it completes."] = -1
    shares: Annotated[
        tuple[tuple[int, int], ...], "Per DMA engine, its first descriptor and the one behind its last."
    ] = ()


class QueueState(NamedTuple):
    """One DMA queue: rings of one number on several DMA engines."""

    core: Annotated[int, "Physical core."] = 0
    name: Annotated[str, "Its name in the NEFF."] = ""
    engine: Annotated[str, "Engine that triggers it."] = ""
    kind: Annotated[str, "As in the NEFF: in, out, data, embedding_update or dynamic."] = ""
    ring: Annotated[int, "Number of its rings."] = 0
    rings: Annotated[int, "On how many DMA engines."] = 0
    semaphores: Annotated[tuple[int, ...], "Semaphores that its transfers may raise."] = ()
    completed: Annotated[int, "Transfers completed."] = 0
    nbytes: Annotated[int, "Bytes moved."] = 0
    pending: Annotated[int, "Transfers not complete."] = 0
    transfers: Annotated[tuple[TransferState, ...], "The next of them."] = ()


@note(_BASE + 8, "queues")
class QueuesNote(NamedTuple):
    """The DMA queues."""

    queues: Annotated[tuple[QueueState, ...], "The queues."] = ()


class Descriptor(NamedTuple):
    """One descriptor in a ring."""

    transfer: Annotated[int, "Number of its transfer."] = 0
    source: Annotated[int, "Address that it reads: of the device in HBM, partition * 0x40000 + byte on chip."] = 0
    destination: Annotated[int, "Address that it writes; for a semaphore its number."] = 0
    nbytes: Annotated[int, "Bytes it moves."] = 0
    kind: Annotated[str, "data or semaphore."] = "data"


class RingState(NamedTuple):
    """One ring of one DMA engine."""

    core: Annotated[int, "Physical core."] = 0
    engine: Annotated[int, "Number of the DMA engine."] = 0
    ring: Annotated[int, "Number of the ring."] = 0
    queue: Annotated[str, "Queue that it belongs to."] = ""
    size: Annotated[int, "Descriptors that fit."] = 0
    head: Annotated[int, "Position of the next descriptor to complete."] = 0
    tail: Annotated[int, "Position behind the last one handed over."] = 0
    outstanding: Annotated[int, "Descriptors handed over and not complete."] = 0
    descriptors: Annotated[tuple[Descriptor, ...], "The next of them."] = ()


@note(_BASE + 9, "rings")
class RingsNote(NamedTuple):
    """Rings with descriptors; empty rings that nothing ever used are left out."""

    rings: Annotated[tuple[RingState, ...], "The rings."] = ()


class TensorState(NamedTuple):
    """A tensor in device memory, or a tile on chip."""

    name: Annotated[str, "Its name."] = ""
    kind: Annotated[str, "input, output, tmp-buf, virtual, file, pointer, dge-table or tile."] = ""
    space: Annotated[str, "HBM, SBUF or PSUM."] = "HBM"
    core: Annotated[int | None, "Physical core; null where all cores share it."] = None
    dtype: Annotated[str, "Element type by its NumPy name, empty where the file gives none."] = ""
    shape: Annotated[tuple[int, ...], "Shape; of a tile the partitions first."] = ()
    address: Annotated[int, "Device address in HBM; in a tile the first byte of each partition."] = 0
    nbytes: Annotated[int, "Bytes in all."] = 0
    partition: Annotated[int, "First partition of a tile."] = 0
    pcs: Annotated[dict[str, tuple[int, int]], "Of a tile, by engine: first and last pc that touch it."] = {}


class Allocation(NamedTuple):
    """A range of HBM that the loader reserved."""

    name: Annotated[str, "Its name."] = ""
    address: Annotated[int, "Device address."] = 0
    nbytes: Annotated[int, "Size."] = 0
    written: Annotated[int, "Bytes of it that something wrote."] = 0
    stored: Annotated[int, "Bytes of it that are in this file."] = 0


@note(_BASE + 10, "tensors")
class TensorsNote(NamedTuple):
    """What the program calls its data."""

    tensors: Annotated[tuple[TensorState, ...], "Tensors and tiles."] = ()
    allocations: Annotated[tuple[Allocation, ...], "Allocations in HBM by address."] = ()


class Window(NamedTuple):
    """How one memory lies in the addresses of this file's segments."""

    space: Annotated[str, "SBUF, PSUM, HBM or instructions."] = ""
    core: Annotated[int, "Physical core; in HBM the number of the stack."] = 0
    engine: Annotated[str, "Engine whose words these are; empty for memories."] = ""
    base: Annotated[int, "Address of the first byte (p_vaddr)."] = 0
    stride: Annotated[int, "From one partition to the next."] = 0
    rows: Annotated[int, "Partitions; 1 for HBM and instructions."] = 1
    row_bytes: Annotated[int, "Bytes of each."] = 0
    written: Annotated[int, "Bytes of it that something wrote."] = 0
    stored: Annotated[int, "Bytes of it that are in this file."] = 0
    sparse: Annotated[bool, "Whether all that was written is here, so that absent bytes were never written."] = False


@note(_BASE + 11, "map")
class MapNote(NamedTuple):
    """Which addresses are which memory."""

    windows: Annotated[tuple[Window, ...], "The memories."] = ()
    fill: Annotated[int, "What a byte that nothing wrote reads as."] = 0xFF


class Stream(NamedTuple):
    """The words of one engine, and where they come from."""

    core: Annotated[int, "Physical core."] = 0
    engine: Annotated[str, "The engine."] = ""
    words: Annotated[int, "Loaded words."] = 0
    extended: Annotated[bool, "Whether words that neurontools defines have their meaning."] = False
    runs: Annotated[
        tuple[tuple[int, int, int, int, int], ...],
        "Stored words as runs: index, pc, slot of 64 bytes in the NEFF's stream, bytes of each word, "
        "count. They follow one another in the window of the engine at 64 times their slot.",
    ] = ()
    replaced: Annotated[
        tuple[tuple[int, str], ...],
        "Words that the loader put others in place of: pc and the NEFF's word in hexadecimal.",
    ] = ()
    sources: Annotated[tuple[tuple[int, int, int], ...], "Runs of words: pc, count, index into locations."] = ()
    locations: Annotated[tuple[Source, ...], "Source locations."] = ()


class SourceLine(NamedTuple):
    """One line of source."""

    file: Annotated[str, "The file as the program names it."] = ""
    line: Annotated[int, "Number of the line."] = 0
    text: Annotated[str, "The line."] = ""


@note(_BASE + 12, "program")
class ProgramNote(NamedTuple):
    """What stands in the instruction segments."""

    streams: Annotated[tuple[Stream, ...], "One per core and engine with words."] = ()
    activation: Annotated[tuple[dict[str, str], ...], "Per core, activation functions by number."] = ()
    lines: Annotated[tuple[SourceLine, ...], "Source lines of the stored words, and those around them."] = ()
    visits: Annotated[
        tuple[str, ...],
        "Per core, the calls of the kernel and the turns of its loops that the stored words come from, as in the "
        "member visits.json of a NEFF; empty where the file has none.",
    ] = ()


@note(_BASE + 13, "environment")
class EnvironmentNote(NamedTuple):
    """Where it ran. Variables whose names speak of secrets are left out."""

    hostname: Annotated[str, "Name of the machine."] = ""
    system: Annotated[str, "Operating system, release and architecture."] = ""
    python: Annotated[str, "Version of Python."] = ""
    packages: Annotated[dict[str, str], "Installed packages and their versions."] = {}
    variables: Annotated[
        dict[str, str],
        "Environment variables of Neuron, its libraries and launchers: NEURON_*, NKI_*, NCCL_*, FI_*, XLA_*, TPU_*, "
        "OMPI_COMM_WORLD_*, SLURM_*, RANK, WORLD_SIZE and LOCAL_RANK.",
    ] = {}
    arguments: Annotated[tuple[str, ...], "Command line."] = ()


@note(_BASE + 14, "log")
class LogNote(NamedTuple):
    """The end of the log."""

    lines: Annotated[tuple[str, ...], "Lines, the newest last."] = ()


class JournalEntry(NamedTuple):
    """One completion."""

    number: Annotated[int, "Number of the event."] = 0
    time_ps: Annotated[int, "When."] = 0
    core: Annotated[int, "Physical core."] = 0
    engine: Annotated[str, "Engine or DMA queue."] = ""
    pc: Annotated[int, "Compiler pc."] = 0
    kind: Annotated[str, "instruction, dma, barrier, fault or hang."] = "instruction"
    text: Annotated[str, "The word."] = ""
    writes: Annotated[tuple[Range, ...], "What it wrote."] = ()
    reads: Annotated[tuple[Range, ...], "What it read."] = ()
    changes: Annotated[
        tuple[tuple[int, str, int, int, int], ...],
        "Semaphores and events it changed: core, kind, number, old and new value.",
    ] = ()


@note(_BASE + 15, "journal")
class JournalNote(NamedTuple):
    """The end of what happened."""

    total: Annotated[int, "Events since the beginning."] = 0
    entries: Annotated[tuple[JournalEntry, ...], "The newest ones, oldest first."] = ()


class FindingState(NamedTuple):
    """Something odd that did not stop the run."""

    tool: Annotated[str, "Check that found it; device for notices of the device."] = ""
    kind: Annotated[str, "What it is."] = ""
    severity: Annotated[str, "note, warning or error."] = "warning"
    message: Annotated[str, "In one sentence."] = ""
    core: Annotated[int, "Physical core."] = 0
    engine: Annotated[str, "Engine or DMA queue."] = ""
    pc: Annotated[int, "Compiler pc."] = 0
    text: Annotated[str, "The word."] = ""
    source: Annotated[Source | None, "Where it comes from."] = None
    operand: Annotated[str, "Operand concerned."] = ""
    time_ps: Annotated[int, "When."] = -1
    other: Annotated[str, "The other side, of a race."] = ""
    hint: Annotated[str, "What to do about it."] = ""


@note(_BASE + 16, "findings")
class FindingsNote(NamedTuple):
    """What the checks and the device found odd."""

    findings: Annotated[tuple[FindingState, ...], "The findings."] = ()


@note(_BASE + 17, "device")
class DeviceNote(NamedTuple):
    """A physical core of a real device, as the driver shows it in sysfs; absent in dumps of the emulator."""

    device: Annotated[int, "Number of the device, -1 unknown."] = -1
    core: Annotated[int, "Number of the core on the device, -1 unknown."] = -1
    attributes: Annotated[dict[str, str], "Attributes of the device by path, without those of its cores."] = {}
    core_attributes: Annotated[dict[str, str], "Attributes of the core by path."] = {}


@note(_BASE + 18, "checksums")
class ChecksumsNote(NamedTuple):
    """Checksums of all other parts: CRC-32 as zlib and PNG compute it. They stand last among the notes."""

    notes: Annotated[dict[str, int], "Of the description of each note, by the name of the note."] = {}
    segments: Annotated[tuple[int, ...], "Of each segment, in the order of the program headers behind the first."] = ()
