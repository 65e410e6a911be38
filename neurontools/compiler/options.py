"""What a compilation is asked for: the options of neuronx-cc, with its defaults, as one value.

Source: compiler.md 5.1.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, get_args, get_origin, get_type_hints

from formats.errors import FormatError, UnsupportedError
from formats.isa.extension_collective import STREAMS
from formats.named_tuple import NamedTuple
from formats.targets import Target, resolve_target
from neurontools.compiler.errors import failed

__all__ = ["DOWNCASTS", "CompileOptions", "check_options"]

AutoCast = Literal["none", "matmult", "all"]
AutoCastType = Literal["bf16", "fp16", "tf32", "fp8_e4m3"]
ModelType = Literal["generic", "transformer", "unet-inference"]
Strategy = Literal["", "llm-training", "NEMO"]
Limits = Literal["documented", "ours"]

DOWNCASTS = ("dot", "scatter", "all_reduce", "reduce_scatter", "pow")
_KINDS: dict[type, str] = {bool: "True or False", int: "a whole number", str: "text"}
_TARGETS = ("inf2", "trn1", "trn1n", "trn2", "trn3")


class CompileOptions(NamedTuple):
    """Options of one compilation; `lnc` of 0 is the target's default, `limits` says whose restrictions hold.

    Gathers of weights are called `early_ag_shift` layers before their use, scatters of gradients `late_rs_shift` layers
    behind their sum; -1 calls all collectives as early as can be. `cc_streams` of 0 leaves streams to the module.
    """

    target: str = "trn2"
    model_type: ModelType = "generic"
    auto_cast: AutoCast = "none"
    auto_cast_type: AutoCastType = "bf16"
    native_int64: Literal["default", "enabled", "disabled"] = "default"
    implicit_integer_downcast: str = "default"
    distribution_strategy: Strategy = ""
    lnc: int = 0
    optlevel: int = 2
    mixed_precision_accumulation: bool = True
    saturate_infinity: bool = False
    fast_context_switch: bool = False
    fast_loading: bool = False
    fp8_as_e4m3: bool = False
    limits: Limits = "documented"
    seed: int = 0
    early_ag_shift: int = -1
    late_rs_shift: int = -1
    cc_streams: int = 0

    @property
    def chip(self) -> Target:
        """Return the target; trn1n is trn1 with more network."""
        return resolve_target("trn1" if self.target == "trn1n" else self.target, "--target")

    @property
    def cores(self) -> int:
        """Return the physical cores of a logical core."""
        return self.lnc or (1 if self.chip.generation == "gen2" else 2)

    @property
    def downcasts(self) -> frozenset[str]:
        """Return the operations whose integers may lose precision silently."""
        text = self.implicit_integer_downcast
        if text in ("default", "all"):
            return frozenset(DOWNCASTS)
        return frozenset() if text == "none" else frozenset(text.split(","))


def check_options(options: CompileOptions) -> None:
    """Refuse values that an option does not have, and options that contradict each other or the target."""
    for name, value in options._asdict().items():
        words, kind = _values(name)
        if type(value) is not kind or (words and value not in words):
            raise FormatError("wrong value of an option of the compiler", field=name,
                              expected=" or ".join(one or "nothing" for one in words) or _KINDS[kind],
                              got=repr(value))  # fmt: skip
    if options.target in ("inf1", "gen1", "tonga"):
        raise UnsupportedError("Inf1 (NeuronCore-v1) has another compiler, neuron-cc, and other words; the emulator "
                               "has no such core, so nothing is compiled for it")  # fmt: skip
    if options.target not in _TARGETS:
        raise FormatError("unknown target", field="--target", expected=" or ".join(_TARGETS), got=options.target)
    if options.lnc not in (0, 1, 2) or (options.lnc == 2 and options.chip.generation == "gen2"):
        has = "1" if options.chip.generation == "gen2" else "1 and 2"
        raise failed("EARG001", f"logical core configuration {options.lnc} on {options.target}, which has {has}")
    if options.optlevel not in (1, 2, 3):
        raise FormatError(
            "no level of optimisation", field="--optlevel", expected="1, 2 or 3", got=str(options.optlevel)
        )
    for name in ("early_ag_shift", "late_rs_shift"):
        if getattr(options, name) < -1:
            raise FormatError("no number of layers", field=name, expected="0 or more, or -1 for none",
                              got=str(getattr(options, name)))  # fmt: skip
    if not 0 <= options.cc_streams <= STREAMS:
        raise FormatError("no number of streams", field="cc_streams", expected=f"1 to {STREAMS}, or 0 for the module's",
                          got=str(options.cc_streams))  # fmt: skip
    unknown = options.downcasts - set(DOWNCASTS)
    if unknown:
        raise FormatError("unknown operation", field="--implicit-integer-downcast",
                          expected=f"default, all, none or a list of {', '.join(DOWNCASTS)}",
                          got=", ".join(sorted(unknown)))  # fmt: skip
    if options.native_int64 == "enabled":
        if options.chip.generation == "gen2":
            raise FormatError("native 64-bit integers need trn2 or newer", field="--native-int64", got=options.target)
        raise UnsupportedError("--native-int64=enabled is not modelled: 64-bit integers are held in 32 bits")


@cache
def _values(name: str) -> tuple[tuple[str, ...], type]:
    """Return the words that an option is one of, if it has such, and its type."""
    hint = get_type_hints(CompileOptions)[name]
    return (get_args(hint), str) if get_origin(hint) is Literal else ((), hint)
