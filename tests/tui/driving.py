"""Drives the screen without a terminal: keys in, text out."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from neurontools.debugger.opening import open_session
from neurontools.tui.app import DebuggerApp
from neurontools.tui.export import screen_text
from neurontools.tui.pane import Pane

LARGE, SMALL = (200, 50), (80, 24)
GOLDENS = Path(__file__).parent / "goldens"


def open_program(path: Path) -> Any:
    """Return a session on a program."""
    return open_session(path)


class Driver:
    """One app with its pilot."""

    def __init__(self, app: DebuggerApp, pilot: Any) -> None:
        self.app, self.pilot = app, pilot

    async def settle(self) -> None:
        """Wait until the worker has nothing to do and everything is painted."""
        end, quiet = time.monotonic() + 20, 0
        while quiet < 2:
            await self.pilot.pause()
            assert self.app._exception is None, self.app._exception
            quiet = quiet + 1 if self.app.worker.idle else 0
            assert time.monotonic() < end, "the screen does not come to rest"

    async def press(self, *keys: str) -> None:
        """Press keys, and wait after each."""
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def type(self, text: str) -> None:
        """Enter a command line."""
        await self.press("colon")
        self.app.command_line.input.value = text
        await self.press("enter")
        await self.press("escape")

    @property
    def text(self) -> str:
        """Return the screen."""
        return screen_text(self.app)

    def pane(self, name: str) -> Any:
        """Return a pane by its id."""
        return self.app.panes[name]

    def pane_text(self, name: str) -> str:
        """Return what a pane shows."""
        pane: Pane = self.app.panes[name]
        region = pane.region
        return "\n".join(
            line[region.x : region.right].rstrip() for line in self.text.split("\n")[region.y : region.bottom]
        )

    @property
    def status(self) -> str:
        """Return the first line."""
        return self.text.split("\n")[0]


def drive(session: Any, script: Callable[[Driver], Awaitable[None]], size: tuple[int, int] = LARGE,
          name: str = "program", **options: Any) -> None:  # fmt: skip
    """Open the screen on a session and run a script on it."""

    async def main() -> None:
        app = DebuggerApp(session, name, **options)
        async with app.run_test(size=size) as pilot:
            driver = Driver(app, pilot)
            await driver.settle()
            await script(driver)

    asyncio.run(main())


def check_golden(name: str, text: str) -> None:
    """Compare a screen with its golden text; NEURONTOOLS_GOLDENS=1 writes it anew."""
    path = GOLDENS / f"{name}.txt"
    if os.environ.get("NEURONTOOLS_GOLDENS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"no golden {path.name}: run with NEURONTOOLS_GOLDENS=1"
    assert text == path.read_text(encoding="utf-8"), f"{path.name} differs: NEURONTOOLS_GOLDENS=1 writes it anew"
