"""Run what a target describes on the emulator and take the number that it publishes."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.cost import cost_of, dma_costs, figure
from formats.errors import UnsupportedError
from neurontools.validation.targets import Target

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.events import Event

__all__ = ["Measurement", "measure"]

CORPUS = "NEURONTOOLS_CORPUS"
_UNITS = {"ns": 1e3, "us": 1e6, "ms": 1e9}


class Measurement(NamedTuple):
    """What the emulator gave for a target, in its unit; `why` says why there is none."""

    target: Target
    ours: float | None
    why: str = ""

    @property
    def error(self) -> float | None:
        """Return ours over published, less one."""
        return None if self.ours is None else self.ours / self.target.value - 1

    @property
    def ok(self) -> bool | None:
        """Tell whether the error is within what is aimed at."""
        return None if self.error is None else abs(self.error) <= self.target.limit


class _Active:
    """An observer that adds up when engines of core 0 had a word under way, as profiles count active time."""

    def __init__(self) -> None:
        self.ps: dict[str, int] = {}
        self._until: dict[str, int] = {}

    def on_event(self, event: Event) -> None:
        """Take a word into account; words of an engine issue and complete in order."""
        if event.kind == "instruction" and not event.core:
            begun = max(event.issued_ps, self._until.get(event.engine, 0))
            self.ps[event.engine] = self.ps.get(event.engine, 0) + max(event.time_ps - begun, 0)
            self._until[event.engine] = max(event.time_ps, begun)


class _Moving:
    """An observer that keeps when transfers were on the DMA engines."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []

    def on_event(self, event: Event) -> None:
        """Keep from the first begin to the last end of a transfer on any engine."""
        spans = event.instruction.spans if event.kind == "dma" else ()
        if spans:
            self.spans.append((min(begun for begun, _ in spans), max(end for _, end in spans)))

    @property
    def ps(self) -> int:
        """Return how long at least one transfer was there."""
        total = until = 0
        for begun, end in sorted(self.spans):
            total += max(end - max(begun, until), 0)
            until = max(until, end)
        return total


class _Words:
    """An observer that keeps when words of one opcode were issued and completed."""

    def __init__(self, opcode: str) -> None:
        self.opcode = opcode
        self.seen: list[tuple[int, int]] = []

    def on_event(self, event: Event) -> None:
        """Keep a completion of the opcode."""
        if event.kind == "instruction" and event.instruction.name == self.opcode:
            self.seen.append((event.issued_ps, event.time_ps))


def measure(target: Target) -> Measurement:
    """Return what the emulator gives for a target; a row that cannot be run says why."""
    kind, *words = target.measure.split()
    scale = _UNITS.get(target.unit, 1.0)
    if kind == "program":
        corpus = os.environ.get(CORPUS)
        folder = Path(corpus or "", target.kernel.removeprefix("file "))
        if not corpus or not folder.is_dir():
            return Measurement(target, None, f"needs {CORPUS} with a checkout of its repository")
        return Measurement(target, _program(folder) / scale)
    return Measurement(target, _MEASURES[kind](target, *words) / scale)


# --- kernels ---------------------------------------------------------------------------------------------------------


def _function(target: Target) -> Callable[..., Any]:
    module, name = target.kernel.split(".")
    return getattr(import_module(f"neurontools.validation.kernels.{module}"), name)  # type: ignore[no-any-return]


def _arguments(target: Target) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a kernel and what it is called with: arrays of the shapes, then the other parameters."""
    import ml_dtypes
    import numpy as np

    import neurontools.nki.language as nl

    module, name = target.kernel.split(".")
    function = _function(target)
    given = dict(target.arguments)
    dtypes = {key: getattr(nl, given[key]) for key in ("source", "result", "dtype") if key in given}
    array = np.dtype(ml_dtypes.bfloat16 if given.get("dtype") == "bfloat16" else np.float32)
    if module == "matmul":
        depth = given["depth"]
        more = [given[key] for key in ("banks", "software") if key in given]
        return function, (_zeros((depth, given["rows"]), array), _zeros((depth, given["columns"]), array), *more)
    if module == "mamba":
        channels, length, states = given["channels"], given["length"], given["states"]
        shapes = ((channels, length), (channels, length), (channels, states), (states, length), (states, length))
        return function, tuple(_zeros(shape, array) for shape in shapes)
    if module == "norms":
        return function, tuple(_zeros((rows, given["width"]), array) for rows in (given["rows"], 1, 1))
    if name == "vector_add":
        vectors = (_zeros((given["n"],), array), _zeros((given["n"],), array))
        return function, (*vectors, given["partitions"], given["width"])
    if name == "transpose":
        return function, (_zeros((given["rows"], given["rows"]), array),)
    return _small(function, name, given, dtypes)


def _small(function: Callable[..., Any], name: str, given: dict[str, Any], dtypes: dict[str, Any],
           ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    import numpy as np

    import neurontools.nki.language as nl

    x = _zeros((1, 1), np.dtype(np.float32))
    width = given["width"]
    if name == "pair":
        return function, (x, width, dtypes["dtype"], given.get("rows", 128))
    if name == "act":
        op = getattr(nl, given.get("op", "exp"))
        return function, (x, width, dtypes["dtype"], given.get("rows", 128), 1, op)
    if name == "scaled":
        return function, (x, width, dtypes["source"], dtypes["result"])
    if name == "fold":
        return function, (x, width, dtypes["dtype"], getattr(nl, given["op"]))
    if name == "scalar_tile":
        return function, (x, width, given.get("times", 1))
    if name == "product":
        return function, (x, width, given["columns"], dtypes["dtype"], given.get("times", 1), given.get("turn", False))
    raise UnsupportedError(f"no kernel {name!r}")


def _zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return new zeros; a kernel takes one array given twice for one tensor."""
    import numpy as np

    return np.zeros(shape, dtype)


def _run(target: Target, *observers: Any, arguments: tuple[Any, ...] | None = None, without: tuple[str, ...] = (),
         ) -> Device:
    """Trace, build and run the kernel of a target; UnsupportedError where it does not finish."""
    from emulator.device import Device
    from neurontools.api import build

    if arguments is None:
        function, args = _arguments(target)
    else:
        function, args = _function(target), arguments
    neff = build(function, *args, target=target.chip)
    device = Device(neff.target, len(neff.subgraphs), without=without)
    device.load(neff)
    arrays = [arg for arg in args if hasattr(arg, "shape")]
    device.set_inputs(dict(zip((tensor.name for tensor in neff.inputs), arrays, strict=False)))
    device.observers.extend(observers)
    if device.run() != "finished":
        raise UnsupportedError(f"{target.id}: {device.fault or device.hang}")
    return device


def _latency(target: Target, opcode: str) -> float:
    """Return the duration of the last word of an opcode; the Tensor engine's clock is up, as in the publication."""
    words = _Words(opcode)
    _run(target, words, without=("throttle",))
    if not words.seen:
        raise UnsupportedError(f"{target.id}: its kernel has no {opcode}")
    issued, done = words.seen[-1]
    return done - issued


def _interval(target: Target, opcode: str) -> float:
    """Return the time between the starts of the last two words of an opcode."""
    words = _Words(opcode)
    _run(target, words, without=("throttle",))
    (before, _), (last, _) = words.seen[-2:]
    return last - before


def _time(target: Target) -> float:
    """Return the device time: that of the program and what the runtime puts around it."""
    return _of_kernel(target.chip, target.kernel, repr(sorted(target.arguments.items())), target)[0]


def _active(target: Target, engine: str) -> float:
    """Return how long an engine had words under way, or the DMA engines "packets" in sum or anything at all ("dma")."""
    return _of_kernel(target.chip, target.kernel, repr(sorted(target.arguments.items())), target)[1][engine]


_kept: dict[tuple[str, str, str], tuple[float, dict[str, int]]] = {}


def _of_kernel(chip: str, kernel: str, arguments: str, target: Target) -> tuple[float, dict[str, int]]:
    """Return device time, and active times of engines, "packets" and "dma"; targets that share a kernel share its run.

    Of packets profiles show a little more than the time until the next one can start.
    """
    key = (chip, kernel, arguments)
    if key not in _kept:
        active, moving = _Active(), _Moving()
        device = _run(target, active, moving)
        time = device.now_ps + figure("runtime_overhead", chip) * 1e6
        packets = sum(ring.completed for rings in device.dma.rings() for ring in rings)
        shown = sum(engine.busy_ps for engine in device.dma.engines[0]) + packets * round(
            figure("packet_shown", chip) * 1000)
        _kept[key] = time, {**active.ps, "packets": shown, "dma": moving.ps}
        device.release()
    return _kept[key]


# --- DMA -------------------------------------------------------------------------------------------------------------


class _Transfers:
    """An observer that keeps transfers."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_event(self, event: Event) -> None:
        """Keep a transfer."""
        if event.kind == "dma":
            self.seen.append(event.instruction)


def _rate(target: Target, width: int) -> float:
    """Return bytes per picosecond of loads of 128 x `width` bytes, one behind the other on one queue."""
    import numpy as np

    transfers = _Transfers()
    times = 5 if width > 8192 else 24
    _run(target, transfers, arguments=(_zeros((128, width), np.dtype(np.uint8)), width, times, True))
    first, last = transfers.seen[1], transfers.seen[-1]
    return 128 * width * (len(transfers.seen) - 2) / (last.completed_ps - first.completed_ps)


_full_rates: dict[str, float] = {}


def _curve(target: Target) -> float:
    """Return the throughput relative to that of 32 KiB rows."""
    if target.chip not in _full_rates:
        _full_rates[target.chip] = _rate(target, 32768)
    return _rate(target, target.arguments["width"]) / _full_rates[target.chip]


def _transfer(target: Target) -> float:
    """Return the time from trigger to semaphore of one load."""
    import numpy as np

    transfers = _Transfers()
    width = target.arguments["width"]
    _run(target, transfers, arguments=(_zeros((128, width), np.dtype(np.uint8)), width, 1))
    found = transfers.seen[0]
    return float(found.completed_ps - found.triggered_ps)


def _dma(target: Target, part: str, *words: str) -> float:
    """Return a phase of one transfer as the table of costs has it: the programs behind these rows are not public."""
    costs = dma_costs(target.chip)
    propagation = figure("propagation", target.chip) * 1000
    word = {"sync": figure("trigger_other", target.chip), "pool": figure("trigger_pool", target.chip),
            "software": figure("trigger_pool", target.chip)}
    if part == "completion":
        return costs.completion_ps(1) + propagation
    if part == "start":
        maker = "software" if words[0] == "software" else "prebuilt"
        return word[words[0]] * 1000 + costs.start_ps(words[0] == "pool", maker)
    if part == "data":
        writes, (count, nbytes) = words[0] == "store", map(int, words[1:])
        return costs.data_ps(count, nbytes, writes) + (0 if writes else costs.fill_ps)
    if part == "span":
        writes, (engines, count, nbytes) = words[0] == "store", map(int, words[1:])
        return (engines - 1) * costs.stagger_ps(writes) + costs.data_ps(count, nbytes, writes) + (
            0 if writes else costs.fill_ps)
    start = _dma(target, "start", words[0])
    span = _dma(target, "span", "load", *words[1:])
    return start + span + costs.completion_ps(int(words[1])) + propagation


# --- single words and figures, files of the corpus -------------------------------------------------------------------


def _word(target: Target, op: str, width: str) -> float:
    """Return what a fold of bf16 costs whose operator the front end does not have on this chip."""
    from emulator.arch import arch_of
    from formats import isa
    from formats.dtypes import Dtype

    many = isa.AccessPattern(0, (1, 1, 1, 1), (int(width), 1, 1, 1))
    one = isa.AccessPattern(0, (1, 1, 1, 1), (1, 1, 1, 1))
    word = isa.TensorReduce(src=many, dst=one, src_dtype=Dtype.BFLOAT16, dst_dtype=Dtype.BFLOAT16, op=isa.AluOp[op])
    return cost_of(word, "DVE", arch_of(target.chip)).latency_ps


def _figure(target: Target, name: str) -> float:
    return figure(name, target.chip) * 1000


def _chain(target: Target, name: str) -> float:
    """Return what a word that needs the word before takes: latency, one element, and the semaphore's way."""
    from emulator.arch import arch_of

    return (figure(name, target.chip) + 1 / arch_of(target.chip).clock_ghz("Activation")
            + figure("propagation", target.chip)) * 1000


class _Span:
    """An observer that keeps the start of the first DMA trigger of core 0 and the end of its last word."""

    def __init__(self) -> None:
        self.first = self.last = -1

    def on_event(self, event: Event) -> None:
        """Take a completion into account."""
        if event.kind != "instruction" or event.core:
            return
        if event.instruction.name.startswith("DMA"):
            self.first = event.issued_ps if self.first < 0 else min(self.first, event.issued_ps)
        self.last = event.time_ps


def _program(folder: Path) -> float:
    """Return how long a compiled program takes from its first trigger to the end of its last word."""
    import numpy as np

    from emulator.device import Device
    from emulator.dtypes import numpy_dtype
    from formats.dtypes import Dtype
    from formats.neff import open_neff

    neff = open_neff(next(folder.glob("*.neff")))
    device = Device(neff.target, len(neff.subgraphs))
    device.load(neff)
    random = np.random.default_rng(0)
    device.set_inputs({tensor.name: (random.random(tensor.shape, np.float32) * 2 - 1).astype(
        numpy_dtype(Dtype.from_numpy_name(tensor.dtype))) for tensor in neff.inputs})
    span = _Span()
    device.observers.append(span)
    if device.run() != "finished":
        raise UnsupportedError(f"{folder.name}: {device.fault or device.hang}")
    return float(span.last - span.first)


_MEASURES: dict[str, Callable[..., float]] = {
    "latency": _latency, "interval": _interval, "time": _time, "active": _active, "curve": _curve,
    "transfer": _transfer, "dma": _dma, "figure": _figure, "word": _word, "chain": _chain,
}
