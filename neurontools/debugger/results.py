"""What debugger commands return. Times are picoseconds, addresses and sizes bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator.events import SemaphoreChange
from formats.named_tuple import NamedTuple
from formats.neff import SourceLocation
from formats.neff.visits import Variable

if TYPE_CHECKING:
    from emulator.diagnosis.graph import Hang
    from emulator.faults import Fault
    from emulator.machine.ranks.explain import RankHang
    from neurontools.debugger.rank_results import RanksWaiting

__all__ = [
    "Ahead",
    "Array",
    "Checks",
    "Computed",
    "Defined",
    "Disassembly",
    "DisassemblyRow",
    "Display",
    "DmaRow",
    "Edited",
    "EngineRow",
    "Examined",
    "Found",
    "FrameRow",
    "LastWrite",
    "Lines",
    "Listing",
    "LocalRow",
    "Mark",
    "MemoryRow",
    "Met",
    "Moved",
    "OperationRow",
    "QueueRow",
    "RegisterRow",
    "SemaphoreRow",
    "SourceRow",
    "State",
    "Statistics",
    "Step",
    "Stop",
    "TensorRow",
    "TensorValue",
    "When",
    "Why",
    "Write",
    "printable",
]

Array = npt.NDArray[Any]


def printable(array: Array | np.generic) -> Array:
    """Return an array of a type that Python has numbers for: ml_dtypes' own go through fp32."""
    found = np.asarray(array)
    return found if found.dtype.isbuiltin == 1 else found.astype(np.float32)


class Write(NamedTuple):
    """Bytes written: `byte` to `byte` + `nbytes` - 1; on chip in `partitions` from `partition` on.

    In HBM `byte` is the device address, `name` the allocation and `offset` the byte in it. `strided` means that not
    every byte of the range was written.
    """

    space: str
    core: int | None
    partition: int | None
    partitions: int
    byte: int
    nbytes: int
    strided: bool
    name: str = ""
    offset: int = 0


class Step(NamedTuple):
    """One completion: of an instruction, of a DMA transfer (`engine` is the queue), or a fault or hang.

    `text` is the word as the file has it, `starts` the DMA transfer that it set going; `iteration` as in `Ahead`.
    """

    number: int
    time_ps: int
    issued_ps: int
    core: int
    engine: str
    pc: int
    kind: str
    text: str
    source: SourceLocation | None
    semaphores: tuple[SemaphoreChange, ...]
    writes: tuple[Write, ...]
    starts: str | None = None
    iteration: tuple[Variable, ...] = ()


class Ahead(NamedTuple):
    """What completes next; nothing of its effect has happened. `engine` is the queue where `kind` is "dma".

    `iteration` is the turn of every loop of the kernel that it comes from, those of callers first.
    """

    core: int
    engine: str
    pc: int
    kind: str
    text: str
    source: SourceLocation | None
    time_ps: int
    iteration: tuple[Variable, ...] = ()


class Stop(NamedTuple):
    """How a command that moves the device ended.

    `reason` is "step", "line", "until", "call done", "breakpoint", "watchpoint", "catchpoint", "engine done",
    "interrupted", "fault", "hang" or "finished"; `completions` counts what completed, `steps` holds the completions to
    show, the last one at least. `errors` say which conditions could not be computed, and why: such breakpoints stop.
    Of several ranks `rank` is the one that stopped, and `ranks` says why they wait for each other.
    """

    reason: str
    time_ps: int
    completions: int
    steps: tuple[Step, ...]
    breakpoints: tuple[int, ...]
    ahead: Ahead | None
    fault: Fault | None = None
    hang: Hang | None = None
    errors: tuple[str, ...] = ()
    rank: int | None = None
    ranks: RankHang | None = None


class Moved(NamedTuple):
    """How a command that goes back, or to a place in time, ended.

    `reason` is "step", "line", "breakpoint", "watchpoint", "catchpoint", "goto", "start" (the beginning of the
    program), "interrupted", "fault", "hang" or "finished"; `errors` is as in `Stop`; `completions` counts how far it
    went, negative backwards; `events` have happened where it ended. Of several ranks `rank` is the one it is told of,
    and `ranks` says why they wait for each other.
    """

    reason: str
    time_ps: int
    events: int
    completions: int
    breakpoints: tuple[int, ...]
    ahead: Ahead | None
    fault: Fault | None = None
    hang: Hang | None = None
    errors: tuple[str, ...] = ()
    rank: int | None = None
    ranks: RankHang | None = None


class Mark(NamedTuple):
    """A named place in time: `events` have happened, the last one at `time_ps`."""

    name: str
    events: int
    time_ps: int


class When(NamedTuple):
    """Where a session stands in time; `undoable` completions can be taken back without running again.

    `recorded` are the bytes of the journal's records, `checkpoint_bytes` those of its checkpoints; `budget` bounds both
    together.
    """

    events: int
    time_ps: int
    marks: tuple[Mark, ...]
    undoable: int
    recorded: int
    checkpoints: int
    checkpoint_bytes: int
    budget: int


class Met(NamedTuple):
    """What satisfied a wait of word `pc`: event `number`, of an engine or, where `kind` is "dma", of a queue.

    Of a transfer `trigger` is the engine whose word `by_pc` started it, `block` its DMA block, None where it has none.
    """

    pc: int
    condition: str
    number: int
    time_ps: int
    core: int
    engine: str
    by_pc: int
    kind: str
    text: str
    source: SourceLocation | None
    trigger: str | None = None
    block: int | None = None


class Why(NamedTuple):
    """Why an engine is where it is: `report` says what it waits for and who could signal that, None if nothing.

    `met` are the waits that its present word, or else the last word with any, has behind it; none in a core dump.
    """

    core: int
    engine: str
    state: str
    pc: int
    text: str | None
    report: Hang | None
    met: tuple[Met, ...] = ()
    ranks: RanksWaiting | None = None


class LastWrite(NamedTuple):
    """What wrote last into `where`: `engine` is the queue where `kind` is "dma"; `number` is None where nothing did.

    `writes` are the ranges it wrote that meet the place.
    """

    where: str
    number: int | None
    time_ps: int | None
    core: int
    engine: str
    pc: int | None
    writes: tuple[Write, ...]
    text: str
    source: SourceLocation | None = None
    kind: str = "instruction"


class EngineRow(NamedTuple):
    """One engine: `pc` and `text` of the word that faulted, else of the oldest not completed, and its wait."""

    core: int
    engine: str
    state: str
    pc: int
    words: int
    completed: int
    in_flight: int
    waits_for: str | None
    since_ps: int | None
    text: str | None
    source: SourceLocation | None
    focus: bool


class Edited(NamedTuple):
    """What `set` changed: `place` from `old` ("" where nobody looked) to `new`, as event `number`."""

    place: str
    old: str
    new: str
    number: int
    time_ps: int


class Computed(NamedTuple):
    """What an expression is: a number, a truth or an array; `base` is how to write it: "" or one of x d u o t f."""

    expression: str
    value: Any
    base: str = ""


class Display(NamedTuple):
    """An expression that is shown at every stop."""

    number: int
    expression: str
    base: str = ""


class Found(NamedTuple):
    """Where values stand in memory: elements, or addresses as `examine` takes them; `more` says there are others."""

    values: tuple[str, ...]
    places: tuple[str, ...]
    more: bool = False


class Lines(NamedTuple):
    """Lines of commands to run next: those of a file, with their numbers, or of a command that `define` made."""

    name: str
    lines: tuple[str, ...]
    numbers: tuple[int, ...] = ()


class Defined(NamedTuple):
    """A name for a line, or for several."""

    name: str
    lines: tuple[str, ...]


class FrameRow(NamedTuple):
    """One call of a function of the kernel: `level` 0 is the innermost, `iteration` the turns of its own loops.

    Of a compiled graph `operation` is the operation, and there is no function.
    """

    level: int
    function: str
    file: str
    line: int
    iteration: tuple[Variable, ...]
    operation: str = ""


class OperationRow(NamedTuple):
    """One operation of the graph: `state` is "done", "at" (some of its words have completed), "" before, or "-".

    "-" is that of an operation without words; `words` counts them by engine, `held` says where the result lies.
    """

    core: int
    name: str
    path: str
    opcode: str
    type: str
    file: str
    line: int
    words: dict[str, int]
    state: str
    held: str


class LocalRow(NamedTuple):
    """One variable of a function of the kernel; `shape`, `dtype` and `space` are those of the tensor it stands for."""

    level: int
    function: str
    name: str
    value: bool | int | float | str | tuple[int, ...]
    tensor: bool
    dtype: str = ""
    shape: tuple[int, ...] = ()
    space: str = ""


class QueueRow(NamedTuple):
    """One DMA queue: transfers waiting, moving and completed, bytes moved, and the transfer that completes next."""

    core: int
    name: str
    engine: str
    kind: str
    ring: int
    rings: int
    semaphores: tuple[int, ...]
    pending: int
    moving: int
    completed: int
    nbytes: int
    next: str | None


class SemaphoreRow(NamedTuple):
    """A semaphore or event that is not zero or is waited for; `waiters` are "Activation pc 3 S[6]>=1"."""

    core: int
    kind: str
    number: int
    value: int
    waiters: tuple[str, ...]


class RegisterRow(NamedTuple):
    """One register of an engine: 32 bits as an unsigned number, and as the floating-point number they would be."""

    core: int
    engine: str
    number: int
    value: int
    as_float: float


class DmaRow(NamedTuple):
    """A transfer that has not completed: `state` is "queued" or "moving", times are -1 where not known yet.

    `semaphore` rises by `increment` when it completes.
    """

    core: int
    queue: str
    number: int
    engine: str
    pc: int
    state: str
    text: str
    nbytes: int
    triggered_ps: int
    started_ps: int
    due_ps: int
    semaphore: int | None
    increment: int
    source: SourceLocation | None


class Checks(NamedTuple):
    """The checks that are running, and how many findings there are up to where the session stands."""

    tools: tuple[str, ...]
    findings: int


class MemoryRow(NamedTuple):
    """A memory of a core or an allocation in HBM: its size, and how many bytes of it have been written."""

    space: str
    core: int | None
    name: str
    address: int
    nbytes: int
    written: int


class TensorRow(NamedTuple):
    """A tensor by name: in HBM (`address` is the device's), or a tile (`address` is the engine's)."""

    name: str
    space: str
    core: int | None
    kind: str
    dtype: str
    shape: tuple[int, ...]
    address: int
    nbytes: int


class Statistics(NamedTuple):
    """What the elements of an array are like; minimum, maximum and mean of the finite ones, None without any."""

    elements: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    nans: int
    infinities: int


class TensorValue(NamedTuple):
    """Elements of a tensor as they are now; `unwritten` counts the selected elements that nothing wrote.

    Of an operation of the graph it counts those that are not there, and `note` says why.
    """

    name: str
    selection: str
    space: str
    array: Array
    unwritten: int
    note: str = ""

    @property
    def statistics(self) -> Statistics:
        """Return what the selected elements are like."""
        values = printable(self.array)
        finite = np.isfinite(values)
        kept = values[finite].astype(np.float64)
        nans = int(np.isnan(values).sum())
        infinities = int(values.size - kept.size - nans)
        if not kept.size:
            return Statistics(values.size, None, None, None, nans, infinities)
        return Statistics(values.size, float(kept.min()), float(kept.max()), float(kept.mean()), nans, infinities)


class Examined(NamedTuple):
    """Memory as values: `address` is a device address in HBM, a byte of `partition` in SBUF and PSUM.

    `values` have the element type `dtype`, `base` is "x", "d" or "f"; `written` tells, per value, whether all its bytes
    were written.
    """

    space: str
    core: int | None
    name: str
    partition: int | None
    address: int
    dtype: str
    base: str
    values: Array
    written: Array

    @property
    def end(self) -> int:
        """Return the address after the last value."""
        return self.address + int(self.values.nbytes)


class SourceRow(NamedTuple):
    """One line of a source file; `engines` stand at it: their oldest word that has not completed is from here."""

    number: int
    text: str
    engines: tuple[str, ...]
    breakpoints: tuple[int, ...]


class Listing(NamedTuple):
    """Lines of a source file."""

    file: str
    rows: tuple[SourceRow, ...]


class DisassemblyRow(NamedTuple):
    """One word: `state` is "done", "flying" (issued, not completed), "fault", "next" or "" (not yet reached).

    `satisfied` tells whether its waits hold now, None where it has none.
    """

    pc: int
    text: str
    source: SourceLocation | None
    state: str
    satisfied: bool | None
    breakpoints: tuple[int, ...]


class Disassembly(NamedTuple):
    """Words of one engine's stream."""

    core: int
    engine: str
    words: int
    rows: tuple[DisassemblyRow, ...]


class State(NamedTuple):
    """Where the session stands; `outcome` is "running", "finished", "fault" or "hang"."""

    name: str
    target: str
    cores: int
    outcome: str
    time_ps: int
    events: int
    focus: tuple[int, str]
    ahead: Ahead | None
    breakpoints: int
    warnings: int
    rank: int | None = None
