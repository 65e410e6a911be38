"""Waits that a finding suggests, tried before they are printed: the program runs again with each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD

if TYPE_CHECKING:
    from emulator.checks import Finding
    from emulator.checks.finding import SuggestedWait
    from emulator.device import Device
    from emulator.runtime import Result
    from emulator.settings import Settings
    from formats.neff import Neff

__all__ = ["leave_untried", "try_hints"]

_MOST = 8  # findings whose waits are tried
_SECONDS = 10.0  # of trying, as the first run went
_OWN = "give the two a semaphore of their own"
_NONE = f"no single wait was found that orders the two and leaves the rest as it is: {_OWN}"
_UNTRIED = "order the two with a semaphore that the one raises and the other waits for"


class _Tried(NamedTuple):
    """What came of a wait: whether the race is gone and nothing else came, whether the outputs are what they were."""

    helps: bool
    same: bool


class _WithWait:
    """Put a wait in front of a word of a program that is loaded, or at the end of a stream."""

    def __init__(self, wait: SuggestedWait) -> None:
        self._wait = wait

    def on_event(self, event: object) -> None:
        """Nothing to do: the wait is a word of the program."""

    def attach(self, device: Device) -> None:
        """Change the program before it moves."""
        from emulator.loaded import LoadedWord  # deferred: start-up
        from formats.isa import Nop, WaitMode  # deferred: start-up

        wait = self._wait
        engine = device.cores[wait.core].engines[wait.engine]
        words = list(engine.words)
        at = next((number for number, one in enumerate(words) if one.pc == wait.pc), len(words))
        if wait.behind:
            at = len(words)
        # A branch to the word meets the wait first: both have its slot.
        slot = words[at].slot if at < len(words) else words[-1].slot + len(words[-1].word.raw) // WORD
        waiting = Nop(wait_mode=WaitMode.SEM_GE, wait_index=wait.semaphore, wait_value=wait.value)
        words.insert(at, LoadedWord(waiting, wait.pc, slot))
        engine.take(words)  # its first word is asked for already


def try_hints(
    neff: Neff | bytes, inputs: Mapping[str, Any], settings: Settings, result: Result, findings: Sequence[Finding]
) -> None:
    """Run a program with each wait that its findings suggest, and leave those hints that help.

    A wait that changes the results, in the order that was seen, may be the wrong way round: then both are given, or
    none.
    """
    wanting = [finding for finding in findings if any(wait.semaphore >= 0 for wait in finding.waits)]
    runs = 0
    for finding in wanting:
        runs += len(finding.waits)
        if runs > 2 * _MOST or runs * result.stats.seconds > _SECONDS:
            finding.hint = _UNTRIED
            continue
        tried = [_try(neff, inputs, settings, result, finding, wait) for wait in finding.waits]
        finding.hint = _said(finding, tried)


def leave_untried(findings: Sequence[Finding]) -> None:
    """Say nothing that only a further run would prove: of ranks there is none yet.

    A wait that seems to keep a queue idle may be needed; a wait that would order two sides may break something else.
    """
    for finding in findings:
        if (finding.tool, finding.kind) == ("lint", "serial-queue"):
            finding.refuted = True
        elif any(wait.semaphore >= 0 for wait in finding.waits):
            finding.hint = _UNTRIED


def _said(finding: Finding, tried: list[_Tried]) -> str:
    """Return the hint of a finding: the wait where the order is plain, else both directions, or none."""
    (wait, came), *others = zip(finding.waits, tried, strict=True)
    if came.helps and (not others or (came.same and not finding.open)):
        return wait.text
    if not any(how.helps for how in tried):
        return _NONE
    texts = [
        one.text if how.helps or one.semaphore < 0 else _OWN for one, how in zip(finding.waits, tried, strict=True)
    ]
    return f"for the order seen here, {texts[0]}; for the other one, {texts[1]}" if others else texts[0]


def _try(
    neff: Neff | bytes, inputs: Mapping[str, Any], settings: Settings, before: Result, finding: Finding,
    wait: SuggestedWait,
) -> _Tried:  # fmt: skip
    if wait.semaphore < 0:
        return _Tried(False, False)
    from emulator import runtime  # deferred: start-up
    from emulator.checks.registry import make_checks  # deferred: start-up

    checks = make_checks(("racecheck",))
    result = runtime.execute(neff, inputs, settings, observers=(_WithWait(wait), *checks))
    known = {_places(one) for one in before.findings if one.tool == finding.tool} - {_places(finding)}
    helps = result.ok and known.issuperset(map(_places, result.findings))
    same = all(
        result.outputs[name].tobytes() == array.tobytes() for name, array in before.outputs.items()
    ) if helps else False  # fmt: skip
    return _Tried(helps, same)


def _places(finding: Finding) -> frozenset[tuple[int, str, int]]:
    return frozenset((site.core, site.engine, site.pc) for site in (finding.site, *finding.others))
