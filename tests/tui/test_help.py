"""Help says what the bindings are, and every pane names a command line that gives the same as JSON."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import neurontools
from neurontools.debugger import Session
from neurontools.debugger.commands.table import look_up
from neurontools.debugger.json_values import plain
from neurontools.tui.actions import ACTIONS
from neurontools.tui.help import LEGENDS
from neurontools.tui.layout import LEFT, RIGHT
from tests.tui.driving import Driver, drive


def _help_text(driver: Driver) -> str:
    return str(driver.app.screen.query("Static").first().render())


def test_every_action_is_in_the_help_with_its_key(double: Session) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("question_mark")
        text = _help_text(driver)
        for action in ACTIONS:
            assert f" {action.name} " in text and action.summary in text
        assert "  ?            help" in text and "  s            step" in text
        assert text.index("ENGINES") < text.index("go")
        for pane in driver.app.panes.values():
            assert f"{pane.TITLE:<12} neurontools debug" in text
        await driver.press("escape")
        assert len(driver.app.screen_stack) == 1

    drive(double, script)


def test_names_and_keys_of_actions_are_different() -> None:
    assert len({action.name for action in ACTIONS}) == len(ACTIONS)
    assert len({action.keys for action in ACTIONS}) == len(ACTIONS)


def test_every_binding_calls_something(double: Session) -> None:
    async def script(driver: Driver) -> None:
        for action in ACTIONS:
            name = action.call.split("(")[0]
            assert callable(getattr(driver.app, f"action_{name}", None)), action.call

    drive(double, script)


@pytest.mark.parametrize("name", [name for name, _, _ in (*LEFT, *RIGHT)])
def test_the_twin_of_a_pane_is_a_command_with_json(double: Session, name: str) -> None:
    async def script(driver: Driver) -> None:
        twin = driver.pane(name).TWIN
        assert driver.pane(name).TITLE and twin
        double.continue_()
        if not twin.startswith("debug"):
            command, rest = look_up(twin.replace("NAME", "x"))
            value = plain(command.run(double, rest)) if command.name != "list" else []
            json.dumps(value)

    drive(double, script)


def test_a_core_dump_s_help_has_nothing_that_moves(double: Session) -> None:
    double.post_mortem = True

    async def script(driver: Driver) -> None:
        await driver.press("question_mark")
        text = _help_text(driver)
        assert not any(f" {action.name} " in text for action in ACTIONS if action.live)
        assert " search " in text
        await driver.press("escape")
        await driver.press("s", "c", "space")
        assert driver.app.snapshot.state.events == 0
        assert not any(command.title == "step" for command in driver.app.get_system_commands(driver.app.screen))

    drive(double, script)


def test_every_sign_of_the_screen_is_in_the_legend(double: Session) -> None:
    """Signs are what the panes write that is neither ASCII nor a rule, a block of a map or an ellipsis."""
    used: set[str] = set()
    for module in ("tui/panes/code.py", "tui/panes/engines.py", "tui/panes/queues.py", "tui/panes/semaphores.py",
                   "tui/timeline.py", "tui/status.py"):  # fmt: skip
        tree = ast.parse((Path(neurontools.__file__).parent / module).read_text(encoding="utf-8"))
        texts = [
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        used |= {sign for text in texts for sign in text if ord(sign) > 126}
    known = "".join(sign for sign, _ in LEGENDS)
    assert used - set("…·") <= set(known), "a sign that no legend tells of"
    assert set("·»▶●░▒▓↑⏳") <= set(known)

    async def script(driver: Driver) -> None:
        await driver.press("question_mark")
        text = _help_text(driver)
        for sign, meaning in LEGENDS:
            assert f"  {sign:<12} {meaning}" in text

    drive(double, script)
