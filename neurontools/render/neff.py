"""A NEFF as data for JSON and as lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.errors import FormatError, NotFoundError
from neurontools.render.table import bytes_text, count, table

if TYPE_CHECKING:
    from formats.neff import Neff, Subgraph

__all__ = [
    "ENGINES",
    "info",
    "info_lines",
    "percent",
    "pick_subgraph",
    "queue_lines",
    "queues",
    "tensor_text",
    "variable_lines",
    "variables",
]

# Of a file of an unknown compiler so many words are encoded again, which takes about a second.
_LOOKED_AT = 5000
ENGINES = ("PE", "Activation", "Pool", "DVE", "SP")


def pick_subgraph(neff: Neff, number: int) -> Subgraph:
    """Return a subgraph by number."""
    if number >= len(neff.subgraphs):
        raise NotFoundError(
            f"no subgraph {number}: the file has {count(len(neff.subgraphs), 'subgraph')}, numbered from 0"
        )
    return neff.subgraphs[number]


def info(neff: Neff) -> dict[str, Any]:
    """Return what `neff info` tells."""
    sizes = {member.name: member.size for member in neff.members}
    header = neff.header
    return {
        "header": {**{k: v for k, v in fields(header).items() if k != "pad"}, "features": list(header.features)},
        "compiler": neff.info.tool_version if neff.info is not None else None,
        "checked": checked(neff),
        "file_bytes": neff.size,
        "target": {"name": neff.target.name, "generation": neff.target.generation, "arch": neff.target.arch_code},
        "lnc": neff.lnc,
        "members": len(sizes),
        "bytes": sum(sizes.values()),
        "inputs": [tensor(t) for t in neff.inputs],
        "outputs": [tensor(t) for t in neff.outputs],
        "subgraphs": [
            {
                "name": graph.name,
                "dialect": graph.dialect,
                "words": {engine: sizes.get(_stream_member(graph, engine), 0) // 64 for engine in ENGINES},
                "variables": len(graph.variables),
                "queues": len(graph.queues),
            }
            for graph in neff.subgraphs
        ],
    }


def checked(neff: Neff) -> dict[str, Any]:
    """Return whether the decoder was checked against the file's compiler; if not, how much of this file it explains.

    `how` is checked, own (this toolkit wrote the file), or unchecked; only then are words looked
    at, about 5,000 at most.
    """
    from formats.neff.compilers import checked_compiler, is_own

    row: dict[str, Any] = {"how": "unchecked", "files": None, "cite": None, "words": None, "reencoded": None,
                           "sampled": False}  # fmt: skip
    known = checked_compiler(neff)
    if known is not None:
        return {**row, "how": "checked", "files": known.files, "cite": known.cite}
    if neff.info is not None and is_own(neff.info.tool_version):
        return {**row, "how": "own"}
    from formats.neff.coverage import coverage

    try:
        found = coverage(neff, _LOOKED_AT)
        total = sum(len(stream) for graph in neff.subgraphs for stream in graph.streams.values())
    except FormatError:  # a stream that cannot be read; what else the file says is still of use
        return row
    return {**row, "words": found.words, "reencoded": found.reencoded, "sampled": found.words < total}


def checked_text(data: dict[str, Any]) -> str:
    """Return what is known of a file's compiler as a phrase."""
    if data["how"] == "checked":
        return f"against {count(data['files'], 'public file')} of this version and target"
    if data["how"] == "own":
        return "written by neurontools"
    words, same = data["words"], data["reencoded"]
    if words is None:
        return "not against this version; its words cannot be read"
    share = f"{same:,} of {count(words, 'word')} ({percent(same, words)})" if words else "no words"
    return f"not against this version; {share}{' looked at' if data['sampled'] else ''} re-encode exactly"


def percent(part: int, whole: int) -> str:
    """Return a share with two digits, rounded down: nothing is called 100 % that is not."""
    hundredths = 10000 * part // whole
    return f"{hundredths // 100}.{hundredths % 100:02d} %"


def info_lines(name: str, data: dict[str, Any]) -> list[str]:
    """Return `neff info` for people."""
    header, target = data["header"], data["target"]
    rows = {
        "name": header["name"],
        "uuid": header["uuid"].hex(),
        "hash": header["hash"].rstrip(b"\0").hex(),
        "version": f"{header['neff_version_major']}.{header['neff_version_minor']}, package {header['pkg_version']}",
        "compiler": data["compiler"] or header["neff_build_version"],
        "checked": checked_text(data["checked"]),
        "features": ", ".join(header["features"]),
        "size": f"{data['file_bytes']:,} bytes",
        "members": f"{data['members']}, {bytes_text(data['bytes'])} unpacked",
    }
    lines = [f"{name}: NEFF for {target['name']} ({target['arch']}, {target['generation']}), LNC {data['lnc']}", ""]
    lines += [f"  {key.ljust(8)}  {value or '-'}" for key, value in rows.items()]
    for title in ("inputs", "outputs"):
        lines += [
            "",
            *table(
                [title, "type", "shape", "bytes"],
                [[t["name"], t["dtype"], _shape(t["shape"]), t["size"]] for t in data[title]],
            ),
        ]
    lines += [
        "",
        *table(
            ["subgraph", *ENGINES, "variables", "queues", "dialect"],
            [
                [g["name"], *(g["words"][e] for e in ENGINES), g["variables"], g["queues"], g["dialect"]]
                for g in data["subgraphs"]
            ],
        ),
    ]
    return lines


def tensor(item: Any) -> dict[str, Any]:
    """Return one input or output; `size` is its bytes, None where the element type is not one of the hardware's."""
    from math import prod

    from formats.dtypes import Dtype

    try:
        size = prod(item.shape) * Dtype.from_numpy_name(item.dtype).size
    except FormatError:
        size = None
    return {"name": item.name, "dtype": item.dtype, "shape": list(item.shape), "size": size}


def tensor_text(item: Any) -> str:
    """Return "x float16 [256, 128]"."""
    return f"{item.name} {item.dtype} {_shape(item.shape)}"


def variables(graph: Subgraph) -> list[dict[str, Any]]:
    """Return the variables of a subgraph in file order."""
    return [fields(variable) for variable in graph.variables.values()]


def variable_lines(items: list[dict[str, Any]]) -> list[str]:
    """Return `neff vars` for people."""
    rows = []
    for item in sorted(items, key=lambda item: item["var_id"]):
        extra = []
        if item.get("file_name"):
            extra.append(f"file {item['file_name']}")
        if item.get("backing_offset") is not None:
            extra.append(f"at scratch+0x{item['backing_offset']:x}")
        if item.get("entries"):
            extra.append("variables " + ", ".join(map(str, item["entries"])))
        rows.append(
            [item["var_id"], item["name"], item["kind"], item.get("size"), item.get("alignment"), "; ".join(extra)]
        )
    return table(["id", "name", "kind", "bytes", "align", "where"], rows)


def queues(graph: Subgraph) -> list[dict[str, Any]]:
    """Return the queues of a subgraph with the number of transfers each carries."""
    blocks: dict[str, int] = {}
    for queue, _ in graph.dma_blocks:
        blocks[queue] = blocks.get(queue, 0) + 1
    words = _direct_words(graph)
    return [
        {
            **fields(queue),
            "blocks": blocks.get(queue.name, 0),
            "words": words.get(queue.engine or "", 0) if queue.kind == "dynamic" else 0,
        }
        for queue in graph.queues.values()
    ]


def queue_lines(items: list[dict[str, Any]]) -> list[str]:
    """Return `neff queues` for people."""
    rows = [
        [q["name"], q["kind"], q["owner"], q["num_queues"], _span(q["semaphores"]), q["blocks"], q["words"]]
        for q in items
    ]
    return table(["queue", "kind", "owner", "rings", "semaphores", "blocks", "transfer words"], rows)


def fields(record: Any) -> dict[str, Any]:
    """Return the fields of a record, whichever kind of record it is."""
    if hasattr(record, "_asdict"):
        return dict(record._asdict())
    names = getattr(record, "__dataclass_fields__", None) or getattr(record, "__slots__", ())
    return {name: getattr(record, name) for name in names if not name.startswith("_")}


def _stream_member(graph: Subgraph, engine: str) -> str:
    name = graph.definition.engines[engine].instructions
    return graph.member(name) if name else ""


def _direct_words(graph: Subgraph) -> dict[str, int]:
    from formats.isa import PseudoDmaDirect2d

    return {engine: sum(isinstance(word, PseudoDmaDirect2d) for word in graph.streams[engine]) for engine in ENGINES}


def _span(numbers: Any) -> str | None:
    if not numbers:
        return None
    low, high = min(numbers), max(numbers)
    return f"{low}-{high}" if high - low + 1 == len(numbers) > 1 else ", ".join(map(str, numbers))


def _shape(shape: Any) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"
