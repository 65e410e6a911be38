"""The profile of several ranks as typed rows; times are nanoseconds of device time, shares percent."""

from __future__ import annotations

from typing import Annotated

from formats.named_tuple import NamedTuple
from neurontools.profile.results import LineDelta, LineRow, PathLine, Profile, Share, WhatIf

__all__ = ["CollectiveDelta", "CollectiveTimes", "LinkTimes", "RankDelta", "RankLinkRow", "RankPath", "RankShare",
           "RankTimes", "RanksComparison", "RanksProfile"]  # fmt: skip


class RankTimes(NamedTuple):
    """One rank: where it ran, when it ended, and what its time went into."""

    rank: int
    node: int
    chip: int
    core: Annotated[int, "logical core of the chip"]
    outcome: Annotated[str, "finished, fault, hang, or absent where the rank ran no program"]
    time_ns: float
    compute_ns: Annotated[float, "in which at least one engine computed"]
    dma_ns: Annotated[float, "in which its own transfers moved"]
    collective_ns: Annotated[float, "in which it was in at least one collective"]
    exposed_ns: Annotated[float, "of that, what no compute of the rank covers"]
    late_ns: Annotated[float, "of its collectives, the time until the last partner had called"]
    critical_ns: Annotated[float, "its part of the critical path over all ranks"]
    busy_percent: Annotated[dict[str, float], "of the rank's time, by engine; the busiest core's"]


class CollectiveTimes(NamedTuple):
    """One collective at all of its ranks."""

    name: str
    group: tuple[int, ...]
    core: Annotated[int, "physical core of each rank"]
    stream: int
    algorithm: Annotated[str, "empty where nobody could begin"]
    line: Annotated[str, "file:line of the call, unknown where the file does not say"]
    called_ns: Annotated[float, "when the first rank called it"]
    latest: Annotated[int, "rank that called it last"]
    skew_ns: Annotated[float, "from the first call to the last"]
    time_ns: Annotated[float | None, "from the last call until the last rank is through, null where it does not end"]
    ended_ns: float | None
    hidden_percent: Annotated[float, "of the time of all its ranks, what compute of the rank covers"]
    exposed_ns: Annotated[float, "at the rank where most is exposed"]
    exposed_rank: int


class LinkTimes(NamedTuple):
    """The way from one rank to another: what CC-cores moved over it."""

    source: int
    target: int
    transfer_count: int
    bytes: int
    busy_ns: float
    gb_per_s: Annotated[float, "while it was busy"]
    kind: Annotated[str, "what the way goes over: chip, neuronlink, efa, ..."]


class RankShare(NamedTuple):
    """The part of the critical path that a rank has."""

    rank: int
    ns: float
    percent: float


class RankLinkRow(NamedTuple):
    """One link of the critical path over all ranks."""

    rank: int
    start_ns: float
    end_ns: float
    kind: str
    owner: str
    opcode: str
    pc: int
    line: str
    detail: str


class RankPath(NamedTuple):
    """What took exactly as long as the run: a chain that goes to the rank that called a collective last."""

    total_ns: float
    kinds: tuple[Share, ...]
    ranks: tuple[RankShare, ...]
    lines: tuple[PathLine, ...]
    links: tuple[RankLinkRow, ...]


class RankDelta(NamedTuple):
    """A rank that takes more than before, or less."""

    rank: int
    time_delta_ns: float
    compute_delta_ns: float
    exposed_delta_ns: float


class CollectiveDelta(NamedTuple):
    """The collectives of a line that take more than before, or less, all of them together."""

    line: str
    name: str
    time_delta_ns: float
    skew_delta_ns: float
    exposed_delta_ns: float


class RanksComparison(NamedTuple):
    """Another run on ranks beside this one."""

    name: str
    total_time_ns: float
    before_ns: float
    ranks: tuple[RankDelta, ...]
    collectives: tuple[CollectiveDelta, ...]
    lines: tuple[LineDelta, ...]


class RanksProfile(NamedTuple):
    """A run on several ranks: where its time went; None is what was not asked for.

    `lines` have the part of the critical path over all ranks, and what all ranks together took.
    """

    name: str
    is_simulation: bool
    target: str
    instance: str
    nodes: int
    outcome: str
    total_time_ns: float
    slowest: Annotated[int, "rank that ends last; of several the one that waited least for others"]
    fastest: Annotated[int, "rank that ends first; of several the one that waited longest for others"]
    exposed_percent: Annotated[float, "of the run, exposed communication of the rank with most"]
    hidden_percent: Annotated[float, "of the time of all collectives, what compute covers"]
    ranks: tuple[RankTimes, ...]
    collectives: tuple[CollectiveTimes, ...]
    links: tuple[LinkTimes, ...]
    critical_path: RankPath
    lines: tuple[LineRow, ...]
    rank: Annotated[int, "whose profile follows: the one asked for, else the slowest"]
    profile: Profile
    what_if: WhatIf | None = None
    against: RanksComparison | None = None
