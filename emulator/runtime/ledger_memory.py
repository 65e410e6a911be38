"""The ledger of a session: scratchpad as its variables ask, the runtime's report when memory is exhausted."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.runtime.errors import invalid
from emulator.runtime.instances import Instance
from emulator.runtime.ledger import Ledger
from emulator.runtime.ledger_plan import scratchpad_of
from emulator.runtime.ledger_views import oom_lines
from emulator.runtime.memory import OutOfMemoryError
from emulator.runtime.variables import Options
from formats.nrt.memory import PAGE_SIZES
from formats.numerals import parse_decimal

__all__ = ["CONTIGUOUS_VARIABLE", "PAGE_VARIABLE", "REPORT_VARIABLE", "ledger_of", "report_lines"]

CONTIGUOUS_VARIABLE, PAGE_VARIABLE = "NEURON_RT_CONTIGUOUS_SCRATCHPAD", "NEURON_SCRATCHPAD_PAGE_SIZE"
REPORT_VARIABLE = "NEURON_RT_ENABLE_DEVICE_MEMORY_OOM_LOG"
_MIB = 1 << 20


def ledger_of(instance: Instance, options: Options, environ: Mapping[str, str]) -> Ledger:
    """Return the ledger of a session; StatusError (NRT_INVALID) for a page size that the runtime does not take."""
    contiguous = None if environ.get(CONTIGUOUS_VARIABLE, "").strip() != "0" else False
    text = environ.get(PAGE_VARIABLE, "").strip()
    page = None
    if text:
        size = parse_decimal(text) or 0
        if size not in PAGE_SIZES:
            raise invalid(f"{PAGE_VARIABLE}={text!r}: expected a multiple of 512 below 4096")
        page = size * _MIB
    generation = instance.target.generation
    pad = scratchpad_of(generation, options.lnc, None, contiguous, page)
    return Ledger(generation, lnc=options.lnc, scratchpad=pad)


def report_lines(ledger: Ledger, error: OutOfMemoryError, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what the log says of memory that is exhausted, as (function, text)."""
    lines = oom_lines(ledger, error)
    return lines[:2] if environ.get(REPORT_VARIABLE, "").strip() == "0" else lines
