"""`neurontools neff`: a group of its own, as lazy as the root."""

from __future__ import annotations

from neurontools.commands.lazy import Entry, lazy_app

LAZY: dict[str, Entry] = {
    "info": Entry("neurontools.commands.neff.info", "Show what a NEFF is for: header, target, tensors, sizes."),
    "ls": Entry("neurontools.commands.neff.ls", "List the members of a NEFF's archive."),
    "tensors": Entry("neurontools.commands.neff.tensors", "List the tensors of a NEFF."),
    "vars": Entry("neurontools.commands.neff.vars", "List the variables of a subgraph."),
    "queues": Entry("neurontools.commands.neff.queues", "List the DMA queues of a subgraph and what they carry."),
    "dma": Entry("neurontools.commands.neff.dma", "List the transfers of a subgraph."),
    "graph": Entry("neurontools.commands.neff.graph", "Show the node graph of a NEFF."),
    "features": Entry("neurontools.commands.neff.features", "List what a NEFF asks of the runtime."),
    "stats": Entry("neurontools.commands.neff.stats", "Count instructions, waits, transfers and bytes."),
    "diff": Entry("neurontools.commands.neff.diff", "Compare two NEFFs."),
    "where": Entry(
        "neurontools.commands.neff.where", "Find the instructions of a source line, and where they come from."
    ),
    "acts": Entry("neurontools.commands.neff.acts", "Show the activation functions of a NEFF and how exact they are."),
    "load-check": Entry("neurontools.commands.neff.load_check", "Predict whether the Neuron runtime loads a NEFF."),
    "survey": Entry("neurontools.commands.neff.survey", "Report how much of many NEFFs is understood."),
    "verify": Entry("neurontools.commands.neff.verify", "Check that a NEFF is whole and consistent."),
    "unpack": Entry("neurontools.commands.neff.unpack", "Take a NEFF apart into a folder."),
    "pack": Entry("neurontools.commands.neff.pack", "Put an unpacked folder together into a NEFF."),
}

app = lazy_app(LAZY, "Look into a NEFF, check it, take it apart and put it together.")
