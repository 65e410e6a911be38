"""What a check of an environment finds: kinds with their reasons, findings, and rows for SARIF."""

from __future__ import annotations

from typing import Annotated, Any

from formats.named_tuple import NamedTuple
from neurontools.command.results import LEFT_OUT

__all__ = ["KINDS", "EnvironmentFinding", "Kind", "sarif_results"]


class Kind(NamedTuple):
    """One kind of finding: how bad it is, what it is about."""

    severity: str
    about: str


# fmt: off
KINDS: dict[str, Kind] = {
    "unknown":        Kind("warning", "A variable that no page documents: it does nothing, and may be misspelled."),
    "removed":        Kind("warning", "A variable that the runtime does not read any more, or will not for long."),
    "value":          Kind("error",   "A value that the variable does not take."),
    "cores":          Kind("error",   "Cores that the instance does not have, or that contradict each other."),
    "lnc":            Kind("error",   "A size of logical cores that chip, NEFF or another variable contradicts."),
    "no-effect":      Kind("warning", "A variable that does nothing because of another one, or of the chip."),
    "contradiction":  Kind("warning", "Two variables of which one wins over the other."),
    "page-size":      Kind("error",   "A scratchpad page size that is none, or that the compiler does not know."),
    "affinity":       Kind("warning", "CPUs of latency-sensitive threads that are shared, unbalanced or not there."),
    "folder":         Kind("error",   "A folder that cannot be written, or a pattern that nobody expands."),
    "dumps-off":      Kind("note",    "Core dumps are switched off."),
    "profiling":      Kind("note",    "Profiling is on: it takes memory and time."),
    "collectives":    Kind("warning", "A setting of the network that collectives across instances need."),
}
# fmt: on


class EnvironmentFinding(NamedTuple):
    """One finding: its kind, the variable, why, where that is documented, what to do."""

    kind: str
    severity: str
    variable: str
    value: str
    message: str
    fix: str
    cite: str
    line: Annotated[int | None, LEFT_OUT, "line of the file that was read"] = None


def found(kind: str, variable: str, value: str, message: str, fix: str, cite: str) -> EnvironmentFinding:
    """Return a finding of a kind, with the severity that the kind has."""
    return EnvironmentFinding(kind, KINDS[kind].severity, variable, value, message, fix, cite)


def sarif_results(findings: list[EnvironmentFinding], file: str | None) -> list[dict[str, Any]]:
    """Return findings as results of a SARIF run; those of a file point at its lines."""
    from neurontools.check.exchange import uri_of  # deferred: start-up

    results = []
    for one in findings:
        place: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": one.variable, "kind": "variable"}]}
        if file is not None and one.line is not None:
            place["physicalLocation"] = {"artifactLocation": {"uri": uri_of(file)}, "region": {"startLine": one.line}}
        results.append({
            "ruleId": f"doctor/{one.kind}",
            "level": one.severity,
            "message": {"text": f"{one.message}. {one.fix[:1].upper()}{one.fix[1:]}."},
            "locations": [place],
            "partialFingerprints": {"finding/v1": f"{one.kind}:{one.variable}"},
        })  # fmt: skip
    return results
