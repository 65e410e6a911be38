"""Which activation functions are loaded together, and where a program has to load another set."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from formats.errors import UnsupportedError
from formats.isa import ActivationFunction

__all__ = ["OURS", "SETS", "ActivationPlan", "plan_activation"]

# Functions that every set of the compiler holds, and what each adds. Source: act_info.json of public NEFFs (formats.md
# 3.8); names as formats.isa spells them. Functions in no public set share one of ours.
COMMON = frozenset(
    {
        "abs",
        "copy",
        "derivative_identity",
        "derivative_leaky_relu",
        "derivative_relu",
        "identity",
        "is_finite",
        "leaky_relu",
        "memset_zero",
        "parametric_relu",
        "relu",
        "sign",
        "square",
    }
)
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


class ActivationPlan(NamedTuple):
    """Codes by function name, and the sets in table order, each with the functions used from it.

    `loads` maps the number of an activation (in program order) to the set to load before it.
    """

    codes: dict[str, int]
    sets: dict[str, dict[str, int]]
    loads: dict[int, int]


def plan_activation(functions: Sequence[str], fresh: Collection[int] = ()) -> ActivationPlan:
    """Choose sets for the activations of a program: each load picks the set that serves the longest run from there on.

    In front of those whose numbers are in `fresh` it is not known which set is loaded.

    Raises UnsupportedError for a name that is no function.
    """
    codes: dict[str, int] = {}
    for name in functions:
        if name not in codes:
            try:
                codes[name] = int(ActivationFunction[name.upper()])
            except KeyError:
                raise UnsupportedError(f"activation function {name!r} is not modelled") from None
    holders = {name: frozenset(s for s, held in SETS.items() if name in held or name in COMMON) for name in codes}
    loads: dict[int, int] = {}
    sets: dict[str, dict[str, int]] = {}
    order: list[str] = []
    start = 0
    while start < len(functions):
        serving = holders[functions[start]]
        if not serving:
            raise UnsupportedError(f"activation function {functions[start]!r} is in no set")
        stop = start + 1
        while stop < len(functions) and stop not in fresh:
            narrowed = serving & holders[functions[stop]]
            if not narrowed:
                break
            serving, stop = narrowed, stop + 1
        chosen = next((name for name in order if name in serving), None) or next(
            name for name in SETS if name in serving
        )
        if chosen not in sets:
            sets[chosen] = {}
            order.append(chosen)
        sets[chosen].update((name, codes[name]) for name in functions[start:stop])
        loads[start] = order.index(chosen)
        start = stop
    return ActivationPlan(codes, sets, loads)
