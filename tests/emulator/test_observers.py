"""Observers are told of what they have methods for, and of nothing else."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

from emulator import observers
from emulator.observers import Hooks, is_observer


class Quiet:
    def on_event(self, event: Any) -> None: ...


class Brief:
    def on_word(self, engine: Any, number: int, now: int, changes: Any) -> None: ...

    def on_transfer(self, transfer: Any, number: int, now: int, changes: Any) -> None: ...


class Curious(Quiet):
    def on_effect(self, event: Any) -> None: ...

    def on_issue(self, engine: Any, loaded: Any, now: int) -> None: ...

    def on_plan(self, transfer: Any, memory: Any) -> None: ...


def test_hooks_are_the_methods_that_observers_have() -> None:
    none: Hooks[Any, Any] = Hooks([Quiet()])
    assert [none.effect, none.issue, none.plan, none.word, none.transfer] == [[], [], [], [], []]
    assert len(none.event) == 1
    brief: Hooks[Any, Any] = Hooks([one := Brief()])
    assert not brief.event and brief.word == [one.on_word] and brief.transfer == [one.on_transfer]
    assert is_observer(one) and is_observer(Quiet()) and not is_observer(none)
    first, second = Curious(), Curious()
    some: Hooks[Any, Any] = Hooks([first, Quiet(), second])
    assert some.effect == [first.on_effect, second.on_effect] and some.issue == [first.on_issue, second.on_issue]
    assert some.plan == [first.on_plan, second.on_plan] and len(some.event) == 3


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
            if methods & {"on_event", "on_word"}:
                asked = {name for name in methods if name.startswith("on_")}
                assert asked <= known, (path, one.name)
                seen |= asked
    assert seen == known
