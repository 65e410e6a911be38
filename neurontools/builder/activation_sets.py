"""Which activation functions are loaded together, and where a program has to load another set."""

from __future__ import annotations

from collections.abc import Sequence

from formats.errors import UnsupportedError
from formats.isa import ActivationFunction
from formats.isa.activation import EVERY_SET
from formats.named_tuple import NamedTuple

__all__ = ["OURS", "SETS", "ActivationLoop", "ActivationPlan", "plan_activation"]

# What each set of the compiler holds besides `EVERY_SET`. Source: act_info.json of public NEFFs (formats.md
# 3.8); names as formats.isa spells them. Functions in no public set share one of ours.
OURS = "neurontools"
SETS: dict[str, frozenset[str]] = {
    "exp_and_others": frozenset({"exp", "tanh"}),
    "sigmoid_and_others": frozenset({"sigmoid", "tanh", "erf", "arctan"}),
    "softplus_and_others": frozenset({"softplus"}),
    "sqrt_and_others": frozenset({"sqrt"}),
    "natural_log_exp_and_others": frozenset({"log", "exp"}),
    "trig_and_small": frozenset({"sin", "arctan"}),
    "gelu_and_others": frozenset({"gelu", "gelu_dx", "tanh"}),
    "gelu_apprx_tanh_and_others": frozenset({"gelu_apprx_tanh", "tanh"}),
    "gelu_apprx_sigmoid_and_others": frozenset({"gelu_apprx_sigmoid", "tanh"}),
    "derivative_gelu_apprx_sigmoid_and_others": frozenset({"gelu_apprx_sigmoid_dx", "tanh"}),
    "reciprocal_and_small": frozenset({"reciprocal"}),
    "reciprocal_sqrt_and_small": frozenset({"rsqrt"}),
    "mish_and_others": frozenset({"mish"}),
    "erf_derivative": frozenset({"erf_dx"}),
    "silu_and_others": frozenset({"silu", "sin", "tanh"}),
    "derivative_silu_and_others": frozenset({"silu_dx", "sin", "tanh"}),
    OURS: frozenset({"cos", "tan", "floor", "ceil", "trunc"}),
}


class ActivationLoop(NamedTuple):
    """A loop that the device runs: the number of its operation, and its activations, `start` to `stop` - 1."""

    number: int
    start: int
    stop: int


class ActivationPlan(NamedTuple):
    """Codes by function name, and the sets in table order, each with the functions used from it.

    `loads` maps the number of an activation (in program order) to the set to load before it, `ahead` the number of a
    loop's operation to the set to load in front of that loop.
    """

    codes: dict[str, int]
    sets: dict[str, dict[str, int]]
    loads: dict[int, int]
    ahead: dict[int, int]


def plan_activation(functions: Sequence[str], loops: Sequence[ActivationLoop] = ()) -> ActivationPlan:
    """Choose sets for the activations of a program: each load picks the set that serves the longest run from there on.

    A loop that some set serves throughout has no load in it: the set is loaded in front, and stays however many turns
    there are. In any other loop, and behind it, it is not known what a turn before left. `loops` come outer ones first.

    Raises UnsupportedError for a name that is no function.
    """
    codes: dict[str, int] = {}
    for name in functions:
        if name not in codes:
            try:
                codes[name] = int(ActivationFunction[name.upper()])
            except KeyError:
                raise UnsupportedError(f"activation function {name!r} is not modelled") from None
    holders = {name: frozenset(s for s, held in SETS.items() if name in held or name in EVERY_SET) for name in codes}
    loads: dict[int, int] = {}
    ahead: dict[int, int] = {}
    sets: dict[str, dict[str, int]] = {}
    order: list[str] = []
    whole, fresh = _loops(functions, holders, loops)
    at = 0
    while at < len(functions):
        start, ahead_of = at, whole.get(at)
        serving, at = (holders[functions[at]], at + 1) if ahead_of is None else (ahead_of.serving, ahead_of.loop.stop)
        if not serving:
            raise UnsupportedError(f"activation function {functions[start]!r} is in no set")
        while at < len(functions) and at not in fresh:
            entered = whole.get(at)
            narrowed = serving & (holders[functions[at]] if entered is None else entered.serving)
            if not narrowed:
                break
            serving, at = narrowed, at + 1 if entered is None else entered.loop.stop
        # a set that the program has loaded before, so that the file carries few
        chosen = next((name for name in order if name in serving), None) or next(
            name for name in SETS if name in serving
        )
        if chosen not in sets:
            sets[chosen] = {}
            order.append(chosen)
        sets[chosen].update((name, codes[name]) for name in functions[start:at])
        if ahead_of is None:
            loads[start] = order.index(chosen)
        else:
            ahead[ahead_of.loop.number] = order.index(chosen)
    return ActivationPlan(codes, sets, loads, ahead)


class _Whole(NamedTuple):
    """A loop that any of the sets `serving` serves throughout."""

    loop: ActivationLoop
    serving: frozenset[str]


def _loops(
    functions: Sequence[str], holders: dict[str, frozenset[str]], loops: Sequence[ActivationLoop]
) -> tuple[dict[int, _Whole], frozenset[int]]:
    """Return the outermost loops that one set serves, by first activation, and activations that no set is known for."""
    whole: dict[int, _Whole] = {}
    fresh: set[int] = set()
    for loop in loops:
        serving = frozenset.intersection(*(holders[name] for name in functions[loop.start : loop.stop]))
        if not serving:
            fresh.update((loop.start, loop.stop))
        elif loop.start not in whole:
            whole[loop.start] = _Whole(loop, serving)
    return whole, frozenset(fresh)
