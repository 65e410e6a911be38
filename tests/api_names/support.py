"""What becomes of every entry of the NKI interface: `python -m tools nki-support` writes docs/nki-support.md.

Generations, engines and words come from tracing the samples, what is known of a word from its declaration, notes from
docs/fidelity.md, and property tests from the test files themselves.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from formats.errors import UnsupportedError
from formats.targets import resolve_target
from neurontools.builder.trace import ComputeOp, LoopOp, MatmulOp, Trace
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.tracer import Tracer, tracing
from tests.api_names.samples import SAMPLES, Call

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGETS = {"trn1": "gen2", "trn2": "gen3", "trn3": "gen4"}
_NAMES = {"PE": "Tensor", "Activation": "Scalar", "Pool": "GpSimd", "DVE": "Vector", "SP": "Sync"}
_ENOUGH = {"CASES", "LAUNCHES"}
"""Decorators of property tests that try 200 cases or more."""
_HEADING = "## Missing of NKI"


class Entry(NamedTuple):
    """One documented name: its module and kind (function, method, class or value)."""

    module: str
    name: str
    kind: str


class Row(NamedTuple):
    """What became of an entry: generations that take it, engines, words by name with how each is known, why not."""

    entry: Entry
    generations: tuple[str, ...]
    engines: tuple[str, ...]
    words: dict[str, str]
    refusal: str


@cache
def described() -> dict[str, Any]:
    """Return the documented modules."""
    modules: dict[str, Any] = json.loads((HERE / "names.json").read_text())["modules"]
    return modules


def entries() -> Iterator[Entry]:
    """Yield every documented entry once."""
    for module, what in described().items():
        yield from (Entry(module, name, "function") for name in what["functions"])
        for name, one in what["classes"].items():
            if name == "NkiTensor":
                members = {*one["methods"], *one["attributes"], *one["without_signature"]}
                yield from (Entry(f"{module}.{name}", member, "method") for member in sorted(members))
            elif not name.startswith("_"):
                yield Entry(module, name, "class")
        yield from (Entry(module, name, "value") for name in what["constants"])


def _run(call: Call, target: str) -> list[Trace]:
    """Trace a call on each core that it needs."""
    programs = getattr(call, "cores", 1)
    traces = []
    for program in range(programs):
        t = Tracer(resolve_target(target), program, (programs,) if programs > 1 else ())
        with tracing(t):
            call()
        traces.append(t.trace)
    return traces


def traces_of(entry: Entry, target: str) -> tuple[list[list[Trace]], str]:
    """Return the traces of the entry's samples that the target takes, and why the others were refused."""
    found, refusal = [], ""
    for call in SAMPLES[entry.module].get(entry.name, []):
        try:
            found.append(_run(call, target))
        except (NkiValidationError, UnsupportedError) as error:
            refusal = f"{type(error).__name__}: {error}"
    return found, refusal


def _known_as(op: Any) -> Iterator[tuple[str, str, str]]:
    """Yield engine, word and provenance of what an operation becomes."""
    if isinstance(op, ComputeOp):
        yield _NAMES[op.engine], op.instruction.NAME, op.instruction.PROVENANCE
    elif isinstance(op, MatmulOp):
        yield "Tensor", "MATMUL", "observed"
    elif isinstance(op, LoopOp):
        yield "all", "COMPARE_BRANCH", "observed"
    elif type(op).__name__.endswith("DmaOp") or type(op).__name__ == "DmaComputeOp":
        indirect = type(op).__name__ == "IndirectDmaOp"
        yield "DMA", "DMA_INDIRECT" if indirect else "DMA", "ours" if indirect else "observed"
    elif type(op).__name__ == "SendRecvOp":
        yield "DMA", "SEND_RECEIVE", "ours"
    elif type(op).__name__ == "BarrierOp":
        yield "GpSimd", "CORE_BARRIER", "ours"


@cache
def rows() -> tuple[Row, ...]:
    """Return a row for every documented entry."""
    result = []
    for entry in entries():
        generations, engines, words, refusal = [], set(), {}, ""
        if entry.name not in SAMPLES[entry.module] and entry.kind in ("class", "value"):
            generations = list(TARGETS.values())  # enumerations, and what stands in the place of an argument
        for target, generation in TARGETS.items():
            found, why = traces_of(entry, target)
            if found:
                generations.append(generation)
            elif why.startswith("UnsupportedError"):
                refusal = why
            for trace in (trace for group in found for trace in group):
                for op in trace.ops:
                    for engine, word, provenance in _known_as(op):
                        engines.add(engine)
                        words[word] = provenance
        result.append(Row(entry, tuple(generations), tuple(sorted(engines)), dict(sorted(words.items())), refusal))
    return tuple(result)


@cache
def exceptions() -> dict[str, str]:
    """Return the entries that docs/fidelity.md lists as missing, with the reason."""
    text = (ROOT / "docs" / "fidelity.md").read_text()
    if _HEADING not in text:
        return {}
    section = text.split(_HEADING)[1].split("\n## ")[0]
    return {match[1]: match[2] for match in re.finditer(r"^\| `([\w.]+)` \| (.+) \|$", section, re.MULTILINE)}


@cache
def property_tests() -> dict[str, list[str]]:
    """Return, for each name of nki.isa, the property tests of 200 cases or more that call it."""
    result: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests" / "nki").glob("test_*.py")):
        text = path.read_text()
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(one, ast.Name) and one.id in _ENOUGH for one in node.decorator_list
            ):
                body = ast.get_source_segment(text, node) or ""
                for name in set(re.findall(r"\bnisa\.(\w+)\(", body)):
                    result.setdefault(name, []).append(f"{path.stem}.{node.name}")
    return result


@cache
def _approximated() -> dict[str, str]:
    """Return the names in the first column of docs/fidelity.md's table of approximations, with the row's subject."""
    text = (ROOT / "docs" / "fidelity.md").read_text().split("## Approximated")[1].split("\n## ")[0]
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("| ") and "`" in line.split("|")[1]:
            for name in re.findall(r"`(\w+)`", line.split("|")[1]):
                found[name] = line.split("|")[1].strip()
    return found


_HEAD = """# What of NKI is there

Written by `python -m tools nki-support` from the documented interface (`tests/api_names/names.json`, {count} entries),
from tracing a call of each (`tests/api_names/samples.py`), and from the declarations of the words that come out. A test
holds it to the code.

* **generations**: those that take the entry; the others refuse it with a message, as documented. trn1 and inf2 are
  gen2, trn2 gen3, trn3 gen4.
* **word**: what the sample becomes in the NEFF. A helper of `nki.language` may become several, and other ones for other
  types and shapes.
* **how known**: the least certain of its words. *observed*: the encoding stands in public files; *ours*: an extension
  word, as its real encoding is not public. Either way the semantics are the documented ones.
* **property tests**: tests of 200 cases or more against NumPy, over types, access patterns, partition starts and
  generations.
* A star leads to the table of approximations in [fidelity.md](fidelity.md).

Not there at all: {missing}.
"""


def page() -> str:
    """Return docs/nki-support.md."""
    every = rows()
    missing = ", ".join(f"`{name}` ({reason})" for name, reason in exceptions().items()) or "nothing"
    parts = [_HEAD.format(count=len(every), missing=missing)]
    for module in dict.fromkeys(row.entry.module for row in every):
        isa = module == "nki.isa"
        parts.append(
            f"\n## {module}\n\n| entry | generations | engines | word | how known |"
            + (" property tests |\n" if isa else "\n")
            + "|---|---|---|---|---|"
            + ("---|\n" if isa else "\n")
        )
        parts += [_line(row, isa) for row in every if row.entry.module == module]
    return "".join(parts)


def _line(row: Row, isa: bool) -> str:
    name = row.entry.name
    generations = "all" if len(row.generations) == len(TARGETS) else ", ".join(row.generations) or "none"
    known = "ours" if "ours" in row.words.values() else "observed" if row.words else ""
    star = " *" if name in _approximated() else ""
    cells = [f"`{name}`{star}", generations, ", ".join(row.engines), ", ".join(row.words), known]
    if isa:
        cells.append(str(len(property_tests().get(name, []))) if row.words else "")
    return "| " + " | ".join(cells) + " |\n"


def files() -> dict[str, str]:
    """Return the page by its path."""
    return {"docs/nki-support.md": page()}
