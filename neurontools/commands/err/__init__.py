"""`neurontools err`: errors of runtime, driver, collectives and compiler, explained."""

from __future__ import annotations

from neurontools.commands.lazy import Entry, lazy_app

LAZY: dict[str, Entry] = {
    "explain": Entry("neurontools.commands.err.explain", "Explain an error code, a name, a log line or a whole log."),
}

app = lazy_app(LAZY, "Explain the errors of the Neuron runtime, driver and compiler.")
