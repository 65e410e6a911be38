"""Findings for other programs: SARIF 2.1.0 for code hosts, JUnit XML for test reports."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

from neurontools.render.check import code, finding
from neurontools.render.run import source

__all__ = ["junit", "sarif"]

_LEVELS = {"error": "error", "warning": "warning", "note": "note"}

def sarif(findings: list[Any], suppressed: list[Any]) -> list[str]:
    """Return a SARIF log as lines."""
    from emulator.checks import KINDS
    from neurontools import __version__

    everything = [*findings, *suppressed]
    rules = {f"{f.tool}/{f.kind}": KINDS[f"{f.tool}:{f.kind}"].about for f in everything}
    accepted = {id(f) for f in suppressed}
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "neurontools",
                        "version": __version__,
                        "rules": [{"id": name, "shortDescription": {"text": text}} for name, text in rules.items()],
                    }
                },
                "results": [_result(f, id(f) in accepted) for f in everything],
            }
        ],
    }
    return json.dumps(document, indent=2, default=str).splitlines()


def _result(item: Any, accepted: bool) -> dict[str, Any]:
    others = [
        {**_location(one), "id": number, "message": {"text": _side(one)}} for number, one in enumerate(item.others, 1)
    ]
    return {
        "ruleId": f"{item.tool}/{item.kind}",
        "level": _LEVELS[item.severity],
        "message": {"text": item.message + (f". {item.hint[0].upper()}{item.hint[1:]}." if item.hint else "")},
        "locations": [_location(item.site)],
        "relatedLocations": others,
        "partialFingerprints": {"finding/v1": item.id},
        "properties": finding(item),
        **({"suppressions": [{"kind": "external"}]} if accepted else {}),
    }


def _location(site: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": f"nc{site.core}/{site.owner}/{site.pc}", "kind": "instruction"}]
    }
    place = source(site.source)
    if place is not None:
        region = {"startLine": place["line"]} if place["line"] else {}
        text = code(site)
        if text and region:
            region["snippet"] = {"text": text}
        found["physicalLocation"] = {"artifactLocation": {"uri": place["file"]}, "region": region or {"startLine": 1}}
    return found


def _side(site: Any) -> str:
    return f"{site.engine} {site.access} here: {site.text}".strip()


def junit(title: str, tools: tuple[str, ...], findings: list[Any], suppressed: list[Any]) -> list[str]:
    """Return a JUnit report as lines: a suite per tool, a failed case per finding, else one that passed."""
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
    ElementTree.indent(root)
    text = ElementTree.tostring(root, "unicode", xml_declaration=True)
    return text.splitlines()
