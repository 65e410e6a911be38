"""The causes for which an engine waits: a closed list, with one sentence and one hint for each.

Live `why`, `core why`, `check`, triage and the screen all go by it, so that one deadlock has one name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Protocol

from formats.named_tuple import NamedTuple

__all__ = [
    "BARRIER_WORD",
    "COLLECTIVE_QUEUES",
    "Cause",
    "Diagnosis",
    "FaultPlace",
    "Node",
    "Reason",
    "SignalFacts",
    "WaitFacts",
    "counter_name",
    "diagnose",
]

BARRIER_WORD = "PSEUDO_CORE_BARRIER"  # formats.isa.CoreBarrier.NAME, which is not loaded for a name alone
COLLECTIVE_QUEUES = "qCollective"  # how the names of streams of collectives begin (emulator.loader)
_NAMED, _LOOKED_AT = 3, 64  # signals that a sentence names, and that it chooses from

_UNNAMED = "an engine that is not named here"

Node = tuple[int, str]  # core, engine


class Reason(StrEnum):
    """What ended an execution that did not end by itself."""

    DEADLOCK = "deadlock"  # nothing is in flight, and engines wait
    LIVELOCK = "livelock"  # engines loop, and nothing can end their loops
    HANG_TIMEOUT = "hang timeout"  # an engine waited longer than was allowed
    INSTRUCTION_LIMIT = "instruction limit"  # as many words and transfers completed as were allowed
    TIME_LIMIT = "time limit"  # the emulated time that was allowed is over
    HOST_TIME_LIMIT = "host time limit"  # the time of this machine that was allowed is over
    INTERRUPTED = "interrupted"  # somebody pressed Ctrl-C


class Cause(StrEnum):
    """Why an engine waits and does not go on."""

    DEADLOCK = "deadlock"  # it waits for engines that wait for it
    NEVER_SIGNALLED = "never-signalled"  # nothing in the program signals what it waits for
    NEVER_MET = "never-met"  # everything that signals it has done so, and it was not enough
    OVERSHOOT = "overshoot"  # the value went past the one that is waited for exactly
    BARRIER = "barrier"  # the other core does not come to the barrier
    FAULT = "fault"  # the engine that would signal it has faulted
    BLOCKED = "blocked"  # the engine that would signal it waits itself: the cause is there
    TRANSFER = "transfer"  # a DMA transfer under way will signal it
    RANKS = "ranks"  # a collective will signal it once the other ranks are through
    RUNNING = "running"  # the engine that would signal it has not come to it yet

    @property
    def root(self) -> bool:
        """Return whether this explains a hang; the other causes lead on to another engine or end by themselves."""
        return self not in (Cause.BLOCKED, Cause.TRANSFER, Cause.RUNNING)


class Diagnosis(NamedTuple):
    """The cause of one wait, in a sentence, and what to do about it."""

    cause: Cause
    sentence: str
    hint: str


class FaultPlace(Protocol):
    """Where a fault happened."""

    @property
    def core(self) -> int: ...
    @property
    def engine(self) -> str: ...
    @property
    def pc(self) -> int: ...


class SignalFacts(Protocol):
    """What the cause goes by of a signal; `state` is done, running, blocked, queued or faulted."""

    @property
    def core(self) -> int: ...
    @property
    def engine(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def pc(self) -> int: ...
    @property
    def state(self) -> str: ...


class WaitFacts(Protocol):
    """What the cause goes by of a wait; `text` is the word that waits."""

    @property
    def core(self) -> int: ...
    @property
    def engine(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def condition(self) -> str: ...
    @property
    def need(self) -> int: ...
    @property
    def present(self) -> int: ...
    @property
    def overshoot(self) -> bool: ...


def counter_name(kind: str, number: int) -> str:
    """Return a semaphore or event as the profiler writes it."""
    return f"{'E' if kind == 'event' else 'S'}[{number}]"


def diagnose(
    wait: WaitFacts,
    pending: Sequence[SignalFacts],
    given: int,
    left: int,
    circular: bool,
    waiting: Collection[Node],
    fault: FaultPlace | None,
) -> Diagnosis:
    """Return why an engine waits.

    `given` signals have been, `left` have not: these are `pending`, of which a dump does not list all. `circular` tells
    that the engine is part of a cycle, `waiting` are all engines that wait.
    """
    named = pending
    # First what has happened, then what is still moving, then what stands: a fault ends the execution whatever moves.
    if fault is not None and (lost := [one for one in pending if (one.core, one.owner) == (fault.core, fault.engine)]):
        named, cause = lost, Cause.FAULT
    elif running := [signal for signal in pending if signal.state == "running"]:
        moving = [signal for signal in running if signal.engine != signal.owner]
        together = moving and all(signal.engine.startswith(COLLECTIVE_QUEUES) for signal in moving)
        named, cause = (moving, Cause.RANKS if together else Cause.TRANSFER) if moving else (running, Cause.RUNNING)
    else:
        cause = _standing(wait, pending, given, left, circular, waiting)
    if wait.overshoot:  # whoever signals next only takes it further away
        cause = Cause.OVERSHOOT
    return Diagnosis(cause, _sentence(cause, wait, named, given), _hint(cause, wait))


def _standing(
    wait: WaitFacts, pending: Sequence[SignalFacts], given: int, left: int, circular: bool, waiting: Collection[Node]
) -> Cause:
    """Return the cause where nothing that would signal is on its way."""
    stuck = any((signal.core, signal.owner) in waiting for signal in pending)
    # Before never-signalled: a core that ends without a barrier's word leaves the other one without a signal.
    if _at_barrier(wait) and (stuck or not left):
        return Cause.BARRIER
    if not left:
        return Cause.NEVER_MET if given else Cause.NEVER_SIGNALLED
    if circular:
        return Cause.DEADLOCK
    return Cause.BLOCKED if stuck else Cause.RUNNING


def _at_barrier(wait: WaitFacts) -> bool:
    """Return whether a wait is a barrier's own; a barrier's text spells out only the wait in its header."""
    words = wait.text.split()
    return words[:1] == [BARRIER_WORD] and wait.condition not in words


def _sentence(cause: Cause, wait: WaitFacts, named: Sequence[SignalFacts], given: int) -> str:
    name = counter_name(wait.kind, wait.number)
    named = named[:_LOOKED_AT]
    places = list(dict.fromkeys(f"nc{signal.core} {signal.owner} pc {signal.pc}" for signal in named))
    who = " and ".join(places[:_NAMED]) + (" and others" if len(places) > _NAMED else "") or _UNNAMED
    one = len({(signal.core, signal.owner) for signal in named}) <= 1
    waits, its, engine, has = ("waits", "its", "engine", "has") if one else ("wait", "their", "engines", "have")
    match cause:
        case Cause.DEADLOCK:
            return f"only {who} would signal {name}, and {waits} for this engine in turn"
        case Cause.NEVER_SIGNALLED:
            return f"nothing in the program signals {name}"
        case Cause.NEVER_MET:
            count = f"{given} signal{'' if given == 1 else 's'}"
            return f"everything that signals {name} has done so: after {count} it is {wait.present}"
        case Cause.OVERSHOOT:
            return f"{name} went past {wait.need}: it is {wait.present}, and only what lowers or writes it can help"
        case Cause.BARRIER:
            come = f": {who} {'is' if len(places) == 1 else 'are'} still to come" if places else ""
            return f"nc{1 - wait.core} does not reach this core barrier{come}"
        case Cause.FAULT:
            return f"{who} would signal {name}, and {its} {engine} {has} faulted"
        case Cause.BLOCKED:
            return f"{who} would signal {name}, and {waits} {'itself' if one else 'themselves'}"
        case Cause.TRANSFER:
            return f"a DMA transfer under way will signal {name}: {who} started it"
        case Cause.RANKS:
            return f"a collective signals {name} once the other ranks are through: {who} called it"
        case Cause.RUNNING:
            return f"{who} would signal {name}, and {has} not come to it yet"


def _hint(cause: Cause, wait: WaitFacts) -> str:
    name = counter_name(wait.kind, wait.number)
    match cause:
        case Cause.DEADLOCK:
            return "break the circle: signal before waiting, on one of the engines in it"
        case Cause.NEVER_SIGNALLED:
            return "signal it, or drop the wait"
        case Cause.NEVER_MET if wait.kind == "event":
            return "set it once for every wait: a wait consumes the event"
        case Cause.NEVER_MET:
            return f"wait for what is signalled ({wait.present}), or signal it more often"
        case Cause.OVERSHOOT:
            return f"wait for {name}>={wait.need}"
        case Cause.BARRIER:
            return "both cores have to meet the same barriers in the same order"
        case Cause.FAULT:
            return "mend the fault first: this wait follows from it"
        case Cause.BLOCKED:
            return "look at the engine that would signal it: that one is the cause"
        case Cause.RANKS:
            return "look at the other ranks: one has not called it, or called another one"
        case Cause.TRANSFER | Cause.RUNNING:
            return "let it go on: this wait can still end"
