"""One trial: a script run once with chosen parameters, in a process of its own that has a budget."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from formats.errors import FormatError
from formats.neff.fields import Fields, load
from formats.whole_files import temporary_place
from neurontools.tuning.children import child
from neurontools.tuning.results import STATES, Order, Trial

__all__ = ["of_json", "run_trial"]

_GRACE = 10.0  # seconds that a process has to end by itself after its budget


def of_json(fields: Fields) -> Trial:
    """Return a trial that was kept as JSON; FormatError where it is none."""
    values, declared = (fields.raw.get(key, {}) for key in ("values", "declared"))
    if not isinstance(values, dict) or not isinstance(declared, dict):
        raise fields.fail("values", "parameters by name")
    return Trial(
        values,
        fields.one_of("state", STATES),
        fields.integer("time_ps"),
        fields.number("seconds", 0.0),
        fields.text("message", ""),
        fields.text("bottleneck", ""),
        {str(name): list(each) for name, each in declared.items() if isinstance(each, list)},
        fields.integer("rung", 0),
    )


def run_trial(order: Order, values: Mapping[str, Any], explain: bool = False, limit_ps: int = 0) -> Trial:
    """Run a trial; whatever happens in its process is a state of the trial.

    `explain` asks for the bottleneck; `limit_ps` ends a launch that takes longer in emulated time.
    """
    started = perf_counter()
    request = json.dumps({**order._asdict(), "values": dict(values), "explain": explain, "limit_ps": limit_ps})
    with tempfile.TemporaryFile(dir=temporary_place()) as said:
        words = [sys.executable, "-m", "neurontools.tuning.child"]
        with child(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said) as process:
            try:
                answer, _ = process.communicate(request.encode(), order.max_seconds + _GRACE)
            except subprocess.TimeoutExpired:
                return Trial(dict(values), "timeout", -1, perf_counter() - started, f"over {order.max_seconds:g} s")
        seconds = perf_counter() - started
        try:
            fields = load(answer, "the answer of a trial")
            return of_json(fields)._replace(values=dict(values), seconds=round(seconds, 3))
        except FormatError:  # a process that was killed, or died, answers with nothing
            said.seek(max(said.seek(0, os.SEEK_END) - 2000, 0))
            last = said.read().decode(errors="replace").strip().splitlines()[-1:]
            how = f"status {process.returncode}" if process.returncode >= 0 else f"signal {-process.returncode}"
            return Trial(dict(values), "died", -1, seconds, ": ".join([how, *last]))
