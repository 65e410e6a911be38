"""`neurontools cc groups check`: say what is wrong with replica groups, and which algorithms they allow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.cc.asking import InstanceOption, LncOption, Nodes, read_groups
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.text.table import count


class OperationGroups(NamedTuple):
    """The groups of one operation."""

    groups: int
    ranks: Annotated[int, "of the first group"]
    findings: tuple[str, ...]
    allowed: Annotated[tuple[str, ...], "algorithms that the first group allows"]
    refused: Annotated[dict[str, str], "the others, with the reason"]


class Checked(NamedTuple):
    """The result of `cc groups check`."""

    file: str
    pairs: Annotated[bool, "whether the file holds pairs of a permute"]
    operations: tuple[OperationGroups, ...]


def checked(path: Path, instance: str, nodes: int, lnc: int | None, limit: int) -> Checked:
    """Return what is wrong with the groups, or the pairs, of a file."""
    from emulator.machine.collectives.algorithms import ALGORITHMS, illegal  # deferred: start-up
    from emulator.machine.collectives.group import Group, group_findings, pair_findings  # deferred: start-up
    from emulator.machine.machine import Machine  # deferred: start-up
    from formats.errors import FormatError  # deferred: start-up

    machine = Machine(instance, nodes=nodes, lnc=lnc)
    try:
        lists, pairs = read_groups(path), False
    except FormatError as error:
        if error.what != "no such key":
            raise
        lists, pairs = read_groups(path, "src_target_pairs"), True
    rows = []
    for groups in lists:
        if pairs:
            if any(len(pair) != 2 for pair in groups):
                raise FormatError("no pair", path=str(path), field="src_target_pairs", expected="[source, target]")
            wrong = pair_findings(machine, [(a, b) for a, b in groups])
            rows.append(OperationGroups(len(groups), 2, tuple(wrong), (), {}))
            continue
        wrong = group_findings(machine, groups, limit=limit)
        reasons: dict[str, str] = {}
        if not wrong:
            first = Group(machine, groups[0])
            reasons = {name: illegal(name, first, "allreduce") for name in ALGORITHMS}
        rows.append(OperationGroups(
            len(groups), len(groups[0]) if groups else 0, tuple(wrong),
            tuple(name for name, reason in reasons.items() if not reason),
            {name: reason for name, reason in reasons.items() if reason},
        ))  # fmt: skip
    return Checked(str(path), pairs, tuple(rows))


def view(found: Checked) -> Iterator[str]:
    """Yield the text for people."""
    if not found.operations:
        yield "no operation has groups in it"
    for number, row in enumerate(found.operations):
        what = count(row.groups, "pair" if found.pairs else "group") + ("" if found.pairs else f" of {row.ranks} ranks")
        yield f"operation {number}: {what}: " + (count(len(row.findings), "finding") if row.findings else "legal")
        yield from (f"  {text}" for text in row.findings[:20])
        if row.allowed:
            yield f"  allows {', '.join(row.allowed)}"
        yield from (f"  not {name}: {reason}" for name, reason in row.refused.items())


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON as nccom-test takes it.", show_default=False)],
    instance: InstanceOption = "trn2.48xlarge",
    nodes: Nodes = 1,
    lnc: LncOption = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Groups a NEFF may have: 16, 12 before runtime 2.34.10.")
    ] = 16,
    json: Json = False,
) -> None:
    """Check replica groups, or the pairs of a permute, and list the algorithms they allow.

    The file holds "replica_groups" or "src_target_pairs", a list for each operation.  Exit status 1: something in it is
    not legal.
    """
    with report("cc groups check", json, file=file, instance=instance, nodes=nodes, lnc=lnc, limit=limit) as out:
        out.result = found = checked(file, instance, nodes, lnc, limit)
        out.lines = lambda: view(found)
        if any(row.findings for row in found.operations):
            out.status = ExitStatus.FINDING


app = command_app(check, result=Checked)
