"""What a check found: one place in the program, the other side of it, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any

from emulator.checks.kinds import KINDS
from emulator.faults import source_line
from formats.named_tuple import NamedTuple
from formats.regions import Region
from formats.times import duration

__all__ = ["SEVERITIES", "Finding", "Site", "SuggestedWait", "Words", "amend", "finding_later", "worst"]

# From harmless to certain. A note is worth knowing and never a reason to fail.
SEVERITIES = ("note", "warning", "error")


class Site(NamedTuple):
    """One place in a run: the word (for a DMA transfer, the word that triggered it), where and when.

    `engine` is the engine's or the queue's name, `owner` the engine whose stream holds pc; `clock` is the number of the
    access on its engine or queue, `seen` how far this side knows the other one to be, -1 where clocks do not apply.
    """

    core: int
    engine: str
    owner: str
    pc: int
    text: str
    source: object | None = None
    access: str = ""
    operand: str = ""
    time_ps: int = -1
    clock: int = -1
    seen: int = -1

    @property
    def line(self) -> str:
        """Return file:line, "" where the program has none."""
        return source_line(self.source)

    @property
    def where(self) -> str:
        """Return core, engine, pc and source line."""
        queue = "" if self.engine == self.owner else f", triggered by {self.owner}"
        line = f" ({self.line})" if self.line else ""
        pc = f" pc {self.pc}" if self.pc >= 0 else ""
        return f"nc{self.core} {self.engine}{queue}{pc}{line}"


class SuggestedWait(NamedTuple):
    """A wait that would order two sides: in front of word `pc` of an engine, or `behind` all of its words.

    `semaphore` is -1 where nothing signals that could be waited for; `text` says so.
    """

    core: int
    engine: str
    pc: int
    semaphore: int
    value: int
    text: str
    behind: bool = False


@dataclass
class Finding:
    """One finding of a check.

    `tool` is one of `emulator.checks.TOOLS`, `kind` what is wrong (a stable word, listed in
    `emulator.checks.kinds`), `severity` one of SEVERITIES. `region` is the bytes concerned, `tensor` the name of what
    lies there ("" where nothing names it), `count` how often the same two places met, `others` further sides. `id` is
    the same for the same finding of the same program. `waits` are those that would order the two sides, the order that
    was seen first; `open` says that the other one may as well be meant. `regions` are the bytes of every meeting of a
    transfer that reads, as long as they are few; `refuted` tells that trying it showed it to be none.
    """

    tool: str
    kind: str
    severity: str
    message: str
    site: Site
    others: tuple[Site, ...] = ()
    region: Region | None = None
    tensor: str = ""
    hint: str = ""
    count: int = 1
    details: dict[str, Any] = field(default_factory=dict)
    reproduce: str = ""
    waits: tuple[SuggestedWait, ...] = ()
    open: bool = False
    regions: tuple[Region, ...] = ()
    refuted: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse a kind that is not listed, or is listed with another severity."""
        known = KINDS.get(f"{self.tool}:{self.kind}")
        if known is None or known.severity != self.severity:
            raise ValueError(f"{self.tool} has no {self.severity} {self.kind!r}")

    def copy(self) -> Finding:
        """Return the same for somebody else, who may change it."""
        return replace(self, details=dict(self.details))

    @property
    def id(self) -> str:
        """Return a name that stays the same from run to run: tool, kind and the places in the program."""
        places = [f"nc{s.core}.{s.owner}.{s.pc}" for s in (self.site, *self.others[:1])]
        return ":".join((self.tool, self.kind, *places))

    @property
    def other(self) -> Site | None:
        """Return the other side, None where there is only one."""
        return self.others[0] if self.others else None

    @property
    def serious(self) -> bool:
        """Return whether it is more than a note."""
        return self.severity != "note"

    @property
    def place(self) -> str:
        """Return the bytes concerned, with the tensor's name where it is known."""
        if self.region is None:
            return self.tensor
        return f"{self.tensor} {self.region.text}".strip()

    def text(self) -> str:
        """Return the finding as people read it."""
        times = f" ({self.count} times)" if self.count > 1 else ""
        lines = [f"{self.tool}: {self.severity}: {self.message}{times} [{self.kind}]"]
        lines += _site_lines("at", self.site)
        if self.place:
            lines.append(f"  bytes  {self.place}")
        for other in self.others:
            lines += _site_lines("other", other)
        if self.hint:
            lines.append(f"  hint   {self.hint}")
        if self.reproduce:
            lines.append(f"  again  {self.reproduce}")
        return "\n".join(lines)


class Words(NamedTuple):
    """What a finding says, for people to read."""

    message: str
    site: Site
    others: tuple[Site, ...] = ()
    tensor: str = ""
    hint: str = ""


_reading = RLock()  # findings may be read by several threads
# What is known of a finding whose words nobody has asked for.
_AT_ONCE = frozenset(
    ["count", "details", "kind", "open", "refuted", "region", "regions", "serious", "severity", "tool"]
)


class _Unread(Finding):
    """A finding whose words nobody has asked for: it is a plain one as soon as somebody does.

    Texts of words and the lines that they stand for take longer to find than all that the check did.
    """

    def __getattribute__(self, name: str) -> Any:
        """Return what is known at once; for all else become a plain finding first."""
        if name in _AT_ONCE:
            return object.__getattribute__(self, name)
        with _reading:
            own = object.__getattribute__(self, "__dict__")
            if "_words" in own:  # nobody else has been at it
                words, changes = own["_words"]
                # What somebody has set stays.
                message, site, others, tensor, hint = words()
                told = {"message": message, "site": site, "others": others, "tensor": tensor, "hint": hint, "waits": ()}
                own |= told | own
                object.__setattr__(self, "__class__", Finding)
                del own["_words"]
                for change in changes:
                    change(self)
        return getattr(self, name)


def finding_later(
    tool: str,
    kind: str,
    words: Callable[[], Words],
    region: Region | None = None,
    details: dict[str, Any] | None = None,
) -> Finding:
    """Return a finding, of the severity of its kind, that asks `words` once when somebody reads it.

    These must come to the same whenever they are asked.
    """
    known = KINDS.get(f"{tool}:{kind}")
    if known is None:
        raise ValueError(f"{tool} has no {kind!r}")
    made = _Unread.__new__(_Unread)
    own = object.__getattribute__(made, "__dict__")
    own.update(
        tool=tool, kind=kind, severity=known.severity, region=region, count=1,
        details={} if details is None else details, reproduce="", open=False, regions=(), refuted=False,
        _words=(words, []),
    )  # fmt: skip
    return made


def amend(finding: Finding, change: Callable[[Finding], object]) -> None:
    """Have words of a finding changed: at once, or when somebody reads it."""
    if type(finding) is not _Unread:
        change(finding)
        return
    _, changes = object.__getattribute__(finding, "__dict__")["_words"]
    changes.append(change)


def _site_lines(label: str, site: Site) -> list[str]:
    what = f" {site.access}" if site.access else ""
    operand = f" {site.operand}" if site.operand else ""
    lines = [f"  {label.ljust(5)}  {site.where}{what}{operand}"]
    if site.text:
        lines.append(f"         {site.text}")
    if site.clock >= 0:
        seen = f", knows the other side up to {site.seen}" if site.seen >= 0 else ""
        when = f" at {duration(site.time_ps)}" if site.time_ps >= 0 else ""
        lines.append(f"         clock {site.clock}{seen}{when}")
    return lines


def worst(findings: list[Finding]) -> str:
    """Return the highest severity among findings, "" where there are none."""
    return max((finding.severity for finding in findings), key=SEVERITIES.index, default="")
