"""Pictures and captures of the screen in the documentation, made of real runs: `python -m tools pictures`."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tools.generate import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neurontools.debugger import Session

__all__ = ["OWNS", "SCENES", "Scene", "files", "made"]

OWNS = "docs/pictures/*"
_PATIENCE = 60.0  # seconds
_ENVIRONMENT = {"COLORTERM": "truecolor", "TERM": "xterm-256color"}


class Scene(NamedTuple):
    """A run and what is pressed in it; a key that begins with ":" is a command. `about` says what is seen."""

    name: str
    file: str
    size: tuple[int, int]
    theme: str
    keys: tuple[str, ...]
    about: str
    ranks: int = 0  # so many of a machine


SCENES = (
    Scene("attention-200x50", "examples/attention.py", (200, 50), "textual-dark", (":step 60", "4", "tab", *"vvvv"),
          "an attention kernel in the middle of its run"),
    Scene("attention-120x40", "examples/attention.py", (120, 40), "textual-light", (":step 60", "3"),
          "SBUF and PSUM of an attention kernel, by tensor"),
    Scene("deadlock-80x24", "examples/deadlock.s", (80, 24), "textual-dark", ("c",),
          "two engines that wait for each other"),
    Scene("out-of-bounds-80x24", "fixtures/core/oob.core", (80, 24), "textual-dark", (),
          "a core dump of a read past the end of SBUF"),
    Scene("nan-80x24", "examples/tutorial/wrong.py", (80, 24), "textual-dark", ("c",),
          "a kernel whose result is not a number, and the line that made it"),
    Scene("ranks-80x24", "examples/ranks/deadlock.py", (80, 24), "textual-dark", ("c",),
          "three ranks that wait for each other in collectives", 3),
    Scene("ranks-200x50", "examples/ranks/data_parallel.py", (200, 50), "textual-dark",
          (":break data_parallel.py:32 rank 2", "c", "}"), "four ranks in an all-reduce, behind matmuls", 4),
)  # fmt: skip


def files() -> dict[str, str]:
    """Return every picture, and the text of every screen."""
    found = {}
    for scene in SCENES:
        text, picture = made(scene)
        found[f"docs/pictures/{scene.name}.svg"] = picture
        found[f"docs/pictures/{scene.name}.txt"] = text
    return found


def made(scene: Scene) -> tuple[str, str]:
    """Return the screen of a scene as text and as SVG."""
    with _at_home():
        return asyncio.run(_played(scene))


@contextmanager
def _at_home() -> Iterator[None]:
    """Stand at the top of the tree, without a person's own settings."""
    before, folder = dict(os.environ), os.getcwd()
    with tempfile.TemporaryDirectory() as own:
        os.environ.update(_ENVIRONMENT, XDG_STATE_HOME=own, XDG_CONFIG_HOME=own)
        os.environ.pop("NO_COLOR", None)
        os.chdir(ROOT)
        try:
            yield
        finally:
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(before)


def _opened(scene: Scene) -> Session:
    from emulator.runtime.ranks import Ranks  # deferred: start-up
    from neurontools.debugger.opening import open_session  # deferred: start-up
    from neurontools.debugger.opening_ranks import open_ranks  # deferred: start-up
    from neurontools.program.configuration import RunConfiguration  # deferred: start-up

    if not scene.ranks:
        return open_session(Path(scene.file))
    asked = RunConfiguration(target="trn2", lnc=1)
    ranks = open_ranks(Path(scene.file), asked, Ranks(scene.ranks), journal_bytes=50_000_000)
    for session in ranks.sessions.values():
        session.record()
    return ranks.session


async def _played(scene: Scene) -> tuple[str, str]:
    from neurontools.tui.app import DebuggerApp  # deferred: start-up
    from neurontools.tui.export import screen_text  # deferred: start-up
    from neurontools.tui.picture import picture_of  # deferred: start-up

    app = DebuggerApp(_opened(scene), Path(scene.file).name)
    async with app.run_test(size=scene.size) as pilot:
        await _at_rest(app, pilot)
        app.theme = scene.theme
        for key in scene.keys:
            if key.startswith(":") and len(key) > 1:
                app.worker.carry_out(key[1:])
            else:
                await pilot.press(key)
            await _at_rest(app, pilot)
        await _at_rest(app, pilot)
        return screen_text(app), picture_of(app, scene.about)


async def _at_rest(app: Any, pilot: Any) -> None:
    """Wait until everything asked for is on the screen."""
    end, quiet = time.monotonic() + _PATIENCE, 0
    while quiet < 2:
        await pilot.pause()
        quiet = quiet + 1 if app.worker.idle else 0
        if time.monotonic() > end:
            raise TimeoutError("the screen does not come to rest")
