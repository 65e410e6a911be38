"""What the maps of the screen cost: cells of a whole SBUF, and scrolling the SBUF pane by a page, in CPU time.

    python benchmarks/tui_maps.py [PAGES]

Informational: nothing here fails. SBUF is filled with random bytes, all of them written: the most there is to look at.
"""

from __future__ import annotations

import asyncio
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported

import statistics
import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SIZE = 200, 60  # columns, lines
ROUNDS = 15


def filled() -> Any:
    """Return a session behind its first events, with all of SBUF written."""
    from neurontools.debugger.opening import open_session

    session = open_session(ROOT / "examples" / "attention.py")
    session.goto("#40")
    memory = session.device.cores[0].memory
    memory.sbuf[...] = np.random.default_rng(1).integers(0, 120, memory.sbuf.shape, np.uint8)
    memory.sbuf_written[...] = True
    session.inspector.maps.numbers("SBUF", 0)[...] = 1  # as if event 1 had written everything
    return session


def cells(session: Any) -> list[tuple[str, float, float]]:
    """Return, per mode, milliseconds of the first look at all of SBUF in 200 x 50 cells, and of later ones."""
    from formats.dtypes import Dtype
    from neurontools.debugger.maps import Maps, Window

    width = session.device.cores[0].memory.sbuf.shape[1]
    window = Window("SBUF", 0, 0, 0, 50, 200, 3, -(-width // 200 // 64) * 64)
    found = []
    for mode, dtype, figure in (("tensor", Dtype.FLOAT32, "absmax"), ("age", Dtype.FLOAT32, "absmax"),
                                ("unwritten", Dtype.FLOAT32, "absmax"), ("value", Dtype.BFLOAT16, "absmax"),
                                ("value", Dtype.BFLOAT16, "mean")):  # fmt: skip
        maps = Maps(session.execution)
        maps.numbers("SBUF", 0)[...] = session.inspector.maps.numbers("SBUF", 0)
        times = []
        for _ in range(ROUNDS):
            started = process_time()
            maps.cells(window, mode, dtype, figure)
            times.append((process_time() - started) * 1e3)
        found.append((mode if mode != "value" else f"{figure} of bfloat16", times[0], statistics.median(times[1:])))
    return found


async def pages(session: Any, mode: str, count: int) -> tuple[float, float]:
    """Return milliseconds of CPU a page: of finding the cells, and of painting them with all that belongs to it."""
    from textual.app import App, ComposeResult

    from neurontools.tui.maps import SbufMap
    from neurontools.tui.pane import Pane, Snapshot

    pane = SbufMap()
    pane.mode = mode
    spent = [0.0]

    class Alone(App[None]):
        def compose(self) -> ComposeResult:
            yield pane

        def answer(self) -> None:
            started = process_time()
            answers = {question: question.answer(session) for question in pane.questions()}
            spent[0] += process_time() - started
            pane.show(Snapshot(session.state(), answers))

        def on_pane_asks(self, message: Pane.Asks) -> None:
            self.answer()

    app = Alone()
    async with app.run_test(size=SIZE) as pilot:
        pane.focus()
        app.answer()
        await pilot.pause()
        for key in ("0", "0", "plus", "plus", "plus", "plus"):
            await pilot.press(key)
        await pilot.press("home")
        await pilot.pause()
        spent[0] = 0.0
        started = process_time()
        for number in range(count):
            pane.action_page(0, 1 if number % 20 < 10 else -1)
            await pilot.pause()
        whole = process_time() - started
    return spent[0] * 1e3 / count, (whole - spent[0]) * 1e3 / count


def report(count: int = 60) -> None:
    """Measure and print."""
    session = filled()
    size = session.device.cores[0].memory.sbuf.nbytes >> 20
    print(f"SBUF of {size} MiB, all written; 200 x 50 cells of all of it (goal 5 ms)")
    for mode, first, later in cells(session):
        print(f"  {mode:<20} {later:6.2f} ms, the first time {first:7.1f} ms")
    print(f"a page of the SBUF pane, {SIZE[0]} by {SIZE[1]}, CPU (goal 20 ms)")
    for mode in ("tensor", "age", "value", "unwritten"):
        found, painted = asyncio.run(pages(session, mode, count))
        print(f"  {mode:<20} {found + painted:6.2f} ms: {found:.2f} cells, {painted:.2f} painting")


if __name__ == "__main__":
    report(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
