"""A profile as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from neurontools.profile.results import (
    Advice,
    Comparison,
    DmaSummary,
    EngineRow,
    LineDelta,
    LineRow,
    Profile,
    WaitRow,
    WhatIf,
)
from neurontools.text.table import bold, bytes_text, count, duration, table

__all__ = [
    "KINDS",
    "delta",
    "deltas",
    "engine_lines",
    "line_lines",
    "lines",
    "share",
    "signed",
    "time",
    "what_if_lines",
]

_REASONS = {"order": "in flight", "barrier": "barrier", "unexplained": "unexplained"}
KINDS = {
    "execute": "instructions",
    "issue": "engine busy",
    "semaphore": "semaphores",
    "generate": "descriptors made",
    "start": "DMA start",
    "data": "DMA data",
    "hbm": "HBM",
    "completion": "DMA completion",
    "barrier": "barriers",
    "port": "memory ports",
    "collective": "collectives",
}


def lines(result: Profile, top: int = 10) -> Iterator[str]:
    """Return the profile for people: `top` is how many source lines and links of the path are shown."""
    cores = count(result.cores, "core")
    yield bold(f"{result.name} on {result.target}, {cores}: {time(result.total_time_ns)} (simulated)")
    yield from _scheduled(result)
    if result.outcome != "finished":
        yield f"the run did not finish: {result.outcome}; the profile ends there"
    yield ""
    yield from engine_lines(result)
    yield ""
    yield from _totals(result)
    yield ""
    yield from _path(result, top)
    yield ""
    yield from line_lines(result.lines, top, "lines, by their part of the critical path")
    if result.advice is not None:
        yield ""
        yield from _advice(result.advice)
    if result.what_if is not None:
        yield ""
        yield from what_if_lines(result.what_if, top)
    if result.against is not None:
        yield ""
        yield from _against(result.against, top)


def _scheduled(result: Profile) -> Iterator[str]:
    """Return what the kernel takes in the order that a device is likely to run: the time above is of another one."""
    for one in result.advice or ():
        if one.rule == "order":
            other = time(result.total_time_ns - one.saves_ns)
            yield f"that is in the kernel's order; scheduled, as AWS's compiler does, it is {other}: --schedule"


def time(nanoseconds: float) -> str:
    """Return a time with its unit."""
    return duration(round(nanoseconds * 1000))


def share(value: float) -> str:
    """Return a percentage with one digit."""
    return f"{value:.1f}"


def engine_lines(result: Profile) -> list[str]:
    """Return the engines of a profile as lines."""
    rows = []
    many = result.cores > 1
    for one in result.engines:
        name = f"nc{one.core} {one.engine}" if many else one.engine
        waits = [_wait(one, wait) for wait in one.waits[:2]]
        rows.append(
            (
                name,
                one.instruction_count,
                share(one.busy_percent),
                share(one.wait_percent),
                share(one.idle_percent),
                "; ".join(waits),
            )
        )
    return table(("engine", "words", "busy %", "wait %", "idle %", "waits for"), rows)


def _wait(engine: EngineRow, wait: WaitRow) -> str:
    longest = wait.longest
    if wait.reason == "semaphore":
        whom = "its own results" if wait.source == engine.name else wait.source
    else:
        whom = f"{_REASONS.get(wait.reason, wait.reason)} {wait.source}".strip()
    lines = {longest.line, longest.source_line} - {"unknown", None}
    where = f" ({longest.line} for {longest.source_line})" if len(lines) == 2 else ""
    return f"{whom} {share(wait.percent)} %{where}"


def _totals(result: Profile) -> Iterator[str]:
    dma, roof = result.dma, result.roofline
    if dma.transfer_count:
        yield (
            f"DMA       {count(dma.transfer_count, 'transfer')}, {bytes_text(dma.bytes)}, on average "
            f"{bytes_text(round(dma.average_transfer_bytes))} in pieces of "
            f"{bytes_text(round(dma.average_descriptor_bytes))}; moving data {share(_part(dma, result))} % of "
            f"the time, then {dma.gb_per_s:.0f} of {dma.peak_gb_per_s:.0f} GB/s "
            f"({share(dma.efficiency_percent)} %)"
        )
    yield (
        f"HBM       {bytes_text(dma.hbm_read_bytes)} read, {bytes_text(dma.hbm_write_bytes)} written: "
        f"MBU {share(roof.mbu_percent)} %"
    )
    if roof.matmul_count:
        yield (
            f"matmuls   {count(roof.matmul_count, 'word')}, {roof.model_flops / 1e9:.3f} GFLOP: "
            f"MFU {share(roof.mfu_percent)} %, HFU {share(roof.hfu_percent)} %"
        )
        by = "HBM" if roof.bound_by == "memory" else "the Tensor engine"
        yield (
            f"roofline  {roof.arithmetic_intensity:.1f} FLOP/byte (ridge {roof.ridge:.1f}): at most "
            f"{roof.roof_tflops:.2f} TFLOP/s by {by}, "
            f"reached {roof.achieved_tflops:.2f} ({share(roof.roof_percent)} %)"
        )
    memory = [
        f"nc{one.core} {one.space} {bytes_text(one.peak_bytes)} ({share(one.peak_percent)} %)" for one in result.memory
    ]
    if memory:
        yield f"memory    in use at most: {', '.join(memory)}"


def _part(dma: DmaSummary, result: Profile) -> float:
    return 100 * dma.moving_ns / result.total_time_ns if result.total_time_ns else 0.0


def _path(result: Profile, top: int) -> Iterator[str]:
    path = result.critical_path
    kinds = ", ".join(f"{KINDS.get(one.kind, one.kind)} {share(one.percent)} %" for one in path.kinds)
    yield bold(f"critical path: {time(path.total_ns)} in {count(len(path.links), 'link')}")
    yield f"  {kinds}"
    longest = sorted(path.links, key=lambda link: link.start_ns - link.end_ns)[:top]
    rows = []
    for link in sorted(longest, key=lambda link: link.start_ns):
        what = KINDS.get(link.kind, link.kind)
        opcode = "" if link.opcode in ("DMA", "COLLECTIVE") else link.opcode
        rows.append(
            (
                time(link.start_ns),
                time(link.end_ns - link.start_ns),
                what,
                link.owner,
                f"{opcode} {link.detail}".strip(),
                link.line,
            )
        )
    yield from ("  " + line for line in table(("at", "took", "by", "where", "what", "line"), rows))


def line_lines(found: Sequence[LineRow], top: int, head: str) -> Iterator[str]:
    """Return source lines as lines."""
    shown = found[:top]
    rows = [
        (
            one.line,
            share(one.critical_percent),
            time(one.critical_ns),
            time(one.busy_ns),
            time(one.wait_ns),
            time(one.dma_ns),
            one.instruction_count,
            one.what,
        )
        for one in shown
    ]
    yield bold(head)
    yield from (
        "  " + line
        for line in table(("line", "critical %", "critical", "engines", "waiting", "DMA", "words", "mostly"), rows)
    )
    if len(found) > top:
        yield f"  and {count(len(found) - top, 'line')} more; --top shows more, --json all"


def _advice(advice: tuple[Advice, ...]) -> Iterator[str]:
    yield bold("advice" if advice else "advice: nothing found that would make it faster")
    for one in advice:
        yield f"  {one.rule}  {one.line}: {one.message}"
        saves = f"would save {time(one.saves_ns)} ({share(one.saves_percent)} %)"
        yield f"    {saves}; {one.proof} [{one.source}]"


def what_if_lines(found: WhatIf, top: int) -> Iterator[str]:
    """Return what other costs do as lines."""
    yield bold(
        f"what if {found.change}: {time(found.total_time_ns)} instead of {time(found.before_ns)} "
        f"({delta(found.total_time_ns, found.before_ns)})"
    )
    yield from deltas(found.lines, top)


def _against(found: Comparison, top: int) -> Iterator[str]:
    yield bold(
        f"against {found.name}: {time(found.total_time_ns)} here, {time(found.before_ns)} there "
        f"({delta(found.total_time_ns, found.before_ns)})"
    )
    yield from deltas(found.lines, top)


def delta(now: float, before: float) -> str:
    """Return a difference in percent."""
    return f"{100 * (now / before - 1):+.1f} %" if before else "new"


def deltas(found: tuple[LineDelta, ...], top: int) -> Iterator[str]:
    """Return differences of source lines as lines."""
    rows = [
        (
            one.line,
            signed(one.critical_delta_ns),
            signed(one.busy_delta_ns),
            signed(one.wait_delta_ns),
            signed(one.dma_delta_ns),
        )
        for one in found[:top]
    ]
    yield from ("  " + line for line in table(("line", "critical", "engines", "waiting", "DMA"), rows))


def signed(nanoseconds: float) -> str:
    """Return a difference with its sign and unit."""
    return "=" if not nanoseconds else ("+" if nanoseconds > 0 else "-") + time(abs(nanoseconds))
