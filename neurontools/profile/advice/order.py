"""The rule about the order of a kernel's operations: what waits holds up what is ready behind it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from emulator.loaded import source_at
from emulator.timeline.change import Change
from formats.neff import Neff
from neurontools.profile.advice.context import Candidate, Context
from neurontools.profile.rows import Line

__all__ = ["better_order"]


def better_order(context: Context) -> Iterator[Candidate]:
    """Build the kernel once more with its operations scheduled, and name the line whose words go ahead of most."""
    build = context.program.scheduled
    if build is None:
        return
    other = build()
    for line, passed in _ahead(context.program.neff, other).most_common(1):
        yield Candidate(
            "order",
            line,
            "words of this line are ready while others before them wait: --schedule, or NEURONTOOLS_SCHEDULE=on, lets "
            "operations go ahead, as AWS's compiler does",
            Change(),
            "the kernel was built and run again with its operations scheduled",
            "isa.md 2, 11",
            passed,
            other,
        )


def _ahead(neff: Neff, other: Neff) -> Counter[Line]:
    """Return, by line, how many places further ahead its words stand in the other file, on their engines."""
    before, after, found = _places(neff), _places(other), Counter[Line]()
    for (engine, line), places in before.items():
        passed = sum(max(was - now, 0) for was, now in zip(places, after[engine, line], strict=False))
        if passed:
            found[line] += passed
    return found


def _places(neff: Neff) -> dict[tuple[tuple[int, str], Line], list[int]]:
    """Return where the words of each line stand, by core and engine."""
    found: dict[tuple[tuple[int, str], Line], list[int]] = defaultdict(list)
    for core, subgraph in enumerate(neff.subgraphs):
        for engine, stream in subgraph.streams.items():
            for pc in range(len(stream)):
                source = source_at(subgraph, engine, pc)
                if source is not None and source.file and source.line:
                    found[(core, engine), (source.file, source.line)].append(pc)
    return found
