"""The process of one trial: reads what to do from its standard input, answers with one line of JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formats.errors import NeuronError
from neurontools.tuning.budget import limit_memory
from neurontools.tuning.space import SCHEDULE

if TYPE_CHECKING:
    from formats.neff import Neff

__all__ = ["main"]


def main() -> None:
    """Run the trial that standard input describes."""
    request = json.loads(sys.stdin.buffer.read())
    # What the script prints must not get into the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    limit_memory(request["max_megabytes"])
    try:
        found = trial(request)
    except MemoryError:
        found = {"state": "memory", "time_ps": -1, "message": f"over {request['max_megabytes']} MB"}
    except NeuronError as error:
        found = {"state": "refused", "time_ps": -1, "message": " ".join(str(error).split())}
    answer.write(json.dumps(found, default=str))
    answer.close()


def trial(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run a script with the chosen parameters and return what came of it."""
    from emulator.diagnosis.causes import Reason  # deferred: start-up
    from neurontools.nki import choices  # deferred: start-up
    from neurontools.nki.errors import KernelFaultError  # deferred: start-up
    from neurontools.program.configuration import RunConfiguration  # deferred: start-up
    from neurontools.program.launches import Launches, run_launches  # deferred: start-up

    # Before the script runs: it asks for its parameters as it is read.
    values = dict(request["values"])
    scheduled = values.pop(SCHEDULE, "off") == "on"
    choices.choose(values)
    configuration = RunConfiguration(
        arguments=tuple(request["arguments"]),
        target=request["target"],
        checks=tuple(request["checks"]),
        max_seconds=request["max_seconds"],
        limit_ps=request["limit_ps"] or None,
        nki="neurontools",
        schedule=scheduled,
    )
    first: list[tuple[str, Neff | bytes, dict[str, Any]]] = []

    def before(name: str, neff: Neff | bytes, inputs: Mapping[str, Any]) -> None:
        # The bottleneck is told of one launch; copies of every launch's inputs could take any memory.
        if not first:
            first.append((name, neff, {key: array.copy() for key, array in inputs.items()}))

    launches = Launches(configuration, before)
    message, state = "", "ok"
    try:
        status = run_launches(Path(request["file"]), launches, aside=True)
        if status:
            state, message = "wrong", f"the script ended with status {status}"
    except KernelFaultError as error:
        hang = launches.done[-1].made.result.hang if launches.done else None
        budgets = {Reason.HOST_TIME_LIMIT: "timeout", Reason.TIME_LIMIT: "limit"}
        state = "fault" if hang is None else budgets.get(Reason(hang.reason), "fault")
        message = " ".join(str(error).split())
    results = [launch.made.result for launch in launches.done]
    found = [finding for result in results for finding in result.findings if finding.serious]
    if state == "ok" and found:
        state, message = "finding", f"{found[0].tool}: {found[0].kind}: {found[0].message}"
    if state == "ok" and not results:
        state, message = "refused", "the script launched no kernel"
    # A name that nobody asks for is misspelt, and all of its values would take the same time.
    if state == "ok" and (names := choices.unused()):
        state, message = "refused", f"no kernel that the script launches has a parameter {min(names)!r}"
    return {
        "values": dict(request["values"]),
        "state": state,
        "time_ps": sum(result.time_ps for result in results) if results else -1,
        "message": message,
        "bottleneck": bottleneck(*first[0]) if request["explain"] and first and state == "ok" else "",
        "declared": {name: list(values) for name, values in choices.declared().items()},
    }


def bottleneck(name: str, neff: Neff | bytes, inputs: Mapping[str, Any]) -> str:
    """Return what bounds a program, from its profile: the kinds and owners that its critical path is made of."""
    from emulator.timeline.measure import measure  # deferred: start-up
    from formats.neff import open_neff  # deferred: start-up
    from neurontools.profile.rows import Timeline  # deferred: start-up
    from neurontools.profile.summary import summarise  # deferred: start-up

    profile = summarise(Timeline(measure(open_neff(neff), inputs)), name)
    path = profile.critical_path
    parts = [f"{one.kind} {one.percent:.0f} %" for one in path.kinds[:2]]
    owners = [f"{one.owner} {one.percent:.0f} %" for one in path.owners[:2]]
    return f"{profile.roofline.bound_by}; critical path: {', '.join(parts)}; on {', '.join(owners)}"


if __name__ == "__main__":
    main()
