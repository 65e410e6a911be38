"""Who watches a run: what a device calls of its observers, and when.

Every observer is told of each completion, by an event or, for those that look at little of it, without one. Those that
have more of these methods are told of more; a device looks for them when it starts to run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from emulator.dma.transfer import Transfer
from emulator.events import Event, SemaphoreChange

__all__ = [
    "CompletionObserver",
    "EffectObserver",
    "Hooks",
    "IssueObserver",
    "Observer",
    "Occupation",
    "PlanObserver",
    "Resource",
    "is_observer",
]

# What transfers share: "dma" (core, engine), "hbm" (stack, 0); and from when until when one has it, in picoseconds.
Resource = tuple[str, int, int]
Occupation = tuple[Resource, int, int]
Changes = tuple[SemaphoreChange, ...]
Engine = TypeVar("Engine")
Loaded = TypeVar("Loaded")
Engine_contra = TypeVar("Engine_contra", contravariant=True)
Loaded_contra = TypeVar("Loaded_contra", contravariant=True)


class Observer(Protocol):
    """An observer that sees completions."""

    def on_event(self, event: Event) -> object:
        """Take note of a completion: effects are there, signals are given."""
        ...


class CompletionObserver(Protocol[Engine_contra]):
    """An observer of completions that needs no event: to make one takes longer than to note that something is over.

    `number` is the one that the event has for others, `changes` are the semaphores and events that it changed.
    """

    def on_word(self, engine: Engine_contra, number: int, now: int, changes: Changes, /) -> object:
        """Take note of an engine whose oldest word has completed."""
        ...

    def on_transfer(self, transfer: Transfer, number: int, now: int, changes: Changes, /) -> object:
        """Take note of a transfer that has completed."""
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


class Hooks(Generic[Engine, Loaded]):
    """The methods to call of some observers, in their order; empty lists cost nothing."""

    __slots__ = ("effect", "event", "issue", "plan", "transfer", "word")

    def __init__(self, observers: Sequence[Observer | CompletionObserver[Engine]] = ()) -> None:
        self.event: list[Callable[[Event], object]] = []
        self.word: list[Callable[[Engine, int, int, Changes], object]] = []
        self.transfer: list[Callable[[Transfer, int, int, Changes], object]] = []
        self.effect: list[Callable[[Event], object]] = []
        self.issue: list[Callable[[Engine, Loaded, int], object]] = []
        self.plan: list[Callable[[Transfer, Occupation | None], object]] = []
        for each in observers:
            # isinstance() with such protocols takes longer than a step of a small program.
            if hasattr(each, "on_event"):
                self.event.append(each.on_event)
            if hasattr(each, "on_word"):
                self.word.append(each.on_word)
            if hasattr(each, "on_transfer"):
                self.transfer.append(each.on_transfer)
            if hasattr(each, "on_effect"):
                self.effect.append(each.on_effect)
            if hasattr(each, "on_issue"):
                self.issue.append(each.on_issue)
            if hasattr(each, "on_plan"):
                self.plan.append(each.on_plan)


def is_observer(candidate: object) -> bool:
    """Return whether something wants to be told of completions."""
    return hasattr(candidate, "on_event") or hasattr(candidate, "on_word")
