"""One rank's failure: what one process left behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from formats.named_tuple import NamedTuple
from formats.nrt.status import NrtStatus

__all__ = ["CONSEQUENCES", "Rank", "Signature"]

# Statuses that follow from another rank's failure, or from one before it.
CONSEQUENCES = frozenset(
    (
        NrtStatus.NRT_EXEC_HW_ERR_COLLECTIVES,
        NrtStatus.NRT_NETWORK_PROXY_FAILURE,
        NrtStatus.NRT_EXEC_UNIT_UNRECOVERABLE,
    )
)


class Signature(NamedTuple):
    """What failures of one cause share; empty texts where nothing is known."""

    status: str
    engine: str
    opcode: str
    awaited: str
    source: str
    message: str


@dataclass
class Rank:
    """What one process left behind: empty texts, -1 and None stand for what it does not tell."""

    directory: str
    cluster: Annotated[str, "Collective execution, sixteen zeros without one."]
    instance: str
    pid: int
    log_id: int = 0
    cores: Annotated[list[str], "Cores that it left files of."] = field(default_factory=list)
    knowledge: Annotated[
        Literal["core", "log", "name"], "Where this is from: our core dump, a log, or file names alone."
    ] = "name"
    status: Annotated[int | None, "Number of the NRT status."] = None
    status_name: str = ""
    outcome: str = ""
    kind: str = ""
    message: str = ""
    cause: Annotated[str, "Why it waits, as `core why` names it."] = ""
    hint: Annotated[str, "What to do about that cause."] = ""
    engine: str = ""
    opcode: str = ""
    awaited: Annotated[str, "Condition that it waits for."] = ""
    line: Annotated[str, "Source line, as FILE:LINE."] = ""
    other: Annotated[str, "The waits of a cycle."] = ""
    limit: Annotated[str, "What would have been allowed."] = ""
    found: Annotated[str, "What was found instead."] = ""
    pc: int = -1
    cycle: Annotated[bool, "Whether engines wait for each other."] = False
    lost: Annotated[bool, "Whether it waits for something that nothing signals any more."] = False
    when: Annotated[float | None, "Seconds since 1970."] = None
    when_from: Literal["", "directory", "core", "log"] = ""
    neff: str = ""
    host: str = ""
    world: Annotated[int | None, "Ranks of the execution."] = None
    rank: int | None = None
    hardware: Annotated[str, "Hardware error that a log names."] = ""
    path: str = ""
    warnings: list[str] = field(default_factory=list)
    consequence: Annotated[bool, "Whether its status follows from another failure."] = False

    @property
    def signature(self) -> Signature:
        """Return what failures of one cause share."""
        message = "" if self.knowledge == "core" else self.kind
        return Signature(self.status_name or "unknown", self.engine, self.opcode, self.awaited, self.line, message)

    def set_status(self, status: NrtStatus) -> None:
        """Take over a status; success does not replace one that is known."""
        if status or self.status is None:
            self.status, self.status_name = int(status), status.name
