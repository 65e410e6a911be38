"""Findings that somebody looked at and accepts: a file with one pattern a line.

# kind, then what else has to match; * ? [...] as in a shell
racecheck:write-read
racecheck:*  file=*/attention.py line=48
initcheck:undefined-output:nc0.DVE.12*
synccheck:ambiguous  engine=SP  tensor=scores
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from neurontools.command.files import read_text

if TYPE_CHECKING:
    from emulator.checks import Finding

__all__ = ["Suppression", "read_suppressions", "split"]

_KEYS = ("file", "line", "tensor", "engine", "pc", "core", "severity", "operand")


class Suppression(NamedTuple):
    """One line of the file; `id` is a pattern for the finding's id or for its tool and kind."""

    id: str
    fields: dict[str, str]
    line: int

    def matches(self, finding: Finding) -> bool:
        """Return whether it accepts a finding."""
        names = (finding.id, f"{finding.tool}:{finding.kind}", finding.tool)
        if not any(fnmatchcase(name, self.id) for name in names):
            return False
        site = finding.site
        values = {
            "file": str(getattr(site.source, "file", "")),
            "line": str(getattr(site.source, "line", "")),
            "tensor": finding.tensor,
            "engine": site.owner,
            "pc": str(site.pc),
            "core": str(site.core),
            "severity": finding.severity,
            "operand": site.operand,
        }
        return all(fnmatchcase(values[key], pattern) for key, pattern in self.fields.items())


def read_suppressions(path: Path) -> list[Suppression]:
    """Return the patterns of a file; FormatError names the line that is none."""
    found = []
    for number, text in enumerate(read_text(path).splitlines(), 1):
        words = text.split("#", 1)[0].split()
        if not words:
            continue
        fields = {}
        for word in words[1:]:
            key, equals, pattern = word.partition("=")
            if not equals or key not in _KEYS:
                raise FormatError(
                    "not a suppression", path=f"{path}:{number}", got=word, expected=" or ".join(f"{k}=" for k in _KEYS)
                )
            fields[key] = pattern
        found.append(Suppression(words[0], fields, number))
    return found


def split(findings: list[Finding], suppressions: list[Suppression]) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that stay, and those that a suppression accepts."""
    kept: list[Finding] = []
    accepted: list[Finding] = []
    for finding in findings:
        (accepted if any(one.matches(finding) for one in suppressions) else kept).append(finding)
    return kept, accepted
