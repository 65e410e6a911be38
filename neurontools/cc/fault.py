"""`neurontools cc fault`: break a collective on purpose, and see who is named."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from neurontools.cc.asking import (
    Algo,
    DataType,
    GroupsFile,
    InstanceOption,
    LncOption,
    Nodes,
    OperationName,
    Ranks,
    Size,
    ask,
)  # fmt: skip
from neurontools.cc.running import Ran, executed, ran_lines, ran_of
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report

if TYPE_CHECKING:
    from emulator.machine.collectives.engine import Faults
    from neurontools.cc.asking import Asked


def faults_of(drop: int | None, at: int, slow: list[str], lose: list[str], proxy: int | None) -> Faults:
    """Return the faults that options ask for."""
    from emulator.machine.collectives.engine import Faults  # deferred: start-up

    slower = {}
    for text in slow:
        name, _, factor = text.rpartition("=")
        if not name or re.fullmatch(r"\d{1,9}(\.\d{1,9})?", factor) is None or float(factor) < 1:
            raise typer.BadParameter(f"{text!r} is no stretch and factor such as 'neuronlink n0 c0>c1=10'")
        slower[name] = float(factor)
    lost = set()
    for text in lose:
        found = re.fullmatch(r"(\d{1,6})>(\d{1,6})(?::(\d{1,9}))?", text, re.ASCII)
        if found is None:
            raise typer.BadParameter(f"{text!r} is no transfer such as 3>7 or 3>7:2")
        lost.add((int(found[1]), int(found[2]), int(found[3] or 0)))
    stopped = {} if drop is None else {drop: at}
    return Faults(stopped, slower, frozenset(lost), frozenset(() if proxy is None else (proxy,)))


def need_met(asked: Asked, faults: Faults) -> None:
    """Raise BadParameter for a fault that this collective never comes by: its end would say nothing."""
    from emulator.machine.collectives.plan import build  # deferred: start-up

    plans = [build(one) for one in asked.requests]
    sent: Counter[tuple[int, int]] = Counter()
    ways: set[tuple[int, int]] = set()
    last: dict[int, int] = {}
    for plan in plans:
        for rank, program in plan.programs.items():
            for move in (move for moves in program.values() for move in moves):
                last[rank] = max(last.get(rank, 0), move.step)
                targets = {*(piece.rank for piece in move.writes), *move.notifies}
                sent.update((rank, target) for target in targets)
                ways |= {(rank, target) for target in targets} | {(piece.rank, rank) for piece in move.reads}
    for rank, step in faults.stopped.items():
        if step > last.get(rank, -1):
            raise typer.BadParameter(f"rank {rank} has no step {step}: its last is {last.get(rank, 0)}")
    for source, target, nth in faults.lost:
        many = sent[source, target]
        if nth >= many:
            raise typer.BadParameter(f"rank {source} has {many} transfers to rank {target}: there is no number {nth}")
    used = {hop.name for a, b in ways for hop in asked.machine.way(a, b)}
    for name in faults.slow:
        if name not in used:
            known = ", ".join(sorted(used)[:4])
            raise typer.BadParameter(f"nothing goes over {name!r} here; among what is used are {known}")
    for rank in faults.dead_proxies:
        ranks = next(plan.ranks for plan in plans if rank in plan.ranks)
        if len({asked.machine.place(one).node for one in ranks}) == 1:
            raise typer.BadParameter(f"rank {rank} needs no network proxy: its group is on one node")


def fault(
    operation: OperationName,
    ranks: Ranks = None,
    size: Size = 1 << 16,
    instance: InstanceOption = "trn2.48xlarge",
    nodes: Nodes = 1,
    lnc: LncOption = None,
    algo: Algo = "auto",
    dtype: DataType = "fp32",
    groups: GroupsFile = None,
    drop: Annotated[
        int | None, typer.Option("--drop-rank", metavar="N", help="A rank that stops.", show_default=False)
    ] = None,
    at: Annotated[int, typer.Option("--at-step", metavar="N", min=0, help="The step at which it stops.")] = 0,
    absent: Annotated[
        int | None,
        typer.Option("--missing-rank", metavar="N", help="A rank that never starts.", show_default=False),
    ] = None,
    slow: Annotated[
        list[str] | None,
        typer.Option("--slow-link", metavar="STRETCH=N", help="Divide a rate by N; `arch path` names stretches."),
    ] = None,
    lose: Annotated[
        list[str] | None,
        typer.Option("--lose", metavar="A>B[:N]", help="Lose the Nth transfer from rank A to rank B."),
    ] = None,
    proxy: Annotated[
        int | None,
        typer.Option("--dead-proxy", metavar="N", help="A rank whose network proxy fails.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Break a collective on purpose: stop a rank, slow a link, lose a transfer.

    Exit status 5 where it does not end any more: the report names the rank at which that begins, the chain of waiting
    ranks and the status of the Neuron runtime.
    """
    with report("cc fault", json, operation=operation, ranks=ranks, size=size, instance=instance, nodes=nodes,
                algo=algo, drop=drop, at=at) as out:  # fmt: skip
        asked = ask(operation, size, instance=instance, nodes=nodes, lnc=lnc, ranks=ranks, algo=algo, dtype=dtype,
                    groups=groups)  # fmt: skip
        for rank in (drop, absent, proxy):
            if rank is not None and not any(rank in one.group.ranks for one in asked.requests):
                raise typer.BadParameter(f"rank {rank} takes no part")
        broken = faults_of(drop, at, slow or [], lose or [], proxy)
        need_met(asked, broken)
        missing = frozenset(() if absent is None else (absent,))
        outcome, _ = executed(asked, "random", 0, faults=broken, absent=missing)
        out.result = found = ran_of(asked, outcome)
        out.lines = lambda: ran_lines(found)
        if found.hangs:
            out.status = ExitStatus.FAULT


app = command_app(fault, result=Ran)
