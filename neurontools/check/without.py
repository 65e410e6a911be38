"""Waits between transfers of one queue, tried before anybody reads of them: the program runs without each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.checks import Finding
    from emulator.device import Device
    from emulator.runtime import Result
    from emulator.settings import Settings
    from formats.neff import Neff

__all__ = ["try_without"]

_MOST = 8  # waits tried
_SECONDS = 10.0  # of trying, as the first run went


class _Without:
    """Take one wait out of a program that is loaded."""

    def __init__(self, finding: Finding) -> None:
        self._site, self._slot = finding.site, "wait2_mode" if finding.details["slot"] else "wait_mode"

    def on_event(self, event: object) -> None:
        """Nothing to do: the wait is gone."""

    def attach(self, device: Device) -> None:
        """Change the program before it moves."""
        engine = device.cores[self._site.core].engines[self._site.engine]
        words = list(engine.words)
        at = next(number for number, one in enumerate(words) if one.pc == self._site.pc)
        word = words[at].word
        raw = bytearray(word.raw)
        word.FIELDS[self._slot].write(raw, 0)
        words[at] = words[at].with_word(type(word).from_raw(bytes(raw)))
        engine.words = words  # its first word is asked for already


def try_without(
    neff: Neff | bytes, inputs: Mapping[str, Any], settings: Settings, result: Result, findings: Sequence[Finding]
) -> None:
    """Run a program without each wait that keeps a queue idle; refute the findings whose waits turn out to be needed.

    A wait is not needed where no race comes up, every output is the same to the byte, and the program is over sooner.
    """
    wanting = [one for one in findings if (one.tool, one.kind) == ("lint", "serial-queue")]
    for number, finding in enumerate(wanting, 1):
        if number > _MOST or number * result.stats.seconds > _SECONDS:
            finding.refuted = True  # what was not tried is not said
            continue
        saved = _saved(neff, inputs, settings, result, finding)
        finding.refuted = saved <= 0
        finding.hint = (
            f"take out the wait for {finding.details['condition']}: without it no race comes up, the outputs are the "
            f"same, and the program is over {_percent(saved, result.time_ps)} sooner"
        )


def _saved(
    neff: Neff | bytes, inputs: Mapping[str, Any], settings: Settings, before: Result, finding: Finding
) -> int:  # fmt: skip
    """Return the picoseconds that a program without a wait saves, 0 where it is not the same program any more."""
    from emulator import runtime  # deferred: start-up
    from emulator.checks.registry import make_checks  # deferred: start-up

    first = runtime.execute(neff, inputs, settings, observers=make_checks(("racecheck",)))
    checks = make_checks(("racecheck",))
    without = runtime.execute(neff, inputs, settings, observers=(_Without(finding), *checks))
    known = {one.id for one in first.findings}
    same = without.ok and all(one.id in known for one in without.findings) and all(
        without.outputs[name].tobytes() == array.tobytes() for name, array in before.outputs.items()
    )  # fmt: skip
    return before.time_ps - without.time_ps if same else 0


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"
