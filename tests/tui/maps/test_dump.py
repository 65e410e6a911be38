"""The panes on a core dump: everything is shown, nothing travels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neurontools.debugger import open_core_session
from neurontools.debugger.opening import open_session
from neurontools.tui.maps import HbmVariables, SbufMap, TileInspector
from neurontools.tui.maps.heat import FREE, NAMELESS
from neurontools.tui.timeline import Timeline
from tests.tui.maps.alone import Alone, alone, press


@pytest.fixture
def dump(root: Path, tmp_path: Path) -> Any:
    """Return a session on a core dump of the example whose engines wait for each other."""
    session = open_session(root / "examples" / "deadlock.s")
    session.continue_()
    session.save_core(tmp_path / "deadlock.core")
    return open_core_session(tmp_path / "deadlock.core")


def test_sbuf_shows_what_was_written(dump: Any) -> None:
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        assert pane._heat is not None and (pane._heat.keys == NAMELESS).any() and "no tile" in app.text
        await press(pilot, "v")
        assert (pane._heat.keys != FREE).any(), "the last events are in the dump"
        await press(pilot, "v")
        assert (pane._heat.keys != FREE).any() and pane._heat.low
        await press(pilot, "v")
        assert "unwritten" in app.text

    alone(dump, pane, script)


def test_the_timeline_ticks_and_does_not_travel(dump: Any) -> None:
    async def script(app: Alone, pilot: Any) -> None:
        assert "╷" in app.text
        await press(pilot, "left", "home", "end", "shift+right")
        await pilot.click(Timeline, offset=(30, 3))
        await pilot.pause()
        assert app.commands == []

    alone(dump, Timeline(), script)


def test_variables_and_tensors(dump: Any) -> None:
    async def variables(app: Alone, pilot: Any) -> None:
        assert "100% of 32.0 KiB" in app.text and "float32[128, 64]" in app.text

    async def tensor(app: Alone, pilot: Any) -> None:
        assert "y HBM float32[128, 64]" in app.text and "8,192 unwritten" in app.text

    alone(dump, HbmVariables(), variables)
    pane = TileInspector()
    pane.text = "y"
    alone(dump, pane, tensor)
