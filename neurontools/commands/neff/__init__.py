"""`neurontools neff`: a group of its own, as lazy as the root."""

from __future__ import annotations

from neurontools.commands.lazy import Entry, lazy_app

LAZY: dict[str, Entry] = {
    "info": Entry("neurontools.commands.neff.info", "Show what a NEFF is for: header, target, tensors, sizes."),
    "ls": Entry("neurontools.commands.neff.ls", "List the members of a NEFF's archive."),
    "vars": Entry("neurontools.commands.neff.vars", "List the variables of a subgraph."),
    "queues": Entry("neurontools.commands.neff.queues", "List the DMA queues of a subgraph and what they carry."),
    "verify": Entry("neurontools.commands.neff.verify", "Check that a NEFF is whole and consistent."),
    "unpack": Entry("neurontools.commands.neff.unpack", "Take a NEFF apart into a folder."),
    "pack": Entry("neurontools.commands.neff.pack", "Put an unpacked folder together into a NEFF."),
}

app = lazy_app(LAZY, "Look into a NEFF, check it, take it apart and put it together.")
