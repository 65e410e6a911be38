"""The text of `--what-if` as a change of the schedule."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from formats.engines import ENGINE_ALIASES

if TYPE_CHECKING:
    from emulator.arch import Arch
    from emulator.loaded import LoadedWord
    from emulator.sequencer import Sequencer
    from emulator.timeline.change import Change, WordCost

    Chosen = Callable[[Sequencer, LoadedWord], bool]

__all__ = ["EXPLANATION", "parse_change"]

EXPLANATION = """
CHANGE is a list like dma=2x,pe_clock=2.8. A speed is Nx (N times as fast) or 0 (takes no time):
  dma, dma_latency, dma_bandwidth, hbm     all of a transfer's time, its fixed part, its data, device memory
  pe, vector, scalar, gpsimd, sync         every instruction of an engine (also tensor, dve, act, pool, sp)
  pe_clock, vector_clock, scalar_clock, gpsimd_clock    the engine's clock, as Nx or in GHz
  semaphore                                from the change of a semaphore to the engine that waits for it
  OPCODE                                   every instruction of this name, such as MATMUL
  FILE:LINE                                every instruction of a source line"""

_DMA = {
    "dma": ("latency", "bandwidth", "hbm"),
    "dma_latency": ("latency",),
    "dma_bandwidth": ("bandwidth",),
    "hbm": ("hbm",),
}
# The clocks of `emulator.timeline.change.CLOCKS` by engine; Sync has none of its own.
_CLOCKED = {"PE": "pe", "DVE": "vector", "Activation": "scalar", "Pool": "gpsimd"}
_SPEED = re.compile(r"(\d+(?:\.\d+)?)(x?)")
_LINE = re.compile(r"(.+):(\d+)")


def parse_change(text: str, arch: Arch) -> Change:
    """Return the change that a text such as "dma=2x,pe_clock=2.8" asks for; BadParameter names what it is not."""
    from emulator.timeline.change import CLOCKS, Change  # deferred: start-up

    clocks: dict[str, float] = {}
    dma: dict[str, float] = {}
    semaphore = 1.0
    words: list[tuple[Chosen, float]] = []
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        match = _SPEED.fullmatch(value)
        if not name or not equals or match is None:
            raise _refused(f"{part.strip()!r} is no NAME=SPEED; a speed is 2x, 0 or, for a clock, GHz")
        number, times = float(match[1]), bool(match[2])
        engine = _CLOCKED.get(ENGINE_ALIASES.get(name.removesuffix("_clock").lower(), ""))
        if name.endswith("_clock") and engine is not None:
            clocks[engine] = getattr(arch, CLOCKS[engine]).value * number if times else number
            if not clocks[engine]:
                raise _refused(f"{part.strip()!r}: a clock of 0 GHz stands still")
            continue
        if number and not times:
            raise _refused(f"{part.strip()!r}: say {value}x for a speed, or 0 for no time at all")
        if times and not number:
            raise _refused(f"{part.strip()!r}: 0x never ends; say 0 for no time at all")
        factor = 1 / number if number else 0.0
        if name in _DMA:
            dma.update(dict.fromkeys(_DMA[name], factor))
        elif name == "semaphore":
            semaphore = factor
        else:
            words.append((_chosen(name), factor))
    return Change(clocks, dma, semaphore, _pricing(words) if words else None)


def _refused(message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint="--what-if")


def _chosen(name: str) -> Chosen:
    """Return which (engine, loaded word) a name means."""
    from formats.isa.registry import BY_NAME  # deferred: start-up

    if name.lower() in ENGINE_ALIASES:
        engine = ENGINE_ALIASES[name.lower()]
        return lambda sequencer, loaded: bool(sequencer.name == engine)
    if match := _LINE.fullmatch(name):
        return _on_line(match[1], int(match[2]))
    if name.upper() in BY_NAME:
        return lambda sequencer, loaded: bool(loaded.word.name == name.upper())
    known = ", ".join((*_DMA, *ENGINE_ALIASES, "semaphore"))
    raise _refused(f"{name!r} is none of {known}, NAME_clock, an opcode, or FILE:LINE")


def _on_line(file: str, line: int) -> Chosen:
    known: dict[tuple[int, str, int], bool] = {}

    def chosen(sequencer: Sequencer, loaded: LoadedWord) -> bool:
        key = sequencer.core.index, sequencer.name, loaded.pc
        if key not in known:
            source = sequencer.core.source_of(sequencer.name, loaded.pc)
            known[key] = (
                source is not None
                and source.file is not None
                and source.line == line
                and (source.file == file or source.file.endswith("/" + file))
            )
        return known[key]

    return chosen


def _pricing(words: list[tuple[Chosen, float]]) -> WordCost:
    def price(sequencer: Sequencer, loaded: LoadedWord, interval: int, latency: int) -> tuple[int, int]:
        for chosen, factor in words:
            if chosen(sequencer, loaded):
                interval, latency = round(interval * factor), round(latency * factor)
        return interval, latency

    return price
