"""Kernels with one thing wrong, beside the same kernels without it.

Origin: written for this suite. A comment `# fault` marks the line that a finding has to name, `# other` its other side.
A kernel takes `bad`: what it does otherwise then is the whole difference to its twin. The builder orders what a kernel
says, so that races and hangs of a single core need a second change, to the built file: a wait or a signal is dropped.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.checks import WaitPlace
from emulator.device import Device
from formats import isa
from formats.neff import Neff
from neurontools.nki.launch import build_neff
from tests.checks.support import Edit, drop_wait
from tests.faults.model import Expected, Place, Planted, Program

__all__ = ["PLANTED"]

P, W = 128, 32
RACES = ("racecheck:write-read", "racecheck:read-write", "racecheck:write-write")


def tile(*shape: int, dtype: Any = nl.float32, buffer: Any = nl.sbuf) -> Any:
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def shared(*shape: int) -> Any:
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.shared_hbm)


# --- bytes that nothing wrote ----------------------------------------------------------------------------------------


def ragged_tail(x: Any, bad: bool) -> Any:
    rows = P if bad else 44
    out, part, result = shared(rows, W), tile(P, W), tile(P, W)
    nisa.dma_copy(dst=part[0:44], src=x[0:44])
    nisa.activation(dst=result[0:rows], op=nl.tanh, data=part[0:rows])  # fault
    nisa.dma_copy(dst=out, src=result[0:rows])  # other
    return out


def missing_tile(x: Any, bad: bool) -> Any:
    out = shared(2 * P, W)
    for start in range(0, P if bad else 2 * P, P):
        part = tile(P, W)
        nisa.dma_copy(dst=part, src=x[start : start + P])
        nisa.dma_copy(dst=out[start : start + P], src=part)  # other
    return out


def wide_copy(x: Any, bad: bool) -> Any:
    columns = W if bad else W // 2
    out, left, result = shared(P, columns), tile(P, P), tile(P, columns)
    total = tile(P, W, buffer=nl.psum)
    nisa.dma_copy(dst=left, src=x[0:P, 0:P])
    nisa.nc_matmul(dst=total[0:P, 0 : W // 2], stationary=left, moving=left[0:P, 0 : W // 2])
    nisa.tensor_copy(dst=result, src=total[0:P, 0:columns])  # fault
    nisa.dma_copy(dst=out, src=result)  # other
    return out


def forgotten_bias(x: Any, bad: bool) -> Any:
    out, part, bias = shared(P, W), tile(P, W), tile(P, 1)
    nisa.dma_copy(dst=part, src=x)
    if not bad:
        nisa.memset(dst=bias, value=0.5)
    nisa.activation(dst=part, op=nl.exp, data=part, bias=bias)  # fault
    nisa.dma_copy(dst=out, src=part)  # other
    return out


def stencil(x: Any, bad: bool) -> Any:
    out, part, result = shared(P, W), tile(P, W + 2), tile(P, W)
    nisa.dma_copy(dst=part[0:P, 1 : W + 1], src=x)
    nisa.memset(dst=part[0:P, 0:1], value=0.0)
    if not bad:
        nisa.memset(dst=part[0:P, W + 1 : W + 2], value=0.0)
    nisa.tensor_tensor(dst=result, data1=part[0:P, 0:W], data2=part[0:P, 2 : W + 2], op=nl.add)  # fault
    nisa.dma_copy(dst=out, src=result)  # other
    return out


def empty_scratch(x: Any, bad: bool) -> Any:
    out, part = shared(P, W), tile(P, W)
    between = nl.ndarray((P, W), dtype=nl.float32, buffer=nl.private_hbm)
    nisa.dma_copy(dst=part, src=x)
    if not bad:
        nisa.dma_copy(dst=between, src=part)
    nisa.dma_copy(dst=part, src=between)  # fault
    nisa.dma_copy(dst=out, src=part)  # other
    return out


def first_turn(x: Any, bad: bool) -> Any:
    """Add up tiles in an accumulator that nobody cleared."""
    out, total = shared(P, W), tile(P, W)
    if not bad:
        nisa.memset(dst=total, value=0.0)
    for start in range(0, 2 * P, P):
        part = tile(P, W)
        nisa.dma_copy(dst=part, src=x[start : start + P])
        nisa.tensor_tensor(dst=total, data1=total, data2=part, op=nl.add)  # fault
    nisa.dma_copy(dst=out, src=total)  # other
    return out


def unused_read(x: Any, bad: bool) -> Any:
    out, part, work = shared(P, W), tile(P, W), tile(P, W)
    nisa.dma_copy(dst=part, src=x)
    nisa.tensor_copy(dst=work, src=tile(P, W) if bad else part)  # fault
    nisa.dma_copy(dst=out, src=part)
    return out


# --- out of bounds, by what the data says ----------------------------------------------------------------------------


def gather(data: Any, indices: Any, bad: bool) -> Any:
    rows, width = indices.shape[0], data.shape[1]
    out, index, part = shared(rows, width), tile(rows, 1, dtype=nl.int32), tile(rows, width)
    nisa.dma_copy(dst=index, src=indices)
    nisa.dma_copy(dst=part, src=data.ap([[width, rows], [1, width]], vector_offset=index, indirect_dim=0))  # fault
    nisa.dma_copy(dst=out, src=part)
    return out


def scatter(data: Any, indices: Any, bad: bool) -> Any:
    rows, width = indices.shape[0], data.shape[1]
    out, index, part = shared(rows, width), tile(rows, 1, dtype=nl.int32), tile(rows, width)
    nisa.dma_copy(dst=index, src=indices)
    nisa.dma_copy(dst=part, src=data[0:rows])
    nisa.dma_copy(dst=out.ap([[width, rows], [1, width]], vector_offset=index, indirect_dim=0), src=part)  # fault
    return out


def scatter_sum(data: Any, indices: Any, bad: bool) -> Any:
    """Add rows to those of an output that was stored whole before."""
    rows, width = indices.shape[0], data.shape[1]
    out, index, part = shared(data.shape[0], width), tile(rows, 1, dtype=nl.int32), tile(rows, width)
    whole = tile(data.shape[0], width)
    nisa.dma_copy(dst=index, src=indices)
    nisa.dma_copy(dst=part, src=data[0:rows])
    nisa.dma_copy(dst=whole, src=data)
    nisa.dma_copy(dst=out, src=whole)
    view = out.ap([[width, rows], [1, width]], vector_offset=index)
    nisa.dma_compute(view, [view, part], nl.add)  # fault
    return out


def gather_on_chip(data: Any, indices: Any, bad: bool) -> Any:
    rows, width = data.shape
    out, index, part = shared(rows, 4), tile(rows, 4, dtype=nl.uint32), tile(rows, width)
    result = tile(rows, 4)
    nisa.dma_copy(dst=index, src=indices)
    nisa.dma_copy(dst=part, src=data)
    nisa.nc_n_gather(dst=result, data=part, indices=index)  # fault
    nisa.dma_copy(dst=out, src=result)
    return out


def start_from_a_register(data: Any, at: Any, bad: bool) -> Any:
    out, part, register = shared(1, data.shape[1]), tile(1, data.shape[1]), nisa.register_alloc()
    nisa.register_load(register, at)
    source = data.ap([[1, data.shape[1]]], scalar_offset=register, indirect_dim=0)
    nisa.dma_copy(dst=part, src=source)  # fault
    nisa.dma_copy(dst=out, src=part)
    return out


def columns_from_a_register(data: Any, bad: bool) -> Any:
    """Add up blocks of columns, the last of which goes on behind the tile."""
    out, whole, total = shared(P, 8), tile(P, W), tile(P, 8)
    nisa.dma_copy(dst=whole, src=data)
    nisa.memset(dst=total, value=0.0)
    for at in nl.dynamic_range(0, W + 1 if bad else W, 8):
        block = whole.ap([[W, P], [1, 8]], scalar_offset=at, indirect_dim=1)
        nisa.tensor_tensor(dst=total, data1=total, data2=block, op=nl.add)  # fault
    nisa.dma_copy(dst=out, src=total)
    return out


# --- two cores -------------------------------------------------------------------------------------------------------


def exchange(x: Any, bad: bool) -> Any:
    """Each core stores its half and reads the other one's."""
    rank = nl.program_id(0)
    between, out = shared(2 * P, W), shared(2 * P, W)
    mine, theirs = rank * P, (1 - rank) * P
    part, other = tile(P, W), tile(P, W)
    nisa.dma_copy(dst=part, src=x[mine : mine + P])
    nisa.dma_copy(dst=between[mine : mine + P], src=part)  # other
    if not bad:
        nisa.core_barrier(between, (0, 1))
    nisa.dma_copy(dst=other, src=between[theirs : theirs + P])  # fault
    nisa.dma_copy(dst=out[mine : mine + P], src=other)
    return out


def same_rows(x: Any, bad: bool) -> Any:
    rank = nl.program_id(0)
    start = 0 if bad else rank * P
    out, part = shared(P if bad else 2 * P, W), tile(P, W)
    nisa.dma_copy(dst=part, src=x[rank * P : rank * P + P])
    nisa.dma_copy(dst=out[start : start + P], src=part)  # fault, and on the other core
    return out


def same_work(x: Any, bad: bool) -> Any:
    """Both cores compute all of it and store it."""
    rank = 0 if bad else nl.program_id(0)
    out, part = shared(P if bad else 2 * P, W), tile(P, W)
    nisa.dma_copy(dst=part, src=x[0:P])
    nisa.dma_copy(dst=out[rank * P : rank * P + P], src=part)  # fault
    return out


def overlapping_tiles(x: Any, bad: bool) -> Any:
    out, total = shared(P, W), tile(P, W)
    first = nl.ndarray((P, W), dtype=nl.float32, buffer=nl.sbuf, address=(0, 1024))
    second = nl.ndarray((P, W), dtype=nl.float32, buffer=nl.sbuf, address=(0, 1024 + 4 * (W // 2 if bad else W)))
    nisa.dma_copy(dst=first, src=x)
    nisa.memset(dst=second, value=2.0)
    nisa.tensor_tensor(dst=total, data1=first, data2=second, op=nl.add)  # fault
    nisa.dma_copy(dst=out, src=total)
    return out


def skipped_barrier(x: Any, bad: bool) -> Any:
    rank = nl.program_id(0)
    out, part = shared(2 * P, W), tile(P, W)
    nisa.dma_copy(dst=part, src=x[rank * P : rank * P + P])
    nisa.dma_copy(dst=out[rank * P : rank * P + P], src=part)
    if rank == 0 or not bad:
        nisa.core_barrier(out, (0, 1))  # fault
    return out


# --- built kernels with a wait or a signal less ----------------------------------------------------------------------


def product(a: Any, b: Any, bad: bool) -> Any:
    out, left, right = shared(P, W), tile(P, P), tile(P, W)
    total, result = tile(P, W, buffer=nl.psum), tile(P, W)
    nisa.dma_copy(dst=left, src=a)  # left
    nisa.dma_copy(dst=right, src=b)  # right
    nisa.nc_matmul(dst=total, stationary=left, moving=right)  # product: two loads and two products for fp32
    nisa.tensor_copy(dst=result, src=total, engine=nisa.engine.vector)  # copy
    nisa.dma_copy(dst=out, src=result)  # store
    return out


def through_hbm(x: Any, bad: bool) -> Any:
    between = nl.ndarray((P, W), dtype=nl.float32, buffer=nl.private_hbm)
    out, first, second = shared(P, W), tile(P, W), tile(P, W)
    nisa.dma_copy(dst=first, src=x)  # load
    nisa.dma_copy(dst=between, src=first)  # spill
    nisa.dma_copy(dst=second, src=between)  # reload
    nisa.activation(dst=second, op=nl.tanh, data=second)  # work
    nisa.dma_copy(dst=out, src=second)  # store
    return out


class Word(NamedTuple):
    """A word by engine, the marker of its line, and its place among the words of that line that do the work."""

    engine: str
    marker: str = "fault"
    which: int = -1


class Kernel(NamedTuple):
    """One row of the suite.

    `fault` and `other` say whose words the finding has to name: engine, marker, and which of the words on that line
    where there are several. `inputs` are shapes of random tensors, `indices` the good and the bad values of one more.
    `drop` takes the "wait" or the "signal" of a word away.
    """

    kernel: Callable[..., Any]
    origin: str
    kinds: tuple[str, ...]
    fault: Word
    other: Word | None = None
    inputs: tuple[tuple[int, ...], ...] = ((P, W),)
    indices: tuple[Any, Any] | None = None
    lnc: int = 1
    drop: tuple[str, Word] | None = None


def _numbers(dtype: Any, *values: int) -> np.ndarray[Any, Any]:
    return np.array(values, dtype)[:, None]


_UNDEFINED, _OOB, _TWICE = ("initcheck:undefined-output",), ("memcheck:oob",), ((2 * P, W),)
_PRODUCT = ((P, P), (P, W))
_GOOD, _BAD = _numbers(np.int32, 3, 1, 4, 0, 5, 7, 2, 6), _numbers(np.int32, 3, 1, 4, 0, 64, 7, 2, 6)
_TWO_ALIKE = _numbers(np.int32, 3, 1, 4, 0, 5, 7, 2, 3)
_END = Word("Pool", "", -1)  # the wait that the builder puts at the end

ROWS: dict[str, Kernel] = {
    "a ragged tail is stored whole": Kernel(
        ragged_tail, "the last of three tiles of 300 rows", _UNDEFINED, Word("Activation"), Word("Pool", "other")
    ),
    "a loop ends one tile early": Kernel(
        missing_tile, "a bound of a loop", ("initcheck:output-unwritten",), Word("host"), Word("Pool", "other"), _TWICE
    ),
    "more of PSUM is copied than was computed": Kernel(
        wide_copy, "the tile's width, not the product's", _UNDEFINED, Word("DVE"), Word("Pool", "other"), ((P, P),)
    ),
    "a bias that was never set": Kernel(
        forgotten_bias, "a memset left out", _UNDEFINED, Word("Activation"), Word("Pool", "other")
    ),
    "the halo of a stencil has one side": Kernel(
        stencil, "an edge that was forgotten", _UNDEFINED, Word("DVE"), Word("Pool", "other")
    ),
    "scratch in HBM is read before it is written": Kernel(
        empty_scratch, "a spill left out", _UNDEFINED, Word("Activation"), Word("Pool", "other")
    ),
    "an accumulator that nobody cleared": Kernel(
        first_turn, "a memset left out", _UNDEFINED, Word("DVE", which=0), Word("Pool", "other"), _TWICE
    ),
    "a tile is read that no result needs": Kernel(
        unused_read, "the wrong name of two tiles", ("initcheck:unwritten-read",), Word("DVE")
    ),
    "a gather behind the end of the table": Kernel(
        gather, "an index as large as the table", _OOB, Word("Pool"), inputs=((64, W),), indices=(_GOOD, _BAD)
    ),
    "a scatter behind the end of the output": Kernel(
        scatter, "indices from 1 instead of 0", _OOB, Word("Pool"), inputs=((64, W),), indices=(_GOOD, _GOOD + 1)
    ),
    "two rows of a scatter have one index": Kernel(
        scatter, "indices that repeat", ("racecheck:duplicate-index",), Word("Pool"), inputs=((64, W),),
        indices=(_GOOD, _TWO_ALIKE),
    ),
    "two rows are added to one": Kernel(
        scatter_sum, "a histogram", ("racecheck:duplicate-index",), Word("Pool"), inputs=((64, W),),
        indices=(_GOOD, _TWO_ALIKE),
    ),
    "a gather on chip behind the end of the tile": Kernel(
        gather_on_chip, "an index as large as the row", ("memcheck:operand",), Word("Pool"), inputs=((4, 8),),
        indices=(np.full((4, 4), 7, np.uint32), np.full((4, 4), 8, np.uint32)),
    ),
    "a row number from a register is too large": Kernel(
        start_from_a_register, "a counter that went one too far", _OOB, Word("Activation"), inputs=((9, 20),),
        indices=(_numbers(np.uint32, 8), _numbers(np.uint32, 9)),
    ),
    "columns by the number of a turn end behind the tile": Kernel(
        columns_from_a_register, "a stop that is one too large", ("memcheck:tile",), Word("SP"),
    ),
    "two cores exchange tiles without a barrier": Kernel(
        exchange, "a core_barrier left out", RACES, Word("Activation"), Word("Pool", "other"), _TWICE, lnc=2
    ),
    "two cores store the same rows": Kernel(
        same_rows, "the program id forgotten", RACES, Word("Pool"), Word("Pool"), _TWICE, lnc=2
    ),
    "two cores store the same bytes": Kernel(
        same_work, "work done twice", ("racecheck:same-bytes",), Word("Pool"), Word("Pool"), _TWICE, lnc=2
    ),
    "a tile at an address that another one reaches into": Kernel(
        overlapping_tiles, "an offset of elements where bytes belong", ("memcheck:tile-overlap",), Word("DVE"),
    ),
    "one core skips a barrier": Kernel(
        skipped_barrier, "a barrier inside a branch", ("synccheck:barrier",), Word("Pool"), Word("Pool", "end"), _TWICE,
        lnc=2,
    ),
    "a product is copied before it is there": Kernel(
        product, "the builder's wait dropped", RACES, Word("DVE", "copy"), Word("PE", "product", 1), _PRODUCT,
        drop=("wait", Word("DVE", "copy")),
    ),
    "the moving tile is used before it is loaded": Kernel(
        product, "the builder's wait dropped", RACES, Word("PE", "product", 1), Word("Activation", "right"), _PRODUCT,
        drop=("wait", Word("PE", "product", 1)),
    ),
    "the stationary tile is used before it is loaded": Kernel(
        product, "the builder's wait dropped", RACES, Word("PE", "product", 2), Word("SP", "left"), _PRODUCT,
        drop=("wait", Word("PE", "product", 0)),
    ),
    "a result is stored before it is there": Kernel(
        product, "the builder's wait dropped", RACES, Word("Pool", "store"), Word("DVE", "copy"), _PRODUCT,
        drop=("wait", Word("Pool", "store")),
    ),
    "a kernel ends before its store": Kernel(
        product, "the builder's wait dropped", ("racecheck:output-not-awaited",), Word("Pool", "store"), None, _PRODUCT,
        drop=("wait", _END),
    ),
    "a tile is loaded again while it is spilled": Kernel(
        through_hbm, "the builder's wait dropped", RACES, Word("SP", "reload"), Word("Pool", "spill"),
        drop=("wait", Word("SP", "reload")),
    ),
    "a tile is used while it is loaded": Kernel(
        through_hbm, "the builder's wait dropped", RACES, Word("Activation", "work"), Word("SP", "reload"),
        drop=("wait", Word("Activation", "work")),
    ),
    "a product that does not say it is done": Kernel(
        product, "the builder's signal dropped", ("synccheck:never-signalled",), Word("DVE", "copy"), None, _PRODUCT,
        drop=("signal", Word("PE", "product")),
    ),
    "a copy that does not say it is done": Kernel(
        product, "the builder's signal dropped", ("synccheck:never-signalled",), Word("Pool", "store"), None, _PRODUCT,
        drop=("signal", Word("DVE", "copy")),
    ),
}  # fmt: skip


def _file(row: Kernel, bad: bool) -> tuple[Neff, dict[str, Any]]:
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in row.inputs]
    arrays += [] if row.indices is None else [row.indices[bad]]
    flag = bad and row.drop is None
    neff: Neff = build_neff(row.kernel, (*arrays, flag), {}, target="trn2", lnc=row.lnc)
    return neff, {tensor.name: array for tensor, array in zip(neff.inputs, arrays, strict=True)}


def _line(kernel: Callable[..., Any], marker: str) -> int:
    lines, first = inspect.getsourcelines(kernel)
    (found,) = [first + at for at, line in enumerate(lines) if f"# {marker}" in line]
    return found


def _side(device: Device, row: Kernel, word: Word) -> Place:
    """Return what a word's site has to say; found by its line in the program as loaded, not through any check."""
    if word.engine == "host":
        return Place("host", -1, -1)
    if word.marker == "end":
        return Place(word.engine, device.cores[1].engines[word.engine].words[-1].pc, -1)
    core = device.cores[0]
    line = _line(row.kernel, word.marker) if word.marker else None
    pcs = [
        loaded.pc
        for loaded in core.engines[word.engine].words
        if getattr(core.source_of(word.engine, loaded.pc), "line", None) == line
        and (line is None or not isinstance(loaded.word, isa.Nop | isa.EventSemaphore | isa.ActTableLoad))
    ]
    return Place(word.engine, pcs[word.which], -1 if line is None else line)  # fmt: skip


def _edit(device: Device, row: Kernel) -> Edit | None:
    if row.drop is None:
        return None
    what, word = row.drop
    place = _side(device, row, word)
    if what == "wait":
        return drop_wait(WaitPlace(0, place.engine, place.pc, 0))

    def edit(device: Device) -> None:
        words = device.cores[0].engines[place.engine].words
        assert isinstance(words, list)
        at = next(index for index, loaded in enumerate(words) if loaded.pc == place.pc)
        raw = bytearray(words[at].word.raw)
        assert raw[6], "the word signals nothing"
        raw[6] = 0
        words[at] = words[at].with_word(type(words[at].word).from_raw(bytes(raw)))

    return edit


def _planted(name: str, row: Kernel) -> Planted:
    def fault() -> tuple[Program, Expected]:
        neff, inputs = _file(row, True)
        device = Device(neff.target, len(neff.subgraphs))
        device.load(neff)
        other = None if row.other is None else _side(device, row, row.other)
        return Program(neff, inputs, _edit(device, row)), Expected(row.kinds, _side(device, row, row.fault), other)

    return Planted(name, row.origin, row.kinds, fault, lambda: Program(*_file(row, False)))


PLANTED = tuple(_planted(name, row) for name, row in ROWS.items())
