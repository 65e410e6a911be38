"""From a kernel and its arguments to results: trace, build a NEFF, load it, run it on the emulator, convert back."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import prod
from operator import itemgetter
from types import CodeType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.errors import NeuronError
from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS
from formats.targets import Target, resolve_target
from neurontools.builder.garbage_collection import without_collection
from neurontools.builder.limits import LIMITS
from neurontools.builder.trace import Allocation, Source, Space, Trace, View, touched_by, views_of
from neurontools.nki import artifacts, cache, calls, printing, words
from neurontools.nki.arguments import Arguments, from_numpy, map_structure, write_back
from neurontools.nki.assignments import write_where_assigned
from neurontools.nki.cache_key import Key, key_of
from neurontools.nki.dtype import as_registered, dtype_of, is_packed
from neurontools.nki.errors import KernelFaultError, NkiValidationError, UnsupportedError
from neurontools.nki.reshaping import check_copies
from neurontools.nki.switches import switch
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Observation, Tracer, default_lenient, default_target, tracing
from neurontools.nki.visits import VisitRecorder

if TYPE_CHECKING:
    from formats.neff import Neff
    from neurontools.builder import BuiltNeff
    from neurontools.builder.spilling import Spilled

__all__ = ["Traced", "build_neff", "launch", "trace_kernel"]

_allocation_of = itemgetter(View._fields.index("allocation"))


class Traced(NamedTuple):
    """One program's trace, the tensors it returned, what it wants looked at after the run, and the inputs it writes."""

    trace: Trace
    results: Any
    observations: list[Observation]
    written: set[int]


def _function_of(kernel: Any) -> tuple[Callable[..., Any], tuple[int, ...], str | None]:
    """Return the Python function, launch grid and decorator target of a kernel or plain function."""
    return getattr(kernel, "func", kernel), getattr(kernel, "grid", ()), getattr(kernel, "platform_target", None)


def _as_launched(kernel: Any) -> Any:
    """Return what a launch of the kernel would trace: those of the first generation are another function then."""
    launched = getattr(kernel, "as_launched", None)
    return kernel if launched is None else launched()


def _grid(grid: tuple[int, ...], lnc: int | None, target: Target) -> tuple[int, ...]:
    if not grid and lnc is not None and lnc > 1:
        grid = (lnc,)
    programs = prod(grid)
    if programs > 2:
        raise UnsupportedError(f"launch grid {list(grid)}: more than two programs are not supported yet")
    limits = LIMITS.get(target.generation)
    if limits is not None and programs > limits.logical_cores:
        raise NkiValidationError(
            f"launch grid {list(grid)} needs {programs} cores per logical core, {target.name} "
            f"({target.generation}) has {limits.logical_cores}"
        )
    return grid


def trace_kernel(
    kernel: Any,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    lnc: int | None = None,
    target: str | Target | None = None,
) -> list[Traced]:
    """Run the kernel's body once for each program id and return what each did."""
    kernel = _as_launched(kernel)
    function = _function_of(kernel)[0]
    with without_collection():
        return _trace(kernel, Arguments(function, args, kwargs or {}), lnc, target)


def _trace(kernel: Any, arguments: Arguments, lnc: int | None, target: str | Target | None) -> list[Traced]:
    """Do what `trace_kernel` does, for whoever keeps collections of garbage away."""
    function, grid, wanted = _function_of(kernel)
    chosen = resolve_target(target) if target is not None else default_target(wanted)
    grid = _grid(grid, lnc, chosen)
    lenient = _is_lenient(kernel)
    says_words = words.may_say(function)
    while True:
        try:
            with words.named(says_words):
                programs = [
                    _traced(function, arguments, Tracer(chosen, program_id, grid, lenient))
                    for program_id in range(prod(grid))
                ]
            break
        except NameError as error:
            if says_words or not words.heard(function, error):
                raise
            says_words = True
    _match_outputs([one.trace for one in programs])
    return programs


def _traced(function: Callable[..., Any], arguments: Arguments, t: Tracer) -> Traced:
    """Run the kernel's body for one program id."""
    with tracing(t):
        positional, keywords = arguments.bind(t)
        t.bottom = sys._getframe()
        t.visits = t.trace.visits = visits = VisitRecorder(t.bottom)
        try:
            returned = function(*positional, **keywords)
        except NeuronError:
            raise
        except calls.PYTHON_ERRORS as error:
            named = inspect.signature(function).bind(*positional, **keywords).arguments
            better = calls.explained(t, error, named)
            if better is None:
                raise
            raise better from error
        finally:
            t.bottom = None  # a frame that it holds would hold all that it works on
            visits.close()
        _refuse_unfinished(t, function, returned)
        check_copies(t)
        write_where_assigned(t.trace, t.assigned)
        return _finish(t, returned, function)


def _is_lenient(kernel: Any) -> bool:
    """Return whether a launch only warns of limits of the hardware: as the kernel says, else the environment."""
    wanted = getattr(kernel, "options", {}).get("lenient")
    return default_lenient() if wanted is None else bool(wanted)


def _refuse_unfinished(t: Tracer, function: Callable[..., Any], returned: Any) -> None:
    """Refuse a body that has not run at all, and one that works on tensors of another launch."""
    if isinstance(returned, (GeneratorType, CoroutineType)):
        returned.close()
        what = f"{function.__name__} is a generator or coroutine; a kernel returns its results"
        raise t.error(what, _line_of(function))
    if t.loops:
        raise t.error(
            "a loop on the device is left by break or return, which its branches cannot follow", t.loops[-1].source
        )
    found = t.trace.touched = touched_by(t.ops)  # which the builder wants to know as well
    touched = {*map(_allocation_of, found.views)}
    foreign = touched.difference(t.trace.allocations)
    tall = (
        {one for one in touched if one.partitions > PARTITIONS and one.space is not Space.HBM} if t.lenient else set()
    )
    for op in t.ops if foreign or tall else ():
        for allocation in [view.allocation for view in views_of(op)]:
            if allocation in foreign:
                raise t.error(f"tensor {allocation.name} belongs to another launch of a kernel", op.source)
            if allocation in tall:
                where = f"the {PARTITIONS} partitions of {allocation.space.value.upper()}"
                raise t.error(f"{allocation.name} of {allocation.partitions} partitions does not fit in {where}",
                              op.source)  # fmt: skip


def _line_of(function: Any) -> Source | None:
    """Return where a kernel begins, for what is wrong with it as a whole."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else (code.co_filename, code.co_firstlineno)


def _finish(t: Tracer, returned: Any, function: Callable[..., Any]) -> Traced:
    """Turn returned tensors, observed tensors and written inputs into the outputs of the trace."""
    trace = t.trace
    found: list[Allocation] = []

    def to_view(value: Any, path: str) -> Any:
        if not isinstance(value, NkiTensor):
            return value
        if value.on_chip:
            what = f"the kernel returns {value.name} in {value.buffer.value}; results must be in HBM"
            raise t.error(what, _line_of(function))
        found.append(value.allocation)
        return value.view_of_storage

    trace.results = map_structure(returned, to_view)
    found += [one.allocation for one in t.observations]
    found += [one for one in trace.inputs if one.id in t.written]
    for allocation in found:
        if allocation.kind in ("shared", "private"):
            allocation.kind = "output"
        if allocation not in trace.outputs:
            trace.outputs.append(allocation)
    return Traced(trace, returned, t.observations, t.written)


def _match_outputs(traces: list[Trace]) -> None:
    """Make the n-th shared allocation an output of every program, if one returns it; an input, if one writes it."""
    if len(traces) == 1:
        return

    def shared(trace: Trace) -> list[Allocation]:
        return [one for one in trace.allocations if one.kind in ("shared", "output")]

    for group in zip(*map(shared, traces), strict=False):
        if any(one.kind == "output" for one in group):
            for trace, one in zip(traces, group, strict=True):
                if one.kind != "output":
                    one.kind = "output"
                    trace.outputs.append(one)
    for group in zip(*(trace.inputs for trace in traces), strict=True):
        has_it = [one in trace.outputs for trace, one in zip(traces, group, strict=True)]
        for trace, one, has in zip(traces, group, has_it, strict=True):
            if any(has_it) and not has:
                trace.outputs.append(one)


def _build(programs: list[Traced], name: str) -> BuiltNeff:
    from neurontools import builder  # deferred: start-up

    built = builder.build([one.trace for one in programs], name, schedule=_is_scheduled())
    if built.spilled:
        _say_spilled(built.spilled, name)
    return built


def _say_spilled(spilled: Sequence[Spilled], name: str) -> None:
    """Say on standard error that tiles go through device memory: it takes time that the kernel does not show."""
    from neurontools.text.table import bytes_text  # deferred: start-up

    stored = bytes_text(sum(one.stored_bytes for one in spilled))
    loaded = bytes_text(sum(one.loaded_bytes for one in spilled))
    file, line = spilled[0].source[:2]
    tiles = sum(one.tiles for one in spilled)
    print(
        f"neurontools: kernel {name}: SBUF is full at {file}:{line}; as AWS's compiler would, {tiles} tiles go through "
        f"device memory, {stored} stored and {loaded} loaded again",
        file=sys.stderr,
    )


def _scheduled(programs: list[Traced], name: str) -> Neff:
    """Return the file of a launch once more, its operations scheduled."""
    from neurontools import builder  # deferred: start-up

    return builder.build([one.trace for one in programs], name, schedule=True).open()


def _is_scheduled() -> bool:
    """Return whether NEURONTOOLS_SCHEDULE lets operations go ahead of others that wait, as AWS's compiler does."""
    setting = switch("NEURONTOOLS_SCHEDULE", "off")
    if setting not in ("on", "off"):
        raise NkiValidationError(f"NEURONTOOLS_SCHEDULE is {setting!r}, must be on or off")
    return setting == "on"


def build_neff(
    kernel: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    lnc: int | None = None,
    target: str | Target | None = None,
) -> Neff:
    """Trace and build a kernel; return the opened NEFF.

    From the third time on the file is taken from the launch cache, where that can vouch for it: the same open file as
    before while somebody has that.
    """
    kernel = _as_launched(kernel)
    arguments = Arguments(_function_of(kernel)[0], args, kwargs)
    key = _key_of(kernel, arguments, lnc, target) if _is_built_again(kernel, arguments) else None
    if key is not None:
        found = cache.find(key.digest)
        if found is not None:
            printing.say(found.printed)
            return cache.opened(key.digest, found)
    # The traces are gone by the end of it: a collection between would go through all that they hold.
    with printing.noticed(key is not None and key.may_print) as printed, without_collection():
        ready, opened = _built(kernel, arguments, lnc, target)
    if key is not None and _comes_again(printed) and _key_of(kernel, arguments, lnc, target) == key:
        cache.keep(key.digest, ready._replace(printed=(*printed.texts,)), opened)
    return opened


def _comes_again(printed: printing.Printed) -> bool:
    """Return whether a trace did nothing that differs the next time, its key apart.

    What is printed besides text may, and a function of `sys.setprofile` changes the order in which a frame has its
    variables.
    """
    return printed.is_text and sys.getprofile() is None


def _built(
    kernel: Any, arguments: Arguments, lnc: int | None, target: str | Target | None
) -> tuple[cache.Prepared, Neff]:
    """Trace and build a kernel; return the launch, and its file; collections wait until it has let go of the traces."""
    programs = _trace(kernel, arguments, lnc, target)
    built = _build(programs, _name(kernel))
    return _made(programs, built), built.open()


_MOST_SEEN = 1 << 10
# Codes of kernels that were built, with shapes and types of their arrays; by identity, as a code's hash is slow.
_seen: dict[tuple[Any, ...], CodeType] = {}


def _is_built_again(kernel: Any, arguments: Arguments) -> bool:
    """Return whether a build like this one came before: to find out what a kernel depends on takes a while.

    A lenient build warns, each time.
    """
    code = getattr(_function_of(kernel)[0], "__code__", None)
    if code is None or not cache.is_on() or _is_lenient(kernel):
        return False
    like = id(code), *((one.array.shape, one.array.dtype) for one in arguments.inputs)
    if like in _seen:
        return True
    if len(_seen) >= _MOST_SEEN:
        _seen.clear()
    _seen[like] = code
    return False


def _name(kernel: Any) -> str:
    return getattr(_function_of(kernel)[0], "__name__", "kernel")


def launch(
    kernel: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    lnc: int | None = None,
    target: str | Target | None = None,
) -> Any:
    """Trace, build, load and run a kernel; return its results in the framework of its first array argument.

    Inputs that the kernel writes are updated in place.  Raises KernelFaultError when the run faults or hangs, and
    AssertionError when an `assert` on a tensor does not hold.
    """
    from neurontools.program import launches  # deferred: start-up

    running = launches.current()
    if running is not None and lnc is None:
        lnc = running.configuration.lnc
    arguments = Arguments(_function_of(kernel)[0], args, kwargs)
    name = _name(kernel)
    if running is not None and running.keeps_orders:
        ready, running.scheduled = _with_other_order(kernel, arguments, lnc, target)
    else:
        ready = _prepare(kernel, arguments, lnc, target)
    artifacts.keep(ready.neff)
    values = {
        # a number without dimensions is a tensor of one
        tensor: _as_held(np.ascontiguousarray(one.array)).reshape(shape)
        for (tensor, shape), one in zip(ready.inputs, arguments.inputs, strict=True)
    }
    made = (running or launches.Launches()).run(name, ready.neff, values)
    result = made.result
    for text in made.notes:
        print(f"neurontools: {text}", file=sys.stderr)
    if ready.results is None and not ready.written and not ready.looks:
        print(f"neurontools: kernel {name} returns nothing and writes none of its arguments, so its results are lost; "
              "return the tensors in HBM that it fills", file=sys.stderr)  # fmt: skip
    for printed in result.prints:
        print(printed.prefix, printed.values)
    for problem in (result.fault, result.hang):
        if problem is not None:
            raise KernelFaultError(f"{name}: {problem.brief}", result)
    _copy_back(ready, arguments, result.outputs)
    _look(ready.looks, result.outputs)
    return map_structure(ready.results, lambda value, path: _convert(value, result.outputs, arguments.framework))


def _as_held(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return truth values as bytes and packed elements as integers, which hold them; any other array as it is."""
    if array.dtype == np.bool_:
        return array.view(np.uint8)
    return array.view(dtype_of(array.dtype).numpy) if is_packed(array.dtype) else array


def _prepare(kernel: Any, arguments: Arguments, lnc: int | None, target: str | Target | None) -> cache.Prepared:
    """Return the launch built before from the same kernel, kinds of arguments and surroundings, or build it."""
    # What a kernel depends on takes a while to find out, a small one longer than to build it.
    key = _key_of(kernel, arguments, lnc, target) if cache.is_on() else None
    found = cache.find(None if key is None else key.digest)
    if found is not None and key is not None:
        printing.say(found.printed)
        return found._replace(neff=cache.opened(key.digest, found))
    # the traces are gone by the end of it
    with printing.noticed(key is not None and key.may_print) as printed, without_collection():
        ready, _ = _built(kernel, arguments, lnc, target)
    # A body that prints objects, or changes what it reads, a list outside it say, must run each time.
    if key is not None and _comes_again(printed) and _key_of(kernel, arguments, lnc, target) == key:
        cache.keep(key.digest, ready._replace(printed=(*printed.texts,)))
    return ready


def _with_other_order(
    kernel: Any, arguments: Arguments, lnc: int | None, target: str | Target | None
) -> tuple[cache.Prepared, Callable[[], Neff] | None]:
    """Trace and build a launch; return what builds it once more, its operations scheduled, unless they are."""
    with without_collection():
        programs = _trace(kernel, arguments, lnc, target)
        ready = _made(programs, _build(programs, _name(kernel)))
    return ready, None if _is_scheduled() else partial(_scheduled, programs, _name(kernel))


def _key_of(kernel: Any, arguments: Arguments, lnc: int | None, target: str | Target | None) -> Key | None:
    function, grid, wanted = _function_of(kernel)
    chosen = resolve_target(target) if target is not None else default_target(wanted)
    surroundings = (chosen.name, chosen.generation, _grid(grid, lnc, chosen), _name(kernel), _is_lenient(kernel))
    return key_of(function, arguments, surroundings)


def _made(programs: list[Traced], built: BuiltNeff) -> cache.Prepared:
    """Return what a launch needs of its traces and of the file built from them."""
    first = programs[0]
    written = set().union(*(one.written for one in programs))  # inputs have the same numbers in all programs
    return cache.Prepared(
        built.open(),
        tuple((one.name, one.shape) for one in first.trace.inputs),
        tuple(place for place, one in enumerate(first.trace.inputs) if one.id in written),
        cache.returned(first.results, NkiTensor),
        tuple(_look_of(one, observation) for one in programs for observation in one.observations),
    )


def _look_of(program: Traced, one: Observation) -> cache.Look:
    row = program.trace.program_id if one.allocation.shape != one.shape else None
    return cache.Look(one.kind, one.allocation.name, one.allocation.shape, row, one.source, one.text)


def _convert(value: Any, outputs: dict[str, np.ndarray[Any, Any]], framework: str) -> Any:
    if not isinstance(value, cache.Returned):
        return value
    array = read_view(value, outputs[value.name])
    return from_numpy(as_registered(array, value.dtype) if framework == "numpy" else array, framework)


def read_view(tensor: NkiTensor | cache.Returned, output: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the elements that an HBM view selects of its allocation's bytes, as a new array."""
    kind = tensor.dtype.numpy
    flat = np.ascontiguousarray(output).reshape(-1).view(np.uint8)
    strides = tuple(stride * kind.itemsize for stride in tensor.strides)
    # Not `as_strided`: it knows types by their two letters, which are no type for float8_e5m2.
    held = np.uint8 if kind == np.bool_ else kind
    values = np.ndarray(tensor.shape, held, flat, tensor.offset * kind.itemsize, strides)
    return values != 0 if kind == np.bool_ else values.copy()


def _copy_back(ready: cache.Prepared, arguments: Arguments, outputs: dict[str, np.ndarray[Any, Any]]) -> None:
    """Update the caller's arrays that the kernel wrote; JAX arrays cannot be, and stay as they are."""
    for place in ready.written:
        one = arguments.inputs[place]
        values = np.asarray(outputs[ready.inputs[place][0]]).reshape(one.array.shape)
        if not write_back(one.original, values):
            raise NkiValidationError(f"argument {one.name}: the kernel writes it, but the array is read-only")


def _look(looks: Iterable[cache.Look], outputs: dict[str, np.ndarray[Any, Any]]) -> None:
    """Check assertions."""
    for one in looks:
        values = np.asarray(outputs[one.name]).reshape(one.shape)
        if one.row is not None:
            values = values[one.row]
        if one.kind == "print":
            continue  # the debug stream has told it when it happened
        zeros = int(values.size - np.count_nonzero(values))
        if zeros:
            file, line = one.source
            raise AssertionError(f"{file}:{line}: {one.text} does not hold: {zeros} of {values.size} elements are zero")
