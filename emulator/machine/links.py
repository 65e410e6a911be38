"""What links cost: rate and latency of each kind, for each instance type, with provenance.

Documentation gives bytes per second of a chip over all of its links; how that falls on one link and one direction is
inferred here.  Latencies of NeuronLink are the documented 1 to 2 us of a hop of Ring.
"""

from __future__ import annotations

from emulator.arch import Fact
from emulator.machine.facts import GB, documented, inferred, ours
from emulator.machine.instances import Instance

__all__ = ["figures_of"]

_LINKS_OF = {1: 2, 2: 4}  # axes inside a server: links of a chip there
_HOP_NS = 1_500.0
_ROUTE_NS = 200.0
_LOCAL_NS = 1_300.0
_ISSUE_NS = 50.0
_TRIGGER_NS = 1_000.0
_EFA_NS = 15_000.0


def figures_of(instance: Instance, lnc: int) -> dict[str, Fact]:
    """Return rates (bytes/s) and latencies (ns) of the links of an instance type, by name."""
    chip = instance.chip
    ranks = chip.cores.whole // lnc * instance.chips
    dma = 0.0 if chip.dma_bandwidth is None else chip.dma_bandwidth.value
    found = {
        "link_latency": documented(_HOP_NS, "ns per hop", "machine.md 3"),
        "route_latency": ours(_ROUTE_NS, "ns per further link", "machine.md 3"),
        "chip_latency": documented(_HOP_NS, "ns per hop", "machine.md 3"),
        "local_latency": documented(_LOCAL_NS, "ns, semaphore to start", "hardware.md 4.3"),
        "issue": ours(_ISSUE_NS, "ns of a CC-core per transfer", "machine.md 3"),
        "trigger": ours(_TRIGGER_NS, "ns from the word of an engine to the start of its CC-cores", "machine.md 3"),
        # Each rank moves what its own DMA engines move; two directions share them.
        "rank_rate": inferred(dma / chip.cores.whole * lnc, "bytes/s per rank", "machine.md 3"),
        "chip_rate": inferred(dma, "bytes/s per chip", "machine.md 3"),
        "hbm_rate": documented(chip.hbm_bandwidth.value / chip.hbm_stacks.whole, "bytes/s per stack", "machine.md 2"),
    }
    if instance.wiring in ("ring", "torus") and instance.neuronlink is not None:
        inside = min(len(instance.shape), 2)
        found["link_rate"] = inferred(
            instance.neuronlink.value / _LINKS_OF[inside] / 2, "bytes/s per link and direction", "machine.md 3"
        )
        if instance.neuronlink_between is not None:
            found["between_rate"] = inferred(
                instance.neuronlink_between.value / 4, "bytes/s per link and direction", "machine.md 3"
            )
    if instance.wiring == "switched":
        found["sled_rate"] = documented(256.0 * GB, "bytes/s per chip and direction", "machine.md 3")
        found["rack_rate"] = documented(320.0 * GB, "bytes/s per chip and direction", "machine.md 3")
    if instance.efa is not None:
        found["efa_rate"] = documented(instance.efa.value / ranks, "bytes/s per rank and direction", "machine.md 3")
        cite = "machine.md 3"
        latency = documented if instance.target == "trn2" else ours
        found["efa_latency"] = latency(_EFA_NS, "ns, HBM to HBM", cite)
    return found
