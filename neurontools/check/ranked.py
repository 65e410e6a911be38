"""What `neurontools check --ranks` does: a program on every rank under checks, and the findings of all as one list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formats.errors import NotFoundError
from neurontools.program.configuration import RunConfiguration
from neurontools.program.execution import Execution

if TYPE_CHECKING:
    from emulator.checks import Finding
    from emulator.checks.finding import Site
    from emulator.machine.ranks.explain import RankHang, RankWait, Root
    from emulator.runtime import Result
    from emulator.runtime.ranks import RankedResult, Ranks
    from emulator.settings import Settings
    from formats.neff import Neff
    from neurontools.command.output import Report

__all__ = ["Launched", "launches_on_ranks", "merged", "spelled"]

Launched = tuple["RankedResult", list[Execution]]


def launches_on_ranks(file: Path, configuration: RunConfiguration, out: Report, where: Ranks) -> list[Launched]:
    """Run a file on all ranks under checks; return what came of each launch.

    Raises NotFoundError for a script that launched nothing; other errors as `execute_file`.
    """
    from emulator.runtime.ranks import execute_ranks  # deferred: start-up
    from neurontools.check.trying import leave_untried  # deferred: start-up
    from neurontools.check.unused import drop_unused  # deferred: start-up
    from neurontools.running.ranked import Watching, execute_file  # deferred: start-up

    def after(
        neffs: Sequence[Neff | None], inputs: Sequence[dict[str, Any]], settings: Settings, found: RankedResult
    ) -> None:
        def again(seen: Sequence[Sequence[Any]]) -> Sequence[Result]:
            return execute_ranks(neffs, inputs, where, settings, watch=lambda rank: seen[rank]).results

        if found.ok:
            drop_unused(found.results, again)

    launches = execute_file(file, configuration, where, out, Watching(after=after))
    if not launches:
        raise NotFoundError(f"{file}: the script launched no kernel: nothing was checked")
    for _, made in launches:
        for run in made:
            leave_untried(run.result.findings)
    if "synccheck" not in configuration.checks:
        for found, _ in launches:
            if found.hang is not None:
                out.warn(*found.hang.text().splitlines())
    return launches


def spelled(where: Ranks) -> tuple[str, ...]:
    """Return the options that run a file on the same ranks again."""
    instance = () if where.instance is None else ("--instance", where.instance)
    nodes = () if where.nodes == 1 else ("--nodes", str(where.nodes))
    return ("--ranks", str(where.ranks), *instance, *nodes)


def merged(launches: list[Launched], refused: list[Finding]) -> list[Finding]:
    """Return findings once where several ranks have the same, with the ranks that do.

    What every rank says of a collective that does not end becomes what the ranks are in together.
    """
    kept: dict[str, Finding] = {finding.id: finding for finding in refused}
    who: dict[str, set[int]] = {}
    together: dict[str, Finding] = {}
    for found, made in launches:
        waiting: dict[int, Finding] = {}
        for rank, run in enumerate(made):
            for finding in run.result.findings:
                if finding.refuted:
                    continue
                if f"{finding.tool}:{finding.kind}" == "synccheck:ranks" and found.hang is not None:
                    waiting.setdefault(rank, finding)
                    continue
                kept.setdefault(finding.id, finding)
                who.setdefault(finding.id, set()).add(rank)
        if found.hang is not None:
            _join(found.hang, waiting, together)
    from emulator.machine.ranks.explain import ranks_text  # deferred: start-up

    for name, ranks in who.items():
        kept[name].message += f" ({ranks_text(sorted(ranks))})"
    return [*together.values(), *kept.values()]


def _join(hang: RankHang, waiting: dict[int, Finding], together: dict[str, Finding]) -> None:
    """Add a finding for each reason why ranks wait; reasons at one place of the program are one finding."""
    from emulator.checks import KINDS, Finding  # deferred: start-up

    for root in hang.roots:
        sites = _sites(hang, root, waiting)
        if not sites:
            continue
        text = "; ".join((root.sentence, *root.lines))
        made = Finding(
            "synccheck", "ranks", KINDS["synccheck:ranks"].severity, f"a collective does not end: {text}", sites[0],
            tuple(sites[1:]), hint=root.hint, details={"cause": root.cause, "ranks": root.ranks, "cycle": root.cycle,
            "waiting": tuple(wait.rank for wait in hang.waits)},
        )  # fmt: skip
        known = together.setdefault(made.id, made)
        if known is not made:
            known.message += f"; and {text}"


def _sites(hang: RankHang, root: Root, waiting: dict[int, Finding]) -> list[Site]:
    """Return the calls that a root is about, each once, with the ranks that made it and what they asked for."""
    from emulator.machine.ranks.explain import ranks_text  # deferred: start-up

    by_call: dict[tuple[object, ...], list[RankWait]] = {}
    for wait in hang.waits:
        by_call.setdefault((wait.what, wait.group, wait.stream, wait.engine, wait.pc, wait.source), []).append(wait)
    found = []
    for waits in by_call.values():
        mine = [wait for wait in waits if wait.rank in root.seen_from]
        site = _call(mine[0], waiting.get(mine[0].rank)) if mine else None
        if site is not None:
            ranks = ranks_text([wait.rank for wait in waits])
            found.append(site._replace(access=f"called by {ranks}:", operand=mine[0].what))
    return found


def _call(wait: RankWait, finding: Finding | None) -> Site | None:
    """Return the word that called a collective, as the finding of its rank has it."""
    sites = () if finding is None else (*finding.others, finding.site)
    return next((site for site in sites if (site.owner, site.pc) == (wait.engine, wait.pc)), None)
