"""Findings for other programs: SARIF 2.1.0 for code hosts, JUnit XML for test reports."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree import ElementTree

from neurontools.check.rows import FindingRow, SiteRow, finding_row
from neurontools.command.errors_to_exit import Failure
from neurontools.command.exits import ExitStatus
from neurontools.command.results import plain
from neurontools.version import __version__

if TYPE_CHECKING:
    from emulator.checks import Finding

__all__ = ["junit", "refused", "sarif", "sarif_log", "uri_of"]


def sarif(findings: Sequence[Finding], suppressed: Sequence[Finding], exit_code: int,
          warnings: Sequence[str] = (), *, failed: bool = False) -> Iterator[str]:  # fmt: skip
    """Yield a SARIF log as lines; `warnings` become notifications of the run, errors where it `failed`.

    Where one result says that it is suppressed, the others say that they are not (SARIF 2.1.0, 3.27.23).
    """
    from emulator.checks import KINDS  # deferred: start-up

    rows = [(finding_row(one), accepted) for group, accepted in ((findings, False), (suppressed, True))
            for one in group]  # fmt: skip
    rules = {_rule(row): KINDS[f"{row.tool}:{row.kind}"].about for row, _ in rows}
    seen: Counter[str] = Counter()
    results = []
    for row, accepted in rows:
        print_of = _fingerprint(row)
        seen[print_of] += 1
        results.append(_result(row, f"{print_of}:{seen[print_of]}"))
        if suppressed:
            results[-1]["suppressions"] = [{"kind": "external"}] if accepted else []
    level = "error" if failed else "warning"
    yield from sarif_log(rules, results, exit_code, [(level, text) for text in warnings])


def refused(form: str, title: str, failure: Failure) -> Iterator[str]:
    """Yield the document, in SARIF or JUnit, that says that a file was not checked at all, and why."""
    if form == "sarif":
        yield from sarif_log({}, [], int(failure.status), [("error", failure.message)])
        return
    root = ElementTree.Element("testsuites", name="neurontools check")
    suite = ElementTree.SubElement(root, "testsuite", name="check", tests="1", failures="0", errors="1", skipped="0")
    case = ElementTree.SubElement(suite, "testcase", classname="check", name=title)
    ElementTree.SubElement(case, "error", type=failure.kind, message=failure.message)
    yield from _xml(root)


def sarif_log(rules: dict[str, str], results: list[dict[str, Any]], exit_code: int,
              notifications: list[tuple[str, str]]) -> Iterator[str]:  # fmt: skip
    """Yield a SARIF log of one run as lines: rules by id with their descriptions, results, (level, text) of notes."""
    driver = {"name": "neurontools", "version": __version__,
              "rules": [{"id": name, "shortDescription": {"text": text}} for name, text in rules.items()]}  # fmt: skip
    invocation = {
        # A program that is wrong is what the tool is there to find; a run cut short is a run that failed.
        "executionSuccessful": exit_code != ExitStatus.INTERRUPTED and all(one != "error" for one, _ in notifications),
        "exitCode": exit_code,
        "toolExecutionNotifications": [{"level": level, "message": {"text": text}} for level, text in notifications],
    }
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "invocations": [invocation], "results": results}],
    }
    yield from json.dumps(document, indent=2, default=str).splitlines()


def _rule(row: FindingRow) -> str:
    return f"{row.tool}/{row.kind}"


def _result(row: FindingRow, fingerprint: str) -> dict[str, Any]:
    others = [{**_location(one), "id": number, "message": {"text": _side(one)}}
              for number, one in enumerate(row.others, 1)]  # fmt: skip
    return {
        "ruleId": _rule(row),
        "level": row.severity,
        "message": {"text": row.message + (f". {row.hint[0].upper()}{row.hint[1:]}." if row.hint else "")},
        "locations": [_location(row.site)],
        "relatedLocations": others,
        "partialFingerprints": {"finding/v2": fingerprint},
        "properties": plain(row),
    }


def _fingerprint(row: FindingRow) -> str:
    """Return what stays the same when lines are added elsewhere: no pc, no line number, no address of a program."""
    parts = [_rule(row), row.tensor or ""]
    for side in (row.site, *row.others[:1]):
        file = "" if side.source is None else Path(side.source.file).name
        what = side.code or (side.instruction or "").split(" ", 1)[0]
        parts += [side.owner, side.access or "", side.operand or "", file, " ".join(what.split())]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _location(site: SiteRow) -> dict[str, Any]:
    place = f"nc{site.core}/{site.owner}" + ("" if site.pc is None else f"/{site.pc}")
    found: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": place, "kind": "instruction"}]}
    if site.source is not None:
        region: dict[str, Any] = {"startLine": site.source.line or 1}
        if site.code and site.source.line:
            region["snippet"] = {"text": site.code}
        found["physicalLocation"] = {"artifactLocation": {"uri": uri_of(site.source.file)}, "region": region}
    return found


def uri_of(file: str) -> str:
    """Return the URI of a file: relative to the folder of the run where its path is."""
    path = Path(file)
    # Bytes, since a name need not be UTF-8.
    return path.as_uri() if path.is_absolute() else quote(os.fsencode(path.as_posix()))


def _side(site: SiteRow) -> str:
    return f"{site.engine} {site.access or ''} here: {site.instruction or ''}".strip()


def junit(title: str, tools: tuple[str, ...], findings: Sequence[Finding],
          suppressed: Sequence[Finding]) -> Iterator[str]:  # fmt: skip
    """Yield a JUnit report as lines: a suite per tool, a failed case per finding, else one that passed."""
    root = ElementTree.Element("testsuites", name="neurontools check")
    for tool in tools:
        mine = [f for f in findings if f.tool == tool]
        accepted = [f for f in suppressed if f.tool == tool]
        failed = [f for f in mine if f.serious]
        total = len(mine) + len(accepted) or 1
        suite = ElementTree.SubElement(
            root, "testsuite", name=tool, tests=str(total), failures=str(len(failed)), errors="0",
            skipped=str(total - len(failed) if mine or accepted else 0),
        )  # fmt: skip
        if not mine and not accepted:
            ElementTree.SubElement(suite, "testcase", classname=tool, name=title)
        for item in (*mine, *accepted):
            case = ElementTree.SubElement(suite, "testcase", classname=f"{tool}.{item.kind}", name=item.id)
            if item in failed:
                inner = ElementTree.SubElement(case, "failure", type=item.kind, message=item.message)
                inner.text = item.text()
            else:
                ElementTree.SubElement(case, "skipped", message="note" if item in mine else "suppressed")
    yield from _xml(root)


def _xml(root: ElementTree.Element) -> Iterator[str]:
    ElementTree.indent(root)
    yield from ElementTree.tostring(root, "unicode", xml_declaration=True).splitlines()
