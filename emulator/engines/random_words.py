"""Words of the random number generators. Source: hardware.md 5.2, nki.isa pages; generators: emulator.generators."""

from __future__ import annotations

from functools import partial

import numpy as np

from emulator.dtypes import Step, chain
from emulator.engines.operands import raw_input, raw_view, refuse, require_elements, squeezed
from emulator.engines.registry import executes
from emulator.engines.rows import float_rows_out, number_or_column, raw_rows, raw_rows_out
from emulator.generators import Generators, generators_of
from emulator.port import Port
from emulator.scratch import scratch
from formats import isa
from formats.neuron_core import PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE

__all__: list[str] = []

_UNIT = np.float32(2.0**-24)


def _lanes(port: Port, address: int, partitions: int) -> tuple[Generators, slice]:
    """Return an engine's generators, and the lanes that an operand's partitions use."""
    first = address // SBUF_PARTITION_STRIDE if address < PSUM_BASE else (address - PSUM_BASE) // PSUM_PARTITION_STRIDE
    return generators_of(port.core, port.engine), slice(first, first + partitions)


@executes(isa.Rng)
def rng(word: isa.Rng, port: Port) -> Step:
    """Return dst = random bits."""
    dst = port.write("dst")
    if dst.dtype.kind not in "iu":
        raise refuse(word, "random bits of a float", "dst", "an integer element type", dst.dtype.name)
    source, lanes = _lanes(port, word.dst.address, dst.shape[0])
    out, store = raw_rows_out(dst)

    def draw() -> None:
        np.copyto(out, source.draw(lanes, out.shape[1]), casting="unsafe")

    return chain(draw, store)


@executes(isa.Rand2)
def rand2(word: isa.Rand2, port: Port) -> Step:
    """Return dst = low + u * (high - low) in fp32, with u of 24 bits from 0 to below 1."""
    dst = port.write("dst")
    source, lanes = _lanes(port, word.dst.address, dst.shape[0])
    out, store = float_rows_out(dst, word.dst_dtype)
    low, load_low = number_or_column(word, port, "low")
    high, load_high = number_or_column(word, port, "high")

    def draw() -> None:
        np.copyto(out, source.draw(lanes, out.shape[1]) >> np.uint32(8))
        np.multiply(out, _UNIT, out)
        np.multiply(out, high - low, out)
        np.add(out, low, out)

    return chain(load_low, load_high, draw, store)


@executes(isa.Dropout)
def dropout(word: isa.Dropout, port: Port) -> Step:
    """Return dst = 0 where a random number is below the probability, else src, bit for bit."""
    dst = squeezed(port.write("dst"))
    source, lanes = _lanes(port, word.dst.address, dst.shape[0])
    bits, load = raw_input(word, port.read("src"), dst.shape, "src")
    if word.src_dtype != word.dst_dtype:
        raise refuse(word, "element types differ", "dst", "the type of src", dst.dtype.name)
    chance, refresh = number_or_column(word, port, "probability")
    values = scratch(dst.shape, bits.dtype)
    rows = values.reshape(dst.shape[0], -1)

    def drop() -> None:
        np.copyto(values, bits)
        drawn = (source.draw(lanes, rows.shape[1]) >> np.uint32(8)).astype(np.float32) * _UNIT
        np.copyto(rows, 0, where=drawn < chance)

    return chain(load, refresh, drop, partial(np.copyto, raw_view(dst), values))


@executes(isa.SetRngSeed)
def set_rng_seed(word: isa.SetRngSeed, port: Port) -> Step:
    """Derive the state of all lanes from one 32-bit number."""
    src = port.read("src")
    if src.shape[0] != 1 or src.size != 1 or src.dtype.itemsize != 4:
        raise refuse(
            word,
            "the seed is not one number",
            "src",
            "one element of 32 bits",
            f"{src.size} of {8 * src.dtype.itemsize} bits",
        )
    bits = raw_view(src).reshape(1)
    source = generators_of(port.core, port.engine)
    return lambda: source.seed(int(bits[0]))


@executes(isa.RandSetState)
def rand_set_state(word: isa.RandSetState, port: Port) -> Step:
    """Set the state of each lane."""
    src = port.read("src")
    source, lanes = _lanes(port, word.src.address, src.shape[0])
    rows, load = raw_rows(src)
    require_elements(word, "src", src, source.words)

    def put() -> None:
        source.state[lanes] = rows.reshape(rows.shape[0], *source.state.shape[1:])

    return chain(load, put)


@executes(isa.RandGetState)
def rand_get_state(word: isa.RandGetState, port: Port) -> Step:
    """Return dst = the state of each lane."""
    dst = port.write("dst")
    source, lanes = _lanes(port, word.dst.address, dst.shape[0])
    rows, store = raw_rows_out(dst)
    require_elements(word, "dst", dst, source.words)
    return chain(lambda: np.copyto(rows, source.state[lanes].reshape(rows.shape)), store)
