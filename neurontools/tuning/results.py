"""What searches and batches give: types that commands know before anything heavy is imported."""

from __future__ import annotations

from typing import Annotated, Any

from formats.named_tuple import NamedTuple

__all__ = ["METHODS", "STATES", "Batch", "Done", "Order", "Task", "Trial", "Tuned"]

METHODS = ("climb", "tpe", "halving", "random", "grid")
STATES = ("ok", "wrong", "finding", "fault", "refused", "timeout", "memory", "limit", "died")


class Order(NamedTuple):
    """What every trial of a search has in common; `max_seconds` and `max_megabytes` are budgets of its process."""

    file: str
    arguments: tuple[str, ...] = ()
    target: str | None = None
    checks: tuple[str, ...] = ()
    max_seconds: float = 600.0
    max_megabytes: int = 8192


class Trial(NamedTuple):
    """What came of a trial; only one whose `state` is "ok" counts."""

    values: Annotated[dict[str, Any], "the parameters"]
    state: Annotated[str, "ok, wrong, finding, fault, refused, timeout, memory, limit or died"]
    time_ps: Annotated[int, "emulated time of all launches, -1 where there is none"]
    seconds: Annotated[float, "of this machine"] = 0.0
    message: str = ""
    bottleneck: Annotated[str, "what bounds the first launch, where it was asked for"] = ""
    declared: Annotated[dict[str, list[Any]], "values of parameters that kernels declare"] = {}  # noqa: RUF012
    rung: Annotated[int, "of successive halving: the smallest problem is 0, behind the last is the script's own"] = 0

    @property
    def ok(self) -> bool:
        """Return whether the variant is right."""
        return self.state == "ok"


class Tuned(NamedTuple):
    """What a search found; `baseline` is the script as it stands, `best` is None where no variant is right."""

    file: str
    method: str
    parameters: dict[str, list[Any]]
    variants: Annotated[int, "of the whole grid"]
    evaluated: Annotated[int, "trials of this search, resumed ones included"]
    resumed: int
    baseline: Trial
    best: Trial | None
    trials: tuple[Trial, ...]
    rungs: Annotated[tuple[tuple[str, ...], ...], "arguments of the script for smaller problems, smallest first"] = ()


class Task(NamedTuple):
    """One command on one program."""

    name: str
    action: str
    file: str
    arguments: tuple[str, ...]
    options: tuple[str, ...]
    max_seconds: float


class Done(NamedTuple):
    """What came of a task; `status` is the command's exit status, -1 where its process was ended."""

    name: str
    action: str
    file: str
    status: int
    what: Annotated[str, "ok, or why the status is another"]
    seconds: Annotated[float, "of this machine"]
    time_ps: Annotated[int | None, "emulated time, where the command tells one"] = None
    findings: Annotated[int | None, "of a check"] = None

    @property
    def ok(self) -> bool:
        """Return whether the command ended with status 0."""
        return self.status == 0


class Batch(NamedTuple):
    """What came of all tasks, in the manifest's order."""

    manifest: str
    tasks: int
    failed: int
    seconds: float
    results: tuple[Done, ...]
