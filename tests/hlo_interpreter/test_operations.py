"""Every operation of the interpreter against a reference of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from formats.errors import FormatError, UnsupportedError
from formats.hlo.opcodes import OPCODES
from formats.hlo.text import parse_module, print_module
from neurontools.hlo_interpreter import OPERATIONS, evaluate
from tests.hlo_interpreter.cases import CASES, Case, module


def _same(got: Any, expected: Any, tolerance: float) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(got, expected, strict=True):
            _same(one, other, tolerance)
        return
    expected = np.asarray(expected)
    assert got.shape == expected.shape
    if tolerance:
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(got.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(got.astype(expected.dtype), expected)


@pytest.mark.parametrize("each", CASES, ids=[each.name for each in CASES])
def test_an_operation_agrees_with_its_definition(each: Case) -> None:
    parsed = parse_module(each.text)
    for seed in range(3):
        arguments = each.make(np.random.default_rng(seed))
        _same(evaluate(parsed, arguments), each.expect(*arguments), each.tolerance)


@pytest.mark.parametrize("each", CASES, ids=[each.name for each in CASES])
def test_its_text_says_all_of_it(each: Case) -> None:
    printed = print_module(parse_module(each.text))
    assert print_module(parse_module(printed)) == printed
    arguments = each.make(np.random.default_rng(5))
    _same(evaluate(parse_module(printed), arguments), evaluate(parse_module(each.text), arguments), 0.0)


# Refused on purpose, or halves of what a test reaches by its other half.
_STARTED = {f"{name}-{end}" for name in ("all-reduce", "all-gather", "collective-permute", "async")
            for end in ("start", "done")}  # fmt: skip
_ELSEWHERE = _STARTED | {"parameter", "constant", "rng", "rng-get-and-update-state", "domain", "ragged-all-to-all",
                         "collective-broadcast", "async-update"}  # fmt: skip


def test_every_operation_has_a_case() -> None:
    shown = {each.opcode for one in CASES for each in parse_module(one.text).instructions()}
    assert set(OPERATIONS) - shown - _ELSEWHERE == set()


def test_every_operation_is_an_opcode() -> None:
    assert set(OPERATIONS) <= set(OPCODES)


# What a module of a frontend may hold and nothing here computes: a device or a host of its own is behind each.
_NOT_COMPUTED = {"parameter", "infeed", "outfeed", "send", "send-done", "recv", "recv-done",
                 "set-dimension-size", "dynamic-reshape"}  # fmt: skip


def test_every_opcode_is_computed_or_refused_by_name() -> None:
    assert set(OPCODES) - set(OPERATIONS) == _NOT_COMPUTED


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "  a = f32[] constant(0)\n  b = f32[] constant(1)\n  ROOT r = f32[4] rng(a, b), distribution=rng_uniform",
            "seed",
        ),
        ('  a = f32[] constant(0)\n  ROOT r = f32[] custom-call(a), custom_call_target="nobody"', "'nobody'"),
        ("  a = f32[] constant(0)\n  ROOT r = f32[] all-reduce(a), replica_groups={{0,1}}, to_apply=add", "ranks"),
        ("  t = token[] after-all()\n  ROOT r = (f32[], token[]) infeed(t)", "does not know 'infeed'"),
        ("  a = f32[2,3]{0,1} parameter(0)\n  ROOT r = f32[6] bitcast(a)", "layouts"),
    ],
)
def test_what_is_not_modelled_is_refused(body: str, said: str) -> None:
    add = "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT r = f32[] add(x, y)\n}\n"
    parsed = parse_module(module(body, add))
    arguments = [np.zeros(each.shape.dimensions, np.float32) for each in parsed.entry.parameters]
    with pytest.raises(UnsupportedError, match=said):
        evaluate(parsed, arguments)


@pytest.mark.parametrize(
    ("shape", "config", "result"),
    [("2,3", "2", "2"), ("2,3", "-3", "2"), ("2,0", "", "2"), ("", "", ""), ("2,3", "1", "5")],
)
def test_an_extreme_along_no_dimension_is_an_error(shape: str, config: str, result: str) -> None:
    text = (f"  a = f32[{shape}] parameter(0)\n  ROOT r = s32[{result}] custom-call(a), "
            f'custom_call_target="AwsNeuronArgMax", backend_config="{config}"')  # fmt: skip
    given = np.zeros([int(size) for size in shape.split(",") if size], np.float32)
    with pytest.raises(FormatError, match="%r"):
        evaluate(parse_module(module(text)), [given])


@pytest.mark.parametrize("config", ["", "1", "-1", "--1", "last"])
def test_an_extreme_along_the_last_dimension(config: str) -> None:
    text = ("  a = f32[2,3] parameter(0)\n  ROOT r = s32[2] custom-call(a), "
            f'custom_call_target="AwsNeuronArgMax", backend_config="{config}"')  # fmt: skip
    got = evaluate(parse_module(module(text)), [np.array([[1, 3, 2], [9, 7, 8]], np.float32)])
    assert got.tolist() == [1, 0]


@pytest.mark.parametrize("arguments", [[], [np.zeros(3, np.float64)], [np.zeros(4, np.float32)]])
def test_other_arguments_are_refused(arguments: list[Any]) -> None:
    with pytest.raises(FormatError, match="argument"):
        evaluate(parse_module(module("  ROOT a = f32[3] parameter(0)")), arguments)


def test_an_inconsistent_module_is_not_evaluated() -> None:
    parsed = parse_module(module("  a = f32[3] parameter(0)\n  ROOT r = f32[4] negate(a)"))
    with pytest.raises(FormatError, match=r"%r: states f32\[4\]"):
        evaluate(parsed, [np.zeros(3, np.float32)])


def test_every_value_is_observed_in_order() -> None:
    seen: list[tuple[str, Any]] = []
    parsed = parse_module(module("  a = f32[2] parameter(0)\n  b = f32[2] negate(a)\n  ROOT r = f32[2] add(a, b)"))
    evaluate(parsed, [np.ones(2, np.float32)], lambda each, value: seen.append((each.name, value.tolist())))
    assert seen == [("a", [1, 1]), ("b", [-1, -1]), ("r", [0, 0])]


def test_results_of_short_types_are_rounded_once() -> None:
    """A sum in float64 that lies just above the middle between two bfloat16 numbers must not be rounded twice."""
    import ml_dtypes

    text = ("  a = bf16[2] parameter(0)\n  b = bf16[2] parameter(1)\n  ROOT r = bf16[] dot(a, b), "
            "lhs_contracting_dims={0}, rhs_contracting_dims={0}")  # fmt: skip
    a = np.array([1.0, 2.0**-8], ml_dtypes.bfloat16)
    b = np.array([1.0, 1.0], ml_dtypes.bfloat16)
    got = evaluate(parse_module(module(text)), [a, b])
    assert float(got) == 1.0  # 1 + 2^-8 is the middle: to even
    b = np.array([1.0, 1.0 + 2.0**-7], ml_dtypes.bfloat16)
    assert float(evaluate(parse_module(module(text)), [a, b])) == 1.0078125
