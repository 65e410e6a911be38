"""The opcodes: how many operands each takes and computations it calls, and what kind of work it is."""

from __future__ import annotations

from formats.named_tuple import NamedTuple

__all__ = ["OPCODES", "OpcodeFacts"]

_MANY = 1 << 20


class OpcodeFacts(NamedTuple):
    """Least and most operands, number of called computations (-1 for any), and kind.

    Kinds: `unary`, `binary`, `ternary` work on single elements; `transcendental` are unary ones that cost more; `move`
    moves elements; `sum` adds products or folds; `control`, `collective`, `other`.
    """

    least: int
    most: int
    kind: str
    called: int = 0


def _table() -> dict[str, OpcodeFacts]:
    found: dict[str, OpcodeFacts] = {}
    # fmt: off
    rows = (
        ("unary", 1, 1, 0, "abs negate sign floor ceil round-nearest-afz round-nearest-even not popcnt "
                           "count-leading-zeros is-finite real imag convert bitcast-convert reduce-precision copy"),
        ("transcendental", 1, 1, 0, "exponential exponential-minus-one log log-plus-one logistic erf sqrt rsqrt cbrt "
                                    "sine cosine tan tanh sinh cosh asin acos asinh acosh atanh"),
        ("binary", 2, 2, 0, "add subtract multiply divide remainder maximum minimum and or xor shift-left "
                            "shift-right-logical shift-right-arithmetic compare complex stochastic-convert"),
        ("transcendental", 2, 2, 0, "power atan2"),
        ("ternary", 3, 3, 0, "select clamp"),
        ("move", 0, 0, 0, "parameter constant iota"),
        ("move", 1, 1, 0, "broadcast reshape transpose reverse slice bitcast get-tuple-element get-dimension-size"),
        ("move", 2, 2, 0, "pad gather"),
        ("move", 1, _MANY, 0, "concatenate dynamic-slice"),
        ("move", 2, _MANY, 0, "dynamic-update-slice"),
        ("move", 0, _MANY, 0, "tuple after-all"),
        ("move", 1, _MANY, 0, "opt-barrier domain"),
        ("move", 2, 2, 0, "add-dependency"),
        ("move", 3, _MANY, 1, "scatter"),
        ("sum", 2, 2, 0, "dot convolution"),
        ("sum", 3, 3, 0, "ragged-dot"),
        ("sum", 2, _MANY, 1, "reduce reduce-window"),
        ("sum", 3, 3, 2, "select-and-scatter"),
        ("sum", 1, _MANY, 1, "map"),
        ("other", 1, _MANY, 1, "sort"),
        ("other", 1, 1, 0, "topk fft cholesky"),
        ("other", 2, 2, 0, "triangular-solve"),
        ("other", 1, 1, 0, "rng-bit-generator"),
        ("other", 0, _MANY, 0, "rng"),
        ("other", 0, 0, 0, "rng-get-and-update-state partition-id replica-id"),
        ("other", 3, 3, 0, "batch-norm-training"),
        ("other", 5, 5, 0, "batch-norm-inference batch-norm-grad"),
        ("control", 1, 1, 2, "while"),
        ("control", 1, _MANY, -1, "conditional"),
        ("control", 0, _MANY, 1, "call fusion"),
        ("other", 0, _MANY, -1, "custom-call"),
        ("control", 0, _MANY, -1, "async-start async-update async-done"),
        ("collective", 1, _MANY, 1, "all-reduce reduce-scatter all-reduce-start"),
        ("collective", 1, _MANY, 0, "all-gather all-to-all collective-permute collective-broadcast ragged-all-to-all "
                                    "all-gather-start all-gather-done all-reduce-done collective-permute-start "
                                    "collective-permute-done"),
        ("other", 1, 3, 0, "infeed outfeed send send-done recv recv-done"),
        ("other", 1, 2, 0, "copy-start copy-done set-dimension-size"),
        ("other", 1, _MANY, 0, "dynamic-reshape"),
    )
    # fmt: on
    for kind, least, most, called, opcodes in rows:
        for opcode in opcodes.split():
            found[opcode] = OpcodeFacts(least, most, kind, called)
    return found


OPCODES = _table()
