"""What JSON descriptors do to bytes: every operation of the documentation, up to sixteen sources, constants, scales."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.device import Device
from emulator.dma.moves import check_operation
from emulator.errors import LoadError
from formats import isa
from formats.errors import UnsupportedError
from formats.neff import Descriptor
from formats.neff.transfers import Source
from tests.emulator.dma_programs import gen2, trigger

ROWS, COLUMNS = 128, 64
RUN = COLUMNS * 4
SIZES, STEPS = (RUN, ROWS), (1, RUN)
DONE = isa.Nop(wait_mode=isa.WaitMode.SEM_GE, wait_index=8, wait_value=16)


def descriptor(op: str, **changes: object) -> Descriptor:
    fields: dict[str, object] = {
        "source": "x0", "source_offset": 0, "source_sizes": SIZES, "source_steps": STEPS, "source_dtype": "float32",
        "target": "y", "target_offset": 0, "target_sizes": SIZES, "target_steps": STEPS, "target_dtype": "float32",
    }  # fmt: skip
    return Descriptor(**{**fields, "op": op, **changes})  # type: ignore[arg-type]


def sides(count: int, dtype: str = "float32") -> tuple[Source, ...]:
    return tuple(Source(f"x{number}", dtype, 0, SIZES, STEPS) for number in range(count))


def carry_out(
    move: Descriptor, arrays: list[np.ndarray], out: tuple[str, tuple[int, ...]] = ("float32", (ROWS, COLUMNS))
) -> np.ndarray:
    inputs = {f"x{number}": (array.dtype.name, array.shape) for number, array in enumerate(arrays)}
    neff = gen2({0: (8, [move])}, [trigger(0), DONE], inputs=inputs, outputs={"y": out})
    device = Device("trn1")
    device.load(neff)
    device.set_inputs({f"x{number}": array for number, array in enumerate(arrays)})
    device.run()
    assert device.fault is None and device.hang is None
    return device.outputs()["y"]


def floats(count: int, shape: tuple[int, ...] = (ROWS, COLUMNS)) -> list[np.ndarray]:
    random = np.random.default_rng(11)
    return [random.standard_normal(shape).astype(np.float32) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 16])
@pytest.mark.parametrize(("op", "function"), [("add", np.add), ("min", np.minimum), ("max", np.maximum)])
def test_sources_are_folded_first_to_last(op: str, function: np.ufunc, count: int) -> None:
    arrays = floats(count)
    want = arrays[0]
    for array in arrays[1:]:
        want = function(want, array)
    assert carry_out(descriptor(op, sources=sides(count)), arrays).tobytes() == want.tobytes()


@pytest.mark.parametrize("count", [1, 2, 16])
def test_fma_scales_every_source(count: int) -> None:
    arrays = floats(count)
    want = arrays[0] * np.float32(0.3)
    for array in arrays[1:]:
        want = want + array * np.float32(0.3)
    move = descriptor("fma", sources=sides(count), scale=0.3, scale_dtype="float32")
    assert carry_out(move, arrays).tobytes() == want.tobytes()


def test_fma_without_a_scale_adds() -> None:
    arrays = floats(3)
    assert carry_out(descriptor("fma", sources=sides(3)), arrays).tobytes() == (
        arrays[0] + arrays[1] + arrays[2]).tobytes()  # fmt: skip


@pytest.mark.parametrize(("op", "function"), [("min", np.minimum), ("max", np.maximum)])
@pytest.mark.parametrize("count", [1, 2])
def test_a_constant_begins_the_fold(op: str, function: np.ufunc, count: int) -> None:
    arrays = floats(count)
    move = descriptor(op, sources=sides(count), constant=0.125, constant_dtype="float32")
    want = function(np.float32(0.125), arrays[0])
    for array in arrays[1:]:
        want = function(want, array)
    assert carry_out(move, arrays).tobytes() == want.tobytes()


@pytest.mark.parametrize("op", ["max", "add"])
def test_a_constant_without_a_type_is_ignored(op: str) -> None:
    arrays = floats(1)
    move = descriptor(op, sources=sides(1), constant=1e9, constant_dtype=None if op == "max" else "float32")
    assert carry_out(move, arrays).tobytes() == arrays[0].tobytes()


def test_sources_of_other_types_meet_in_fp32() -> None:
    half = [array.astype(np.float16) for array in floats(2)]
    small = tuple(Source(s.variable, "float16", 0, (COLUMNS * 2, ROWS), (1, COLUMNS * 2)) for s in sides(2))
    move = descriptor("add", sources=small, target_dtype="bfloat16", target_sizes=(COLUMNS * 2, ROWS),
                      target_steps=(1, COLUMNS * 2))  # fmt: skip
    want = (half[0].astype(np.float32) + half[1].astype(np.float32)).astype(ml_dtypes.bfloat16)
    assert carry_out(move, half, ("bfloat16", (ROWS, COLUMNS))).tobytes() == want.tobytes()


def test_seventeen_sources_are_refused() -> None:
    with pytest.raises(LoadError, match="17 sources; it takes at most 16"):
        carry_out(descriptor("add", sources=sides(17)), floats(17))


def test_copy_takes_one_source() -> None:
    with pytest.raises(LoadError, match="'copy' has 2 sources"):
        carry_out(descriptor("copy", sources=sides(2)), floats(2))


def test_an_operation_that_is_not_documented_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="'xor' is not modelled"):
        check_operation("xor", 1, ())


@pytest.mark.parametrize("shape", [(128, 1, 1, 64), (32, 4, 2, 32), (1, 8, 16, 64), (64, 128, 1, 1)])
def test_a_shape_swaps_the_outermost_and_the_innermost_dimension(shape: tuple[int, int, int, int]) -> None:
    array = floats(1)[0]
    flat, want = array.reshape(-1), np.empty(ROWS * COLUMNS, np.float32)
    a, b, c, d = shape
    for i, j, k, m in product(range(a), range(b), range(c), range(d)):
        # Position (i, j, k, m) of the result, i fastest, comes from where i and m have changed places.
        want[i + a * (j + b * (k + c * m))] = flat[m + d * (j + b * (k + c * i))]
    move = descriptor("transpose", transpose_shape=shape, transpose_element_size=4)
    assert carry_out(move, [array]).reshape(-1).tobytes() == want.tobytes()


def test_a_shape_of_two_dimensions_is_a_plain_transpose_of_two_byte_elements() -> None:
    array = np.arange(ROWS * COLUMNS, dtype=np.uint16).reshape(ROWS, COLUMNS)
    move = descriptor("transpose", source_dtype="uint16", target_dtype="uint16", source_sizes=(COLUMNS * 2, ROWS),
                      source_steps=(1, COLUMNS * 2), target_sizes=(ROWS * 2, COLUMNS), target_steps=(1, ROWS * 2),
                      transpose_shape=(ROWS, 1, 1, COLUMNS))  # fmt: skip
    assert (carry_out(move, [array], ("uint16", (COLUMNS, ROWS))) == array.T).all()


NAMED: dict[str, Any] = {"transpose_op": "WZXY", "transpose_element_size": 4}


@pytest.mark.parametrize("shape", [(1, 1, 128, 64), (1, 1, 32, 64), (1, 4, 32, 64), (2, 2, 16, 32)])
def test_a_named_order_swaps_the_inner_dimensions_of_every_block(shape: tuple[int, int, int, int]) -> None:
    array = floats(1)[0]
    _, _, rows, columns = shape
    want = array.reshape(-1, rows, columns).transpose(0, 2, 1)
    move = descriptor("transpose", transpose_shape=shape, **NAMED)
    assert carry_out(move, [array]).tobytes() == np.ascontiguousarray(want).tobytes()


@settings(max_examples=40, deadline=None)
@given(st.tuples(*[st.integers(1, 3)] * 2, *[st.integers(1, 9)] * 2), st.sampled_from([1, 2, 4, 8]), st.integers(1, 3))
def test_a_named_order_is_what_numpy_makes_of_it(shape: tuple[int, int, int, int], element: int, blocks: int) -> None:
    """W, Z, Y and X are the dimensions, outermost first; what comes out has Y and X exchanged, whatever W and Z are."""
    dtype = np.dtype(f"u{element}")
    number = blocks * int(np.prod(shape))
    array = np.random.default_rng(number).integers(0, 255, number * element, np.uint8).view(dtype)
    want = np.ascontiguousarray(array.reshape(-1, *shape).swapaxes(-1, -2))
    side = (number * element,), (1,)
    move = descriptor("transpose", source_sizes=side[0], source_steps=side[1], target_sizes=side[0],
                      target_steps=side[1], source_dtype=dtype.name, target_dtype=dtype.name, transpose_op="WZXY",
                      transpose_shape=shape, transpose_element_size=element)  # fmt: skip
    assert carry_out(move, [array], (dtype.name, (number,))).tobytes() == want.tobytes()


@pytest.mark.parametrize("op", ["WZYX", "XYZW", "ZWXY", ""])
def test_orders_that_nothing_establishes_are_refused(op: str) -> None:
    changes = {**NAMED, "transpose_op": op, "transpose_shape": (1, 1, 128, 64)}
    with pytest.raises(UnsupportedError, match="only transposes of order WZXY"):
        carry_out(descriptor("transpose", **changes), floats(1))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"transpose_shape": (128, 64), **NAMED}, "4 positive sizes"),
        ({"transpose_shape": (1, 1, 128, 48), **NAMED}, "no whole number of blocks"),
        ({"transpose_shape": (1, 1, 128, 64), **NAMED, "transpose_element_size": None}, "and None"),
        ({"transpose_shape": (128, 64)}, r"shape \[128, 64\]; 4 positive sizes"),
        ({"transpose_shape": (128, 1, 1, 0)}, "4 positive sizes"),
        ({"transpose_shape": (128, 1, 1, 32)}, "does not hold 32768 bytes"),
        ({"transpose_shape": (128, 1, 1, 64), "transpose_element_size": 2}, "does not hold"),
        ({"transpose_shape": (128, 1, 1, 64), "target_dtype": "bfloat16", "target_sizes": (128, 128),
          "target_steps": (1, 128)}, "cannot cast FLOAT32 to BFLOAT16"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(LoadError, match=words):
        carry_out(descriptor("transpose", **changes), floats(1))
