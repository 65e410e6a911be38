"""Choose an algorithm: by documented size ranges, with a reason for every one that was not taken (collectives.md 6)."""

from __future__ import annotations

from emulator.machine.collectives.algorithms import ALGORITHMS, SIMPLE, Algorithm, illegal
from emulator.machine.collectives.group import Group
from formats.named_tuple import NamedTuple

__all__ = ["DEFAULTS", "Choice", "Rejected", "Thresholds", "choose", "single_step_limit"]

MB = 1_000_000
MIB = 1 << 20
_MESH_NODES = 16  # ranks between nodes up to which mesh is taken; ours


class Thresholds(NamedTuple):
    """Sizes in bytes below which an algorithm is taken; those between nodes are ours, nothing has been published."""

    mesh: int = 1 * MB
    rdh: int = 56 * MB
    inter_mesh: int = 1 * MIB
    inter_rdh: int = 64 * MIB


DEFAULTS = Thresholds()


class Rejected(NamedTuple):
    """An algorithm that was not taken."""

    algorithm: str
    reason: str
    legal: bool


class Choice(NamedTuple):
    """The algorithm, for a hierarchical one those of its two levels, the rule, and what was not taken."""

    algorithm: Algorithm
    inner: Algorithm
    outer: Algorithm
    rule: str
    rejected: tuple[Rejected, ...]


def single_step_limit(ranks: int, rate: float, hop_ns: float) -> float:
    """Return the bytes of an AllReduce up to which one step beats two: its extra (N-1)(N-2)C bytes take one hop."""
    if ranks < 3:
        return float("inf")
    chunk = rate * hop_ns * 1e-9 / ((ranks - 1) * (ranks - 2))
    return chunk * ranks


def choose(operation: str, group: Group, size: int, thresholds: Thresholds = DEFAULTS) -> Choice:
    """Return the algorithm for an operation on so many bytes over a group."""
    if operation not in ("allgather", "reducescatter", "allreduce"):
        rule = "direct writes: the only way known of these operations (collectives.md 12)"
        return Choice("mesh", "mesh", "mesh", rule, ())
    inner: Algorithm = "mesh"
    outer: Algorithm = "mesh"
    if group.nodes > 1 and group.size > group.nodes and not illegal("hier", group, operation):
        inside = group.part(next(iter(group.by_node.values())))
        between = group.part([ranks[0] for ranks in group.by_node.values()])
        inner, one = _inside(operation, inside, size, thresholds)
        # Inside first: each of the ranks of a node then carries its share alone between nodes.
        outer, other = _between(operation, between, size // inside.size, thresholds, single=False)
        taken: Algorithm = "hier"
        rule = f"several ranks on each of {group.nodes} nodes: {inner} inside ({one}), {outer} between ({other})"
    elif group.nodes > 1:
        taken, rule = _between(operation, group, size, thresholds, single=True)
    else:
        taken, rule = _inside(operation, group, size, thresholds)
    rejected = []
    for name in ALGORITHMS:
        if name != taken:
            reason = illegal(name, group, operation)
            rejected.append(Rejected(name, reason or _why_not(name, taken, group, thresholds), not reason))
    return Choice(taken, inner, outer, rule, tuple(rejected))


def _inside(operation: str, group: Group, size: int, limits: Thresholds) -> tuple[Algorithm, str]:
    """Return the algorithm inside an instance and the rule that gave it."""
    legal = {name for name in SIMPLE if not illegal(name, group, operation)}
    if size <= limits.mesh and "mesh" in legal:
        return "mesh", f"up to {limits.mesh:,} bytes"
    if size <= limits.rdh and "rdh" in legal:
        near = "; 1 MiB lies on the boundary with mesh" if size <= limits.mesh * 1.1 else ""
        return "rdh", f"{limits.mesh:,} to {limits.rdh:,} bytes{near}"
    if "kangaring" in legal:
        return "kangaring", f"more than {limits.rdh if 'rdh' in legal else limits.mesh:,} bytes"
    return "ring", "the fallback"


def _between(operation: str, group: Group, size: int, limits: Thresholds, *, single: bool) -> tuple[Algorithm, str]:
    """Return the algorithm between nodes, one rank each, and the rule that gave it."""
    figures = group.machine.figures
    limit = single_step_limit(group.size, figures["efa_rate"].value, figures["efa_latency"].value)
    if single and operation == "allreduce" and size <= limit:
        if group.size == 2:
            return "single-step-mesh", "two ranks: one step has no extra bytes"
        return "single-step-mesh", f"its extra bytes take less than one hop up to {limit:,.0f} bytes"
    if size <= limits.inter_mesh and group.size <= _MESH_NODES:
        return "mesh", f"at most {_MESH_NODES} nodes and {limits.inter_mesh:,} bytes (ours)"
    if not illegal("rdh", group, operation) and size <= limits.inter_rdh:
        return "rdh", f"a power of two, up to {limits.inter_rdh:,} bytes (ours)"
    return "ring", f"more than {limits.inter_rdh:,} bytes, or no power of two (ours)"


def _why_not(name: Algorithm, taken: Algorithm, group: Group, limits: Thresholds) -> str:
    """Return why an algorithm that would be legal was not taken."""
    inside = group.nodes == 1
    mesh, rdh = (limits.mesh, limits.rdh) if inside else (limits.inter_mesh, limits.inter_rdh)
    if name == "mesh":
        if taken == "single-step-mesh":
            return "a second step costs more than the bytes that it saves"
        return f"its writes oversubscribe links: taken up to {mesh:,} bytes" + (
            "" if inside else f", {_MESH_NODES} ranks"
        )
    if name == "rdh":
        return f"taken from {mesh:,} to {rdh:,} bytes"
    if name == "kangaring":
        return f"taken above {mesh if illegal('rdh', group, 'allreduce') else rdh:,} bytes"
    if name == "single-step-mesh":
        return "its traffic grows with the square of the ranks"
    if name == "flat-ring":
        return "enabled on Trn1 for large messages only"
    if name == "hier":
        return "one rank a node: there is nothing to do inside nodes"
    return f"a fallback: its latency grows with the {group.size} ranks"
