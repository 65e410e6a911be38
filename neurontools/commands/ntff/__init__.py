"""`neurontools ntff`: profile captures of the Neuron runtime."""

from __future__ import annotations

from neurontools.commands.lazy import Entry, lazy_app

LAZY: dict[str, Entry] = {
    "info": Entry("neurontools.commands.ntff.info", "Show what a capture holds: chip, streams, memory, records."),
    "disasm": Entry("neurontools.commands.ntff.disasm", "List the instructions that the runtime had loaded."),
    "timeline": Entry("neurontools.commands.ntff.timeline", "Show where the time went, beside the emulator's run."),
    "export": Entry("neurontools.commands.ntff.export", "Write a capture for Perfetto, Chrome's viewer, or as CSV."),
}

app = lazy_app(LAZY, "Look into a profile capture (NTFF), and compare it with the emulator.")
