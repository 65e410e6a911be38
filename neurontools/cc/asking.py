"""Options that the `cc` commands share, and the requests that they make of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formats.errors import FormatError, NotFoundError, UnsupportedError
from formats.named_tuple import NamedTuple
from neurontools.cc.variable_sizes import VARIABLE, with_counts

if TYPE_CHECKING:
    from emulator.machine.collectives.choose import Choice, Thresholds
    from emulator.machine.collectives.plan import Operation, Request
    from emulator.machine.machine import Machine

__all__ = [
    "Algo", "Asked", "DataType", "GroupsFile", "InstanceOption", "LncOption", "Nodes", "OperationName", "Pairs",
    "Ranks", "Reduce", "Size", "ThresholdsFile", "ask", "byte_count", "dtype_of", "operation_of", "read_groups",
    "request", "type_name",
]  # fmt: skip

_OPERATIONS = {
    "allr": "allreduce", "all_reduce": "allreduce", "allreduce": "allreduce", "allg": "allgather",
    "all_gather": "allgather", "allgather": "allgather", "redsct": "reducescatter",
    "reduce_scatter": "reducescatter", "reducescatter": "reducescatter", "alltoall": "alltoall",
    "all_to_all": "alltoall", "permute": "permute", "sendrecv": "sendrecv", "allgv": "allgather",
    "all_gatherv": "allgather", "alltoallv": "alltoall", "redsctv": "reducescatter",
    "reduce_scatterv": "reducescatter",
}  # fmt: skip
_DTYPES = {
    "uint8": "uint8", "int8": "int8", "fp8": "float8_e4m3", "fp8e4": "float8_e4m3", "uint16": "uint16",
    "int16": "int16", "fp16": "float16", "bf16": "bfloat16", "uint32": "uint32", "int32": "int32", "fp32": "float32",
}  # fmt: skip
_UNITS = {"": 1, "b": 1, "k": 10, "kb": 10, "kib": 10, "m": 20, "mb": 20, "mib": 20, "g": 30, "gb": 30, "gib": 30}
_MAX_FILE = 16 << 20

OperationName = Annotated[
    str,
    typer.Argument(metavar="OP", help="allr, allg, redsct, alltoall, permute, sendrecv, or the V forms allgv, redsctv "
                   "and alltoallv, or their long names.", show_default=False),
]  # fmt: skip
Ranks = Annotated[
    int | None,
    typer.Option("--ranks", "-r", "--nworkers", metavar="N", min=1,
                 help="Ranks in all, as many on each node; all of the machine by default.", show_default=False),
]  # fmt: skip
Size = Annotated[
    int,
    typer.Option("--size", metavar="BYTES", parser=lambda text: byte_count(text), help="Bytes, such as 64kb, 1MiB."),
]
InstanceOption = Annotated[str, typer.Option("--instance", metavar="TYPE", help="Instance type.")]
Nodes = Annotated[int, typer.Option("--nodes", "-N", "--nnodes", metavar="N", min=1, help="Instances joined by EFA.")]
LncOption = Annotated[
    int | None,
    typer.Option("--lnc", metavar="N", min=1, max=2, help="Physical cores a rank has; the chip's largest by default."),
]
Algo = Annotated[
    str,
    typer.Option("--algo", metavar="NAME", help="auto, ring, mesh, rdh, kangaring, single-step-mesh, flat-ring, or "
                 "hier:INNER+OUTER (hier alone chooses both)."),
]  # fmt: skip
DataType = Annotated[str, typer.Option("--dtype", "-d", "--datatype", metavar="TYPE", help="uint8 ... bf16, fp32.")]
Reduce = Annotated[str, typer.Option("--reduce", metavar="OP", help="add, min or max.")]
GroupsFile = Annotated[
    Path | None,
    typer.Option("--groups", "--custom-replica-groups", metavar="FILE",
                 help='JSON: {"replica_groups": [[[0, 1], ...]]}.', show_default=False),
]  # fmt: skip
Pairs = Annotated[
    Path | None,
    typer.Option("--pairs", "--custom-src-target-pairs", metavar="FILE",
                 help='JSON: {"src_target_pairs": [[[0, 1], ...]]}.', show_default=False),
]  # fmt: skip
ThresholdsFile = Annotated[
    Path | None,
    typer.Option("--thresholds", metavar="FILE", help="TOML with mesh, rdh, inter_mesh, inter_rdh: bytes up to which "
                 "each is taken.", show_default=False),
]  # fmt: skip


class Asked(NamedTuple):
    """A request for every replica group, and how its algorithm was chosen."""

    machine: Machine
    requests: tuple[Request, ...]
    choice: Choice
    dtype: Any
    forced: bool


def byte_count(text: str) -> int:
    """Return bytes of a text such as 8, 64kb, 1MiB; units are powers of 1024, as nccom-test takes them."""
    if isinstance(text, int):
        return text
    found = re.fullmatch(r"(\d{1,15})\s*([a-z]*)", text.strip().lower(), re.ASCII)
    if found is None or found[2] not in _UNITS:
        raise typer.BadParameter(f"{text!r} is no number of bytes such as 8, 64kb or 1MiB")
    unit = _UNITS[found[2]]
    size = int(found[1]) * (1 << unit if unit > 1 else 1)
    if size > 1 << 40:
        raise typer.BadParameter(f"{text!r} is more than 1 TiB")
    return size


def operation_of(name: str) -> Operation:
    """Return an operation by one of its names."""
    found = _OPERATIONS.get(name.strip().lower())
    if found is None:
        raise NotFoundError(f"no collective operation {name[:40]!r}; there are {', '.join(_OPERATIONS)}")
    return found  # type: ignore[return-value]


def dtype_of(name: str) -> Any:
    """Return the NumPy type that nccom-test calls by a name."""
    import ml_dtypes
    import numpy as np

    wanted = _DTYPES.get(name.strip().lower(), name.strip().lower())
    if wanted not in _DTYPES.values():
        raise NotFoundError(f"no data type {name[:40]!r}; there are {', '.join(_DTYPES)}")
    return np.dtype(getattr(ml_dtypes, wanted, None) or wanted)


def type_name(dtype: Any) -> str:
    """Return what nccom-test calls a NumPy type."""
    return next(name for name, numpy in _DTYPES.items() if numpy == str(dtype))


def _json(path: Path, key: str) -> Any:
    data = path.read_bytes()[: _MAX_FILE + 1]
    if len(data) > _MAX_FILE:
        raise FormatError("file too large", path=str(path), expected=f"at most {_MAX_FILE:,} bytes")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"no JSON: {error}"[:200], path=str(path)) from None
    if not isinstance(found, dict) or key not in found:
        raise FormatError("no such key", path=str(path), field=key, expected=f'{{"{key}": ...}}')
    return found[key]


def read_groups(path: Path, key: str = "replica_groups") -> list[list[list[int]]]:
    """Return what nccom-test's JSON files hold: lists of lists of ranks, one outer list for each operation."""
    found = _json(path, key)
    good = isinstance(found, list) and all(
        isinstance(one, list)
        and all(isinstance(ranks, list) and all(type(rank) is int for rank in ranks) for ranks in one)
        for one in found
    )
    if not good:
        raise FormatError("not of this shape", path=str(path), field=key, expected="[[[0, 1], ...], ...]")
    return found  # type: ignore[no-any-return]


def _ranks(machine: Machine, ranks: int | None) -> list[list[int]]:
    wanted = machine.ranks if ranks is None else ranks
    each, left = divmod(wanted, machine.nodes)
    if left or each > machine.ranks_per_node or not each:
        raise FormatError("number of ranks", expected=f"a multiple of {machine.nodes} nodes, at most {machine.ranks}",
                          got=wanted)  # fmt: skip
    return [[node * machine.ranks_per_node + at for node in range(machine.nodes) for at in range(each)]]


def _thresholds(path: Path | None) -> Thresholds:
    from emulator.machine.collectives.choose import DEFAULTS, Thresholds  # deferred: start-up

    if path is None:
        return DEFAULTS
    import tomllib  # deferred: start-up

    try:
        found = tomllib.loads(path.read_bytes()[:_MAX_FILE].decode())
    except ValueError as error:
        raise FormatError(f"no TOML: {error}"[:200], path=str(path)) from None
    for key, value in found.items():
        if key not in Thresholds._fields or type(value) is not int or value < 0:
            raise FormatError("no threshold", path=str(path), field=key,
                              expected=f"{', '.join(Thresholds._fields)} with whole bytes")  # fmt: skip
    return DEFAULTS._replace(**found)


def ask(
    operation: str, size: int, *, instance: str, nodes: int = 1, lnc: int | None = None, ranks: int | None = None,
    algo: str = "auto", dtype: str = "uint8", reduce: str = "add", groups: Path | None = None,
    pairs: Path | None = None, thresholds: Path | None = None, metadata: Path | None = None,
) -> Asked:  # fmt: skip
    """Return the requests of a command line; errors say what is not legal."""
    from emulator.machine.collectives.group import group_findings  # deferred: start-up
    from emulator.machine.machine import Machine  # deferred: start-up

    machine, what, kind = Machine(instance, nodes=nodes, lnc=lnc), operation_of(operation), dtype_of(dtype)
    lists = _ranks(machine, ranks) if groups is None else (read_groups(groups) or [[]])[0]
    wrong = group_findings(machine, lists)
    if wrong:
        raise UnsupportedError(f"replica groups: {wrong[0]}" + (f", and {len(wrong) - 1} more" if wrong[1:] else ""))
    every: list[list[int]] = []
    if pairs is not None:
        every = (read_groups(pairs, "src_target_pairs") or [[]])[0]
        if any(len(pair) != 2 for pair in every):
            raise FormatError("no pair", path=str(pairs), field="src_target_pairs", expected="[[source, target], ...]")
        if what not in ("permute", "sendrecv"):
            raise UnsupportedError(f"pairs for {operation}: they belong to permute and sendrecv")
        lost = [pair for pair in every if not any(set(pair) <= set(group) for group in lists)]
        if lost:
            raise FormatError("pair", path=str(pairs), field="src_target_pairs", expected="ranks of one group",
                              got=lost[0])  # fmt: skip
    found = []
    choice: Choice | None = None
    forced, variable = algo != "auto", operation.strip().lower() in VARIABLE
    if metadata is not None and not variable:
        raise UnsupportedError(
            f"metadata of variable sizes for {operation}: it belongs to {', '.join(sorted(VARIABLE))}"
        )
    counts = None if metadata is None else _json(metadata, "metadata")
    for group in lists:
        one, choice = request(machine, what, group, size, kind, algo, reduce, every, _thresholds(thresholds))
        found.append(one if metadata is None else with_counts(one, counts, metadata))
    if choice is None:
        raise FormatError("replica groups", expected="at least one", got="none")
    return Asked(machine, tuple(found), choice, kind, forced)


def request(
    machine: Machine, what: Operation, ranks: Sequence[int], size: int, kind: Any, algo: str, reduce: str,
    pairs: Sequence[Sequence[int]], thresholds: Thresholds,
) -> tuple[Request, Choice]:  # fmt: skip
    """Return the request for one group, and the choice that was made for it."""
    from emulator.machine.collectives.algorithms import ALGORITHMS, SIMPLE, Algorithm  # deferred: start-up
    from emulator.machine.collectives.choose import choose  # deferred: start-up
    from emulator.machine.collectives.group import Group  # deferred: start-up
    from emulator.machine.collectives.plan import Request  # deferred: start-up

    group, item = Group(machine, ranks), kind.itemsize
    elements = max(-(-size // item), 1 if size else 0)
    if what == "alltoall":
        elements = -(-elements // group.size) * group.size
    choice = choose(what, group, elements * item, thresholds)
    if algo != "auto":
        name, _, levels = algo.partition(":")
        inner, _, outer = levels.partition("+")
        names: dict[str, Algorithm] = {one: one for one in ALGORITHMS}
        if name not in names or not {inner, outer} - {""} <= set(SIMPLE):
            raise NotFoundError(f"no algorithm {algo[:60]!r}; there are {', '.join(ALGORITHMS)}, "
                                f"hier:INNER+OUTER of {', '.join(SIMPLE)}")  # fmt: skip
        choice = choice._replace(
            algorithm=names[name],
            inner=names[inner] if inner else choice.inner,
            outer=names[outer] if outer else choice.outer,
            rule="as asked for",
        )
    listed = tuple((a, b) for a, b in pairs if a in group.ranks and b in group.ranks)
    if what in ("permute", "sendrecv") and not pairs:
        order = group.orders[0] if what == "permute" else (0, min(1, group.size - 1))
        around = [group.ranks[at] for at in order]
        listed = tuple(zip(around, (*around[1:], around[0]), strict=True))[: None if what == "permute" else 1]
    return Request(what, group, elements, choice.algorithm, choice.inner, choice.outer, reduce, pairs=listed), choice
