"""`neurontools core`: core dumps, from the file alone."""

from __future__ import annotations

from neurontools.commands.lazy import Entry, lazy_app

LAZY: dict[str, Entry] = {
    "info": Entry("neurontools.commands.core.info", "Show what a core dump is of: chip, outcome, status, NEFF, size."),
    "why": Entry("neurontools.commands.core.why", "Say what went wrong: the fault, or who waits for whom."),
    "ls": Entry("neurontools.commands.core.ls", "List the parts of a core dump, or the dumps in a folder."),
    "engines": Entry("neurontools.commands.core.engines", "Show where every engine stood, and its registers."),
    "queues": Entry("neurontools.commands.core.queues", "List the DMA queues and the transfers not complete."),
    "semaphores": Entry("neurontools.commands.core.semaphores", "List semaphores and events and who waits for them."),
    "dma": Entry("neurontools.commands.core.dma", "List the rings of the DMA engines and their descriptors."),
    "memory": Entry("neurontools.commands.core.memory", "List the memories of a core dump, or print what is in them."),
    "disasm": Entry("neurontools.commands.core.disasm", "List the instructions around where an engine stood."),
    "verify": Entry("neurontools.commands.core.verify", "Check a core dump, and its instructions against a NEFF."),
    "diff": Entry("neurontools.commands.core.diff", "Compare two core dumps."),
    "triage": Entry(
        "neurontools.commands.core.triage",
        "Group many dumps, find the first failure of each execution, say what is likeliest wrong.",
    ),
    "extract": Entry("neurontools.commands.core.extract", "Take a core dump apart into a folder."),
}

app = lazy_app(LAZY, "Look into a core dump, say what went wrong, compare, take apart.")
