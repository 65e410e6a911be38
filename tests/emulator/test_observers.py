"""Observers are told of what they have methods for, and of nothing else."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

from emulator import observers
from emulator.observers import Hooks


class Quiet:
    def on_event(self, event: Any) -> None: ...


class Curious(Quiet):
    def on_effect(self, event: Any) -> None: ...

    def on_issue(self, engine: Any, loaded: Any, now: int) -> None: ...

    def on_plan(self, transfer: Any, memory: Any) -> None: ...

    def on_replan(self, transfer: Any) -> None: ...


def test_hooks_are_the_methods_that_observers_have() -> None:
    none: Hooks[Any, Any] = Hooks([Quiet()])
    assert [none.effect, none.issue, none.plan, none.replan] == [[], [], [], []]
    first, second = Curious(), Curious()
    some: Hooks[Any, Any] = Hooks([first, Quiet(), second])
    assert some.effect == [first.on_effect, second.on_effect] and some.issue == [first.on_issue, second.on_issue]
    assert some.plan == [first.on_plan, second.on_plan] and some.replan == [first.on_replan, second.on_replan]


def test_no_observer_waits_for_a_call_that_nobody_makes(root: Path) -> None:
    known = {
        name
        for _, protocol in inspect.getmembers(observers, inspect.isclass)
        for name in vars(protocol)
        if name.startswith("on_")
    }
    known.add("on_unit")  # what the vector clocks call of racecheck
    seen = set()
    for path in (root / "emulator").rglob("*.py"):
        for one in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(one, ast.ClassDef):
                continue
            methods = {each.name for each in one.body if isinstance(each, ast.FunctionDef)}
            if "on_event" in methods:
                asked = {name for name in methods if name.startswith("on_")}
                assert asked <= known, (path, one.name)
                seen |= asked
    assert seen == known
