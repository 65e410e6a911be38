"""Who watches a run: what a device calls of its observers, and when.

Every observer is told of each completion. Those that have more of these methods are told of more; a device looks for
them when it starts to run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeGuard, TypeVar

from emulator.dma.transfer import Transfer
from emulator.events import Event

__all__ = [
    "EffectObserver",
    "Hooks",
    "IssueObserver",
    "Observer",
    "Occupation",
    "PlanObserver",
    "ReplanObserver",
    "Resource",
]

# What transfers share: "dma" (core, engine), "hbm" (stack, 0); and from when until when one has it, in picoseconds.
Resource = tuple[str, int, int]
Occupation = tuple[Resource, int, int]
Engine = TypeVar("Engine")
Loaded = TypeVar("Loaded")
Engine_contra = TypeVar("Engine_contra", contravariant=True)
Loaded_contra = TypeVar("Loaded_contra", contravariant=True)


class Observer(Protocol):
    """An observer that sees completions."""

    def on_event(self, event: Event) -> object:
        """Take note of a completion: effects are there, signals are given."""
        ...


class EffectObserver(Observer, Protocol):
    """An observer that also sees what a completion is about to change."""

    def on_effect(self, event: Event) -> object:
        """Take note of a word or transfer before its effect: afterwards what it read may be overwritten."""
        ...


class IssueObserver(Observer, Protocol[Engine_contra, Loaded_contra]):
    """An observer that also sees words issue."""

    def on_issue(self, engine: Engine_contra, loaded: Loaded_contra, now: int, /) -> object:
        """Take note of an engine that issues a word."""
        ...


class PlanObserver(Observer, Protocol):
    """An observer that also sees transfers when their times are planned."""

    def on_plan(self, transfer: Transfer, memory: Occupation | None, /) -> object:
        """Take note of a transfer, and of what it will occupy of device memory; others still change its DMA engines."""
        ...


class ReplanObserver(Observer, Protocol):
    """An observer that also learns when transfers really occupied DMA engines."""

    def on_replan(self, transfer: Transfer, /) -> object:
        """Take note of a transfer that has completed: its plan now says when it occupied DMA engines."""
        ...


class Hooks(Generic[Engine, Loaded]):
    """The methods to call of some observers, in their order; empty lists cost nothing."""

    __slots__ = ("effect", "issue", "plan", "replan")

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self.effect: list[Callable[[Event], object]] = [o.on_effect for o in observers if _sees_effects(o)]
        self.issue: list[Callable[[Engine, Loaded, int], object]] = [o.on_issue for o in observers if _sees_issues(o)]
        self.plan: list[Callable[[Transfer, Occupation | None], object]] = [
            o.on_plan for o in observers if _sees_plans(o)
        ]
        self.replan: list[Callable[[Transfer], object]] = [o.on_replan for o in observers if _sees_replans(o)]


# isinstance() with such protocols takes longer than a step of a small program.
def _sees_effects(observer: Observer) -> TypeGuard[EffectObserver]:
    return hasattr(observer, "on_effect")


def _sees_issues(observer: Observer) -> TypeGuard[IssueObserver[object, object]]:
    return hasattr(observer, "on_issue")


def _sees_plans(observer: Observer) -> TypeGuard[PlanObserver]:
    return hasattr(observer, "on_plan")


def _sees_replans(observer: Observer) -> TypeGuard[ReplanObserver]:
    return hasattr(observer, "on_replan")
