"""Published numbers that no kernel of ours shows: phases of transfers and single words, from the tables of costs."""

from __future__ import annotations

from emulator.arch import arch_of
from emulator.cost import cost_of, dma_costs, figure
from formats import isa
from formats.dtypes import Dtype
from neurontools.validation.targets import Target

__all__ = ["chain", "dma", "figure_of", "word"]


def dma(target: Target, part: str, *words: str) -> float:
    """Return a phase of one transfer as the table of costs has it: the programs behind these rows are not public."""
    costs = dma_costs(target.chip)
    propagation = figure("propagation", target.chip) * 1000  # figures are in ns, costs in ps
    trigger = figure("trigger_sync" if words[:1] == ("sync",) else "trigger_pool", target.chip) * 1000
    if part == "completion":
        return costs.completion_ps(1) + propagation
    if part == "start":
        maker = "software" if words[0] == "software" else "prebuilt"
        return trigger + costs.start_ps(words[0] == "pool", maker)
    if part == "data":
        writes, (count, nbytes) = words[0] == "store", map(int, words[1:])
        return costs.data_ps(count, nbytes, writes) + (0 if writes else costs.fill_ps)
    if part == "span":
        writes, (engines, count, nbytes) = words[0] == "store", map(int, words[1:])
        data = costs.data_ps(count, nbytes, writes) + (0 if writes else costs.fill_ps)
        return (engines - 1) * costs.stagger_ps(writes) + data  # engines begin one after the other
    start = dma(target, "start", words[0])
    span = dma(target, "span", "load", *words[1:])
    return start + span + costs.completion_ps(int(words[1])) + propagation


def word(target: Target, op: str, width: str) -> float:
    """Return what a fold of bf16 costs whose operator the front end does not have on this chip."""
    many = isa.AccessPattern(0, (1, 1, 1, 1), (int(width), 1, 1, 1))
    one = isa.AccessPattern(0, (1, 1, 1, 1), (1, 1, 1, 1))
    fold = isa.TensorReduce(src=many, dst=one, src_dtype=Dtype.BFLOAT16, dst_dtype=Dtype.BFLOAT16, op=isa.AluOp[op])
    return cost_of(fold, "DVE", arch_of(target.chip)).latency_ps


def figure_of(target: Target, name: str) -> float:
    """Return a figure of the tables, in picoseconds."""
    return figure(name, target.chip) * 1000


def chain(target: Target, name: str) -> float:
    """Return what a word takes that needs the one before: latency, one element, and the semaphore's way."""
    cycle = 1 / arch_of(target.chip).clock_ghz("Activation")
    return (figure(name, target.chip) + cycle + figure("propagation", target.chip)) * 1000
