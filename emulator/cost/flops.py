"""Floating-point operations: of a word, and of what a device has executed. Source: hardware.md 3.3, FLOP accounting."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from formats import isa
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.events import Event

__all__ = ["Counted", "Flops", "flops_of"]

_ENGINE = "PE"  # the only one whose operations are counted


class Flops(NamedTuple):
    """Floating-point operations of one word of the Tensor engine; `weighted` counts passes, as the hardware does."""

    model: int
    transpose: int
    weighted: int


def flops_of(word: isa.Instruction) -> Flops | None:
    """Return the operations of a word, None for what is no matmul."""
    if isinstance(word, isa.MatMul):
        # An fp32 product is two words, each of which carries half of the passes.
        halves = 2 if word.fp32_mode else 1
        made = 2 * word.rows * word.cols * word.src.elements
        # the hardware counts passes, of which fp32 takes four (hardware.md 3.3)
        weight = 4 if word.fp32_mode else 1
        if word.transpose_mode:
            return Flops(0, made // halves, weight * made // halves)
        return Flops(made // halves, 0, weight * made // halves)
    if isinstance(word, isa.MatMulMx):
        # Four packed elements in each of the partitions; the products take a quarter of the time.
        made = 2 * 4 * word.channels * word.dst_channels * word.src.elements
        return Flops(made, 0, made // 4)
    return None


class Counted:
    """Counts what runs of one program compute: from the words alone, where the Tensor engine executes each once.

    Where it branches, `observer` gives what counts the words of a run as they complete.
    """

    def __init__(self) -> None:
        self._sums: list[tuple[int, ...]] | None = None
        self._branches: bool | None = None

    def observer(self, device: Device) -> Counter | None:
        """Return what has to watch a run before `of` can say what it computed, None where nothing has to."""
        if self._branches is None:
            words = (one.word for core in device.cores for one in core.engines[_ENGINE].words)
            self._branches = any(type(word).DECIDES for word in words)
        return Counter() if self._branches else None

    def of(self, device: Device, counter: Counter | None) -> int:
        """Return the operations of the words that have completed, without transposes."""
        if counter is not None:
            return counter.flops
        if self._sums is None:
            self._sums = [
                tuple(accumulate((_model(one.word) for one in core.engines[_ENGINE].words), initial=0))
                for core in device.cores
            ]
        return sum(
            sums[min(core.engines[_ENGINE].completed, len(sums) - 1)]
            for sums, core in zip(self._sums, device.cores, strict=True)
        )


def _model(word: isa.Instruction) -> int:
    found = flops_of(word)
    return 0 if found is None else found.model


class Counter:
    """Adds up the operations of words as they complete."""

    def __init__(self) -> None:
        self.flops = 0

    def on_event(self, event: Event) -> None:
        """Count a word of the Tensor engine."""
        if event.engine == _ENGINE and event.kind == "instruction":
            self.flops += _model(event.instruction)
