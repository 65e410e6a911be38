"""What checks cost per instruction, whether that stays flat over a long run, and how soon a hang is explained.

Informational: nothing here fails.

    python benchmarks/checks.py [WORDS]      default 100,000: tiles loaded, added, normalised, multiplied and stored
"""

from __future__ import annotations

import sys
import time
from typing import Any

from emulator.checks import make_checks
from emulator.device import Device
from formats.neff import Neff, open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program

TILES = 8  # buffers on chip, used in turn
PER_TURN = 12  # words of the engines in one turn
HEAD = """
.target trn2
.name checks
.input x float32 [128, 512]
.output y float32 [128, 512]
.queue qIn sp 8
.queue qOut act 24
"""
TILE = "[1,1,1][64,1,1]"


def program(words: int) -> Neff:
    """Return a program of about `words` words."""
    return open_neff(to_neff(parse_program(source(words), "checks.s")))


def source(words: int) -> str:
    """Return the assembler text of it: five engines and two queues, tiles reused round after round."""
    turns = words // PER_TURN
    dma, sp, dve, pool, act, pe = [], [], [], [], [], []
    for turn in range(turns):
        slot = turn % TILES
        tile, work = 0x4000 + slot * 0x400, 0x8000 + slot * 0x400
        column = slot * 256
        if turn < TILES:
            dma.append(f".dma qIn {slot} 8 x+{column}[1,2048][256,128] -> SB+{tile:#x}[1,262144][256,128]")
            dma.append(f".dma qOut {slot} 24 SB+{work:#x}[1,262144][256,128] -> y+{column}[1,2048][256,128]")
        late = max(turn - TILES + 1, 0)  # what has to be over before this slot is used again
        sp.append(f"PSEUDO_DMA_TRIGGER S[6]>={2 * late} qIn block_id={slot}")
        a, b = f"fp32@{tile:#x}{TILE}", f"fp32@{work:#x}{TILE}"
        wide = "[1,1,1,1][64,1,1,1]"
        dve.append(f"EVENT_SEMAPHORE S[8]>={16 * (turn + 1)} setter=0 S[24]>={16 * late}")
        dve.append(f"TENSOR_TENSOR op=ADD src0={a} src1={a} dst={b} channels=128")
        dve.append(f"TENSOR_TENSOR op=MULTIPLY src0={b} src1={a} dst={b} channels=128")
        dve.append("NOP S[6]++@complete cycle=0")
        dve.append("NOP S[6]++@complete cycle=0")
        pool.append(f"NOP S[6]>={2 * turn + 2} cycle=0")
        pool.append(f"COPY S[4]++@complete src=fp32@{work:#x}{wide} dst=fp32@{work + 0x2000:#x}{wide} channels=128")
        pe.append(f"NOP S[4]>={turn + 1} cycle=0")
        act.append(f"NOP S[4]>={turn + 1} cycle=0")
        act.append(f"COPY src=fp32@{work + 0x2000:#x}{wide} dst=fp32@{work:#x}{wide} channels=128")
        act.append(f"PSEUDO_DMA_TRIGGER qOut block_id={slot}")
    act.append(f"NOP S[24]>={16 * turns} cycle=0")
    streams = {"sp": sp, "dve": dve, "pool": pool, "act": act, "pe": pe}
    return HEAD + "\n".join(dma) + "".join(f"\n.engine {name}\n" + "\n".join(s) for name, s in streams.items())


class Pace:
    """An observer that notes the time at every tenth of a run."""

    def __init__(self, events: int) -> None:
        self.each, self.seen, self.marks = max(events // 10, 1), 0, [time.process_time()]

    def on_event(self, event: Any) -> None:
        """Count, and note the time now and then."""
        self.seen += 1
        if self.seen % self.each == 0:
            self.marks.append(time.process_time())


def measure(neff: Neff, tools: tuple[str, ...], events: int) -> tuple[float, float, float, int]:
    """Return CPU seconds to attach and to run, last tenth over first, and how many findings matter."""
    import numpy as np

    device = Device(neff.target, 1)
    device.load(neff)
    device.set_inputs({"x": np.ones((128, 512), np.float32)})
    observers = make_checks(tools) if tools else []
    pace = Pace(events)
    device.observers.extend([*observers, pace])
    start = time.process_time()
    for observer in observers:
        observer.attach(device)
    attached = time.process_time()
    pace.marks[0] = attached
    device.run()
    for observer in observers:
        if hasattr(observer, "finish"):
            observer.finish()
    end = time.process_time()
    spans = [b - a for a, b in zip(pace.marks, pace.marks[1:], strict=False)]
    found = sum(f.serious for o in observers for f in getattr(o, "findings", ()))
    assert device.outcome == "finished", device.hang or device.fault
    return attached - start, end - attached, spans[9] / spans[0], found


def stuck(neff: Neff) -> tuple[float, float]:
    """Drop one signal in the middle, run until nothing can move; return seconds to explain it, first and again."""
    from emulator.diagnosis.explain import explain
    from emulator.diagnosis.index import ProgramIndex

    device = Device(neff.target, 1)
    device.load(neff)
    words: Any = device.cores[0].engines["DVE"].words
    at = next(n for n in range(len(words) // 2, len(words)) if words[n].word.signals)
    words[at] = words[at].with_word(words[at].word.replace(update_mode=0))
    device.run()
    assert device.outcome == "hang"
    device.program_index = ProgramIndex()  # as if nobody had asked yet
    marks = [time.perf_counter()]
    for _ in range(2):
        explain(device, "deadlock")
        marks.append(time.perf_counter())
    return marks[1] - marks[0], marks[2] - marks[1]


def main() -> None:
    """Print milliseconds per instruction for each set of checks."""
    words = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    neff = program(words)
    events = words // PER_TURN * (PER_TURN + 2)
    measure(neff, (), events)
    _, base, flat, _ = measure(neff, (), events)
    print(
        f"{words} words, {events} completions; bare run {base:.2f} s, {base / events * 1e3:.4f} ms each, last tenth "
        f"/ first {flat:.2f}; CPU time throughout"
    )
    for tools in (("race",), ("init",), ("mem",), ("sync",), ("race", "init", "mem"), ("all",)):
        before, took, ratio, found = measure(neff, tools, events)
        more = (took + before - base) / events * 1e3
        print(
            f"{'+'.join(tools):15} {took:7.2f} s  {more:8.4f} ms more per instruction, last tenth / first "
            f"{ratio:.2f}, attach {before:.2f} s, {found} findings"
        )
    first, again = stuck(neff)
    print(f"one signal dropped: the hang is explained in {first * 1e3:.0f} ms, once more in {again * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
