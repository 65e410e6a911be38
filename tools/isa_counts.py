"""On how many words of public files the instruction set was checked: docs/isa-counts.json.

`python -m tools.isa_counts FOLDER...` counts again over folders of NEFFs, with the captures (.ntff) and exported
profiles (`*_profile_full.json`) that lie beside them. The files themselves are no part of the project.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from formats import isa
from formats.isa import Instruction
from formats.neff import open_neff

__all__ = ["PATH", "Pair", "compared_texts", "counts", "load", "main", "plain_text"]

PATH = Path(__file__).resolve().parents[1] / "docs" / "isa-counts.json"
# The profiler's names of engines; matrix words of the Tensor engine have a row of their own.
LABELS = {"Tensor": "PE", "TensorMatrix": "PE", "Scalar": "Activation", "GpSimd": "Pool", "Vector": "DVE", "Sync": "SP"}
Pair = tuple[str, Instruction, str, str]


def plain_text(text: str) -> str:
    """Return a profile's operand text without labels, dollar signs and double blanks (isa.md 12)."""
    text = re.sub(r" \((?:Tensor|Vector|Scalar|Sync|GpSimd|q[^)]*)\)", "", text)
    return " ".join(text.replace("$S[", "S[").replace("$E[", "E[").split())


def compared_texts(path: Path) -> Iterator[Pair]:
    """Yield (stage, word, name, operands) for every word of a NEFF, and of its capture, whose text a profile prints.

    `stage` is compiler or loaded; operands are as `plain_text` gives them. Each word comes once.
    """
    profiles = sorted(path.parent.glob(f"json_reports/{path.stem}*_profile_full.json"))
    if not profiles:
        return
    neff, seen = open_neff(path), set()
    graphs = {graph.name: graph for graph in neff.subgraphs}
    captures = sorted(path.parent.glob(f"{path.stem}*.ntff"))
    capture = _open_capture(captures[0]) if captures else None
    for row in json.loads(profiles[0].read_text())["instruction"]:
        engine, graph = LABELS.get(row["label"]), graphs.get(row["subgraph"])
        if engine is None or graph is None:
            continue
        key = graph.name, engine, row["pc"]
        if key in seen:
            continue
        seen.add(key)
        if "compiler_pc" in row:
            name = row.get("compiler_opcode", row["opcode"])
            text = row.get("compiler_operands", row["operands"])
            yield "compiler", graph.streams[engine][row["compiler_pc"]], name, plain_text(text)
        if capture is not None:
            core = capture.cores[graph.index].core
            yield "loaded", capture.buffer(core, engine).words[row["pc"]], row["opcode"], plain_text(row["operands"])


def _open_capture(path: Path) -> Any:
    from formats.ntff import open_ntff

    return open_ntff(path)


def counts(folders: list[Path]) -> dict[str, Any]:
    """Return what is known of how many words: per class the words, and per field those that set it and its values."""
    words: Counter[tuple[type[Instruction], bytes]] = Counter()
    texts: Counter[tuple[str, str]] = Counter()
    loaded: Counter[tuple[type[Instruction], bytes]] = Counter()
    files = []
    for path in sorted(path for folder in folders for path in folder.rglob("*.neff")):
        neff = open_neff(path)
        total = 0
        for graph in neff.subgraphs:
            for stream in graph.streams.values():
                total += len(stream)
                words.update((type(word), word.raw) for word in stream)
        for stage, word, name, text in compared_texts(path):
            if (word.name, plain_text(word.operands)) == (name, text):
                texts[stage, word.name] += 1
        for capture in sorted(path.parent.glob(f"{path.stem}*.ntff")):
            opened = _open_capture(capture)
            for core in opened.cores:
                for buffer in opened.buffers(core.core):
                    loaded.update((type(word), word.raw) for word in buffer.words)
        files.append({"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "name": path.name,
                      "target": neff.target.name, "compiler": neff.info.tool_version if neff.info else None,
                      "words": total})  # fmt: skip
    return {
        "about": "Words of public files on which the declarations of formats.isa were checked; renewed by "
        "`python -m tools.isa_counts FOLDER...`",
        "files": files,
        "classes": {
            cls.NAME: row for cls in isa.CLASSES if (row := _class(cls, words, texts, loaded))["words"] or row["loaded"]
        },
        "unknown": sum(number for (cls, _), number in words.items() if cls is isa.Unknown),
    }


def _class(
    cls: type[Instruction], words: Counter[tuple[type[Instruction], bytes]], texts: Counter[tuple[str, str]],
    loaded: Counter[tuple[type[Instruction], bytes]],
) -> dict[str, Any]:  # fmt: skip
    mine = [(raw, number) for (kind, raw), number in words.items() if kind is cls]
    theirs = [(raw, number) for (kind, raw), number in loaded.items() if kind is cls]
    fields = {}
    for name, field in cls.FIELDS.items():
        values: Counter[int] = Counter()
        for raw, number in mine or theirs:  # words that only the loader writes are counted in captures
            values[field.peek(raw)] += number
        usual = field.peek(cls.defaults())
        fields[name] = {"set": sum(values.values()) - values[usual], "values": len(values - Counter({usual: 0}))}
    return {"words": sum(number for _, number in mine), "loaded": sum(number for _, number in theirs),
            "text": texts["compiler", cls.NAME], "loaded_text": texts["loaded", cls.NAME],
            "fields": fields if mine or theirs else {}}  # fmt: skip


def load() -> dict[str, Any]:
    """Return the counts that are kept with the documentation."""
    found: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return found


def main(arguments: list[str]) -> int:
    """Count over folders and write the data file."""
    if not arguments:
        print("usage: python -m tools.isa_counts FOLDER...", file=sys.stderr)
        return 2
    found = counts([Path(one) for one in arguments])
    PATH.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{PATH.name}: {sum(one['words'] for one in found['files']):,} words of {len(found['files'])} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
