"""Every legal number of ranks from 2 to 64 x every algorithm x every operation: what runs against the closed forms.

    python -m tests.emulator.machine.every_size [FIRST [LAST]]

The forms are those of collectives.md 5, with one element a chunk (four where an algorithm cuts chunks).  What is legal,
the forms say themselves: powers of two for RDH, whole chips for KangaRing and for two-stage Mesh.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from emulator.machine.collectives.algorithms import Algorithm, illegal
from emulator.machine.collectives.engine import Job
from emulator.machine.collectives.group import Group
from emulator.machine.collectives.plan import Operation, Request
from emulator.machine.collectives.run import timed
from emulator.machine.machine import Machine

OPERATIONS: tuple[Operation, ...] = ("allgather", "reducescatter", "allreduce")
HALVES = {"allgather": 1, "reducescatter": 1, "allreduce": 2}
_CHIP = 4  # ranks
_ONE, _MANY = Machine("trn2.48xlarge"), Machine("trn2.48xlarge", nodes=64)


class DiffersError(AssertionError):
    """Says what was counted, and what the closed form has."""


def _ran(request: Request) -> Job:
    _, (job,) = timed([request], 1)
    if not job.done:
        raise DiffersError(f"{request.operation} by {request.algorithm} over {request.group.size} did not end")
    return job


def _same(job: Job, what: str, found: object, wanted: object) -> None:
    if found != wanted:
        asked = job.plan.request
        raise DiffersError(
            f"{asked.operation} by {asked.algorithm} over {asked.group.size}: {what} {found}, not {wanted}"
        )


class Counts(NamedTuple):
    """Steps, what each rank sends, and what all write or read between nodes, between chips and inside chips."""

    steps: int
    sent: set[int]
    nodes: int
    chips: int
    written: int
    read: int


def _counts(job: Job) -> Counts:
    ranks = [job.counters.ranks[rank] for rank in job.plan.ranks]
    return Counts(
        len(job.counters.steps), {one.sent for one in ranks}, sum(one.between_nodes for one in ranks),
        sum(one.between_chips for one in ranks), sum(one.inside_chip for one in ranks),
        sum(one.read_inside_chip for one in ranks),
    )  # fmt: skip


def _doublings(n: int) -> int | None:
    return None if n & (n - 1) else n.bit_length() - 1


def between_nodes(n: int) -> Iterator[str]:
    """Walk groups with one rank on each of n nodes."""
    group = Group(_MANY, range(0, n * _MANY.ranks_per_node, _MANY.ranks_per_node))
    doublings = _doublings(n)
    for operation in OPERATIONS:
        halves = HALVES[operation]
        steps: dict[Algorithm, int | None] = {
            "ring": n - 1, "flat-ring": n - 1, "mesh": 1, "rdh": doublings, "kangaring": None,
            "single-step-mesh": 1 if operation == "allreduce" else None,
        }  # fmt: skip
        for algorithm, each in steps.items():
            if each is None:
                if not illegal(algorithm, group, operation):
                    raise DiffersError(f"{algorithm} over {n} nodes is legal")
                continue
            single = algorithm == "single-step-mesh"
            job = _ran(Request(operation, group, n, algorithm))
            found = _counts(job)
            _same(job, "steps", found.steps, 1 if single else halves * each)
            _same(job, "sent", found.sent, {(n - 1) * n} if single else {halves * (n - 1)})
            yield f"{operation} {algorithm} between nodes"


def inside(n: int) -> Iterator[str]:
    """Walk groups of the first n ranks of an instance, four to a chip."""
    group, chunk = Group(_ONE, range(n)), 4
    chips, whole = n // _CHIP, n % _CHIP == 0
    doublings = _doublings(chips) if whole else None
    for operation in OPERATIONS:
        halves = HALVES[operation]
        job = _ran(Request(operation, group, n * chunk, "ring"))
        found = _counts(job)
        _same(job, "steps", found.steps, halves * (n - 1))
        _same(job, "sent", found.sent, {halves * (n - 1) * chunk})
        yield f"{operation} ring inside"
        for algorithm in ("mesh", "rdh", "kangaring"):
            legal = whole and (algorithm != "rdh" or doublings is not None)
            if not legal:
                # One chip's ranks, or two of them: other groups are legal where all ranks of a chip are alike.
                if whole or (algorithm == "kangaring" and n > _CHIP):
                    _refused(algorithm, group, operation, n)
                continue
            job = _ran(Request(operation, group, n * chunk, algorithm))  # type: ignore[arg-type]
            found = _counts(job)
            if algorithm == "mesh" and chips > 1:
                _same(job, "steps", found.steps, 2 * halves)
                if operation == "allgather":
                    _same(job, "between chips", found.chips, n * (chips - 1) * chunk)
                    _same(job, "inside chips", found.written, n * (n - chips) * chunk)
                if operation == "reducescatter":
                    _same(job, "between chips", found.chips, n * (chips - 1) * chunk)
            elif algorithm == "rdh" and chips > 1:
                assert doublings is not None
                _same(job, "steps", found.steps, halves * (doublings + 1))
                _same(job, "between chips", found.chips, halves * n * (chips - 1) * chunk)
                # A scatter reads what its neighbours have, a gather writes it to them.
                _same(job, "inside chips", found.written + found.read, halves * n * (n - chips) * chunk)
            elif algorithm == "kangaring":
                _same(job, "steps", found.steps, n - 2 if operation == "allreduce" else n // 2 - 1)
            yield f"{operation} {algorithm} inside"


def _refused(algorithm: str, group: Group, operation: Operation, n: int) -> None:
    if not illegal(algorithm, group, operation):  # type: ignore[arg-type]
        raise DiffersError(f"{algorithm} over the first {n} ranks is legal")


def over_levels(n: int) -> Iterator[str]:
    """Walk X nodes of Y ranks: hierarchies of any pairing that is legal, and the flat ring."""
    for x in range(2, n // 2 + 1):
        y = n // x
        if x * y != n or y < 2:
            continue
        group = Group(_MANY, [node * _MANY.ranks_per_node + at for node in range(x) for at in range(y)])
        within, across = group.part(group.ranks[:y]), group.part(group.ranks[::y])
        for operation in OPERATIONS:
            halves = HALVES[operation]
            job = _ran(Request(operation, group, n * 4, "flat-ring"))
            _same(job, "steps", _counts(job).steps, halves * (n - 1))
            _same(job, "sent", _counts(job).sent, {halves * (n - 1) * 4})
            yield f"{operation} flat-ring"
            for inner in ("ring", "mesh", "rdh", "kangaring"):
                for outer in ("ring", "mesh", "rdh"):
                    if illegal(inner, within, operation) or illegal(outer, across, operation):
                        continue
                    job = _ran(Request(operation, group, n * 4, "hier", inner, outer))
                    _same(job, f"{inner}+{outer} between nodes", _counts(job).nodes, halves * n * (x - 1) * 4)
                    if operation == "allgather" and inner != "kangaring":  # whose primaries read, not counted as sent
                        total = sum(job.counters.ranks[rank].sent for rank in job.plan.ranks)
                        _same(job, f"{inner}+{outer} sent by all", total, n * (n - 1) * 4)
                    yield f"{operation} hier {inner}+{outer}"


def walk(n: int) -> Counter[str]:
    """Return how many collectives of n ranks were held against the forms, by kind; DiffersError where one is off."""
    return Counter([*between_nodes(n), *inside(n), *over_levels(n)])


def main() -> None:
    """Walk the sizes asked for, and print what was walked."""
    given = [int(word) for word in sys.argv[1:3]]
    first, last = [*given, *(2, 64)[len(given) :]]
    total: Counter[str] = Counter()
    for n in range(first, last + 1):
        found = walk(n)
        total += found
        print(f"{n} ranks: {found.total()} collectives as the forms have them", flush=True)
    for kind, count in sorted(total.items()):
        print(f"{count:5} {kind}")
    print(f"{total.total()} in all")


if __name__ == "__main__":
    main()
