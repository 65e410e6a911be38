"""`neurontools monitor summarize`: what a stream of reports amounts to."""

from __future__ import annotations

from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.monitor.files import MonitorFile, StreamSummary, summary_of
from neurontools.text.table import bytes_text, count, table


def view(found: StreamSummary) -> list[str]:
    """Return each program with its cores."""
    lines = [f"{found.instance_type}: {count(found.reports, 'report')}"]
    for one in found.processes:
        done = ", ".join(f"{number:,} {name}" for name, number in one.executions.items() if number) or "no executions"
        lines += ["", f"{one.tag} (pid {one.pid}), {one.seconds:.1f} s: {done}"]
        if one.p50_seconds is not None and one.p99_seconds is not None:
            lines.append(f"  latency {one.p50_seconds * 1e3:.3f} ms at p50, {one.p99_seconds * 1e3:.3f} ms at p99")
        lines.append(
            f"  at most {bytes_text(one.device_memory)} of device, {bytes_text(one.host_memory)} of host memory"
        )
        failed = {name: number for name, number in one.errors.items() if number}
        if failed:
            lines.append("  errors: " + ", ".join(f"{number} {name}" for name, number in failed.items()))
        rows = [[core.core, f"{core.mean:.1f}", f"{core.most:.1f}", core.memory, "#" * round(core.mean / 4)]
                for core in one.cores]  # fmt: skip
        lines += ["", *("  " + line for line in table(["core", "busy %", "most %", "bytes", ""], rows))]
    wrong = {name: number for name, number in found.hardware_errors.items() if number}
    if wrong:
        lines += ["", "hardware: " + ", ".join(f"{number} {name}" for name, number in wrong.items())]
    return lines


def monitor_summarize(file: MonitorFile, json: Json = False) -> None:
    """Sum up a stream of reports of neuron-monitor, real or emulated."""
    with report("monitor summarize", json, file=file) as out:
        found = summary_of(file)
        out.result = found
        out.lines = lambda: view(found)


app = command_app(monitor_summarize, result=StreamSummary)
