"""One pane alone in an app that answers its questions at once: no threads, no layout of others."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from textual.app import App, ComposeResult

from formats.errors import NeuronError
from neurontools.tui.carry_out import carry_out
from neurontools.tui.export import screen_text
from neurontools.tui.pane import Command, Pane, Selected, Selection, Snapshot

GOLDENS = Path(__file__).parent / "goldens"


class Alone(App[None]):
    """Shows one pane on a session."""

    CSS = "Pane { height: 1fr; border-top: solid white; }"

    def __init__(self, session: Any, pane: Pane) -> None:
        super().__init__()
        self.session, self.pane = session, pane
        self.selected: list[tuple[str, Any]] = []
        self.commands: list[str] = []
        self.answered = 0

    def compose(self) -> ComposeResult:
        """Make the pane."""
        yield self.pane

    def on_mount(self) -> None:
        """Begin."""
        self.pane.focus()
        self.answer()

    def answer(self) -> None:
        """Answer what the pane asks now."""
        answers: dict[Any, Any] = {}
        for question in self.pane.questions():
            try:
                answers[question] = question.answer(self.session)
            except NeuronError as error:
                answers[question] = error
        self.answered += 1
        self.pane.show(Snapshot(self.session.state(), answers, post_mortem=self.session.post_mortem))

    def on_pane_asks(self, message: Pane.Asks) -> None:
        """Answer."""
        message.stop()
        self.answer()

    def on_command(self, message: Command) -> None:
        """Carry out a line."""
        self.commands.append(message.text)
        done = carry_out(self.session, message.text)
        assert not done.error, done.error
        self.answer()

    def on_selected(self, message: Selected) -> None:
        """Tell the pane what was chosen."""
        self.selected.append((message.kind, message.value))
        self.choose(Selection(message.kind, message.value))

    def choose(self, selection: Selection) -> None:
        """Choose something from elsewhere."""
        self.pane.choose(selection)
        self.answer()

    def do(self, line: str) -> None:
        """Move the session, as another pane would."""
        done = carry_out(self.session, line)
        assert not done.error, done.error
        self.answer()

    @property
    def text(self) -> str:
        """Return what is on the screen."""
        return screen_text(self)


def alone(session: Any, pane: Pane, script: Callable[[Alone, Any], Awaitable[None]],
          size: tuple[int, int] = (80, 16)) -> None:  # fmt: skip
    """Run a script of keys on a pane."""

    async def main() -> None:
        app = Alone(session, pane)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(app, pilot)

    asyncio.run(main())


async def press(pilot: Any, *keys: str) -> None:
    """Press keys, and wait after each."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause()


def check_golden(name: str, text: str) -> None:
    """Compare a screen with its golden text; NEURONTOOLS_GOLDENS=1 writes it anew."""
    path = GOLDENS / f"{name}.txt"
    if os.environ.get("NEURONTOOLS_GOLDENS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"no golden {path.name}: run with NEURONTOOLS_GOLDENS=1"
    assert text == path.read_text(encoding="utf-8"), f"{path.name} differs: NEURONTOOLS_GOLDENS=1 writes it anew"
