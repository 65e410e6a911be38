"""What is known of kinds of tensors and operations gives what is worked out anew."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from formats.errors import NeuronError
from formats.targets import resolve_target
from neurontools.builder.trace import Trace
from neurontools.nki import isa as nisa
from neurontools.nki import kinds
from neurontools.nki import language as nl
from neurontools.nki.tracer import Tracer, tracing
from tests.counting import counted
from tests.nki.support import trace_body

TYPES = (nl.float32, nl.bfloat16, nl.int32, nl.uint8, nl.uint32, nl.float8_e4m3)
ENGINES = (nisa.engine.unknown, nisa.vector_engine, nisa.gpsimd_engine, nisa.scalar_engine, nisa.tensor_engine)


def forget() -> None:
    """Have nothing known."""
    kinds._forget()
    kinds._operations.clear()


def told(trace: Trace) -> list[Any]:
    """Return what operations say, with their tensors by name and offset."""
    found: list[Any] = []
    for op in trace.ops:
        parts = {name: getattr(op, name) for name in type(op).__slots__ if name != "source"}
        found.append((type(op).__name__, repr(parts)))
    return found


def outcome(steps: list[Callable[[], Any]], target: str, plain: bool = False) -> list[Any]:
    """Return what a body of steps comes to, and the errors of those that fail; `plain` knows nothing at any step."""
    errors: list[str] = []

    def body() -> None:
        for step in steps:
            if plain:
                forget()
            try:
                step()
            except (NeuronError, TypeError, AttributeError) as error:
                errors.append(str(error).partition(" at ")[0])

    t = Tracer(resolve_target(target))
    with tracing(t):
        body()
    return [*told(t.trace), *errors]


class Program:
    """A body of random calls on tiles of few shapes and types, so that much of it comes again, and some is refused."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.tensors: list[Any] = []
        self.steps = [self.allocate] * 4 + [self.step() for _ in range(40)]
        self.chance = self.random.getstate()

    def fresh(self) -> list[Callable[[], Any]]:
        """Return the steps of a run from the start."""

        def begin() -> None:
            self.random.setstate(self.chance)
            self.tensors.clear()

        return [begin, *self.steps]

    def step(self) -> Callable[[], Any]:
        return self.random.choice([self.allocate, self.part, self.pattern, *[self.call] * 6])

    def allocate(self) -> None:
        pick = self.random.choice
        shape = pick([(128, 64), (64, 64), (64, 128), (64, 1), (128, 1), (64, 8), (64, 2, 32)])
        buffer = pick([nl.sbuf, nl.sbuf, nl.psum, nl.shared_hbm])
        address = pick([None, None, (32, 0), (0, 1024)]) if buffer is not nl.shared_hbm and shape[0] < 128 else None
        self.tensors.append(nl.ndarray(shape, pick(TYPES), buffer, name="t", address=address))

    def part(self) -> None:
        pick = self.random.choice
        tensor = pick(self.tensors)
        first, size = pick([(0, 64), (32, 32), (16, 32), (0, 32), (64, 64), (33, 8)]), pick([32, 64, 1])
        key = pick([
            (slice(first[0], sum(first)),),
            (slice(first[0], sum(first)), slice(0, size)),
            (slice(None), slice(None, size)),
            (slice(None), slice(0, 64, 2)),
            (first[0],),
            (nl.ds(*first), slice(0, size)),
            (slice(0, 64), -1),
            (Ellipsis, slice(1, None)),
            (slice(True, 64.0),),
            (slice(0, 1 << 70),),
        ])  # fmt: skip
        self.tensors.append(tensor[key])

    def pattern(self) -> None:
        pick = self.random.choice
        tensor = pick(self.tensors)
        make = pick([
            lambda: tensor.ap([[tensor.strides[0], 64], [1, 32]], pick([0, 32, 4000])),
            lambda: tensor.reshape((tensor.shape[0], -1)),
            lambda: tensor.view(pick(TYPES)),
            lambda: tensor.permute((0, *range(len(tensor.shape) - 1, 0, -1))),
            lambda: tensor.expand_dim(1),
            lambda: tensor.broadcast(1, 32),
        ])  # fmt: skip
        self.tensors.append(make())

    def call(self) -> None:
        pick = self.random.choice
        # likely to fit each other
        like = pick(self.tensors)
        a, b, c = (pick([like, one]) for one in self.random.choices(self.tensors, k=3))
        op, other = pick([nl.add, nl.bitwise_and, nl.power, nl.rsqrt, np.maximum]), pick([None, nl.multiply, nl.bypass])
        operand = pick([2.0, 2, 0, True, a, None, "x"])
        pick([
            lambda: nisa.tensor_tensor(a, b, c, op, pick(ENGINES)),
            lambda: nisa.tensor_copy(a, b, pick(ENGINES), dtype=pick([None, None, nl.float32])),
            lambda: nisa.memset(a, pick([0, 0.0, -1, 1.5, float("nan"), True]), pick(ENGINES)),
            lambda: nisa.dma_copy(a, b, oob_mode=pick([*nisa.oob_mode]), dge_mode=pick([*nisa.dge_mode, 2]),
                                  engine=pick([*ENGINES[:1] * 3, nisa.engine.sync])),
            lambda: nisa.nc_matmul(a, b, c, is_transpose=pick([False, True, 1]), accumulate=pick([None, True, 0, 0.0])),
            lambda: nisa.tensor_reduce(a, op, b, axis=pick([1, -1, (1,), [1, 2], 2, 1.0]),
                                       negate=pick([False, True, 1])),
            lambda: nisa.tensor_scalar(a, b, op, operand, op1=other, operand1=pick([None, 1.0, c]),
                                       reverse0=pick([False, True, 1]), engine=pick(ENGINES)),
            lambda: nisa.activation(a, pick([nl.exp, nl.copy, nl.reciprocal, np.exp]), b, bias=pick([None, c, 0.5, 0]),
                                    scale=pick([1.0, 2, c, True]), reduce_op=pick([None, None, nl.add]),
                                    reduce_cmd=pick([*nisa.reduce_cmd])),
            lambda: nisa.max8(a, b),
            lambda: nisa.nc_find_index8(a, b, pick([c, 1.0])),
            lambda: nisa.nc_match_replace8(a, pick([a, b]), c, pick([0.0, 1, True, "x"]), pick([None, None, like])),
        ])()  # fmt: skip


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("seed", range(25))
def test_what_is_known_gives_what_is_worked_out_anew(seed: int, target: str) -> None:
    program = Program(seed)
    expected = outcome(program.fresh(), target, plain=True)
    forget()
    assert outcome(program.fresh(), target) == expected
    for other in ("trn1", "trn2", "trn3"):
        for more in range(seed + 1, seed + 4):
            outcome(Program(more).fresh(), other)
    assert outcome(program.fresh(), target) == expected


def a_tile(dtype: Any = nl.float32, buffer: Any = nl.sbuf, shape: tuple[int, ...] = (64, 64), **more: Any) -> Any:
    return nl.ndarray(shape, dtype, buffer, name="t", **more)


def tensor_tensor(**given: Any) -> None:
    nisa.tensor_tensor(**{"dst": a_tile(), "data1": a_tile(), "data2": a_tile(), "op": nl.add, **given})


def activation(**given: Any) -> None:
    nisa.activation(**{"dst": a_tile(), "op": nl.exp, "data": a_tile(), **given})


def tensor_scalar(**given: Any) -> None:
    nisa.tensor_scalar(**{"dst": a_tile(), "data": a_tile(), "op0": nl.add, "operand0": 1.0, **given})


def reduce(**given: Any) -> None:
    nisa.tensor_reduce(**{"dst": a_tile(shape=(64, 1)), "op": nl.add, "data": a_tile(), "axis": 1, **given})


def product(**given: Any) -> None:
    nisa.nc_matmul(**{"dst": a_tile(buffer=nl.psum), "stationary": a_tile(), "moving": a_tile(), **given})


def copy(**given: Any) -> None:
    nisa.dma_copy(**{"dst": a_tile(), "src": a_tile(buffer=nl.shared_hbm), **given})


def tensor_copy(**given: Any) -> None:
    nisa.tensor_copy(**{"dst": a_tile(), "src": a_tile(), **given})


def two_operators(**given: Any) -> None:
    tensor_scalar(**{"op1": nl.add, "operand1": 1.0, **given})


def bits(**given: Any) -> None:
    tensor_scalar(**{"dst": a_tile(nl.int32), "data": a_tile(nl.int32), "op0": nl.bitwise_and, "operand0": 3, **given})


def root(**given: Any) -> None:
    tensor_scalar(**{"op0": nl.rsqrt, "operand0": 0, **given})


def identity(**given: Any) -> None:
    activation(**{"op": nl.copy, **given})


def bits_of_rows(**given: Any) -> None:
    tiles = {"dst": a_tile(nl.int32, shape=(64, 1)), "data": a_tile(nl.int32)}
    reduce(**{**tiles, "op": nl.bitwise_and, **given})


def product_in_bank(**given: Any) -> None:
    product(**{"dst": a_tile(buffer=nl.psum, shape=(64, 1024))[:, 0:64], **given})


def product_at(**given: Any) -> None:
    product(**{"dst": a_tile(buffer=nl.psum, address=(0, 0)), **given})


def memset(**given: Any) -> None:
    nisa.memset(**{"dst": a_tile(), "value": 1.5, **given})


INTEGERS = {name: lambda: a_tile(nl.int32) for name in ("dst", "data1", "data2")}
DIFFERENCES: dict[str, tuple[Callable[..., None], dict[str, Any]]] = {
    "memory of two inputs": (tensor_tensor, {one: lambda: a_tile(buffer=nl.psum) for one in ("data1", "data2")}),
    "memory in HBM": (tensor_tensor, {"data2": lambda: a_tile(buffer=nl.shared_hbm)}),
    "types": (tensor_tensor, INTEGERS),
    "types of a bit operator": (tensor_tensor, {"op": nl.bitwise_and}),
    "operator": (tensor_tensor, {"op": nl.multiply}),
    "engine": (tensor_tensor, {"engine": nisa.gpsimd_engine}),
    "engine that it does not have": (tensor_tensor, {"engine": nisa.scalar_engine}),
    "partitions": (tensor_tensor, {"data2": lambda: a_tile(shape=(32, 64))}),
    "columns": (tensor_tensor, {"data2": lambda: a_tile(shape=(64, 32))}),
    "first partition": (tensor_tensor, {"data2": lambda: a_tile(shape=(128, 64))[33:97]}),
    "address": (tensor_tensor, {"data2": lambda: a_tile(address=(33, 0))}),
    "strides": (tensor_tensor, {"data2": lambda: a_tile(shape=(64, 128)).ap([[127, 64], [1, 64]])}),
    "elements of a partition": (
        tensor_tensor,
        {"data2": lambda: a_tile(shape=(64, 128)).ap([[64, 64], [1, 64]])},
    ),
    "indices": (tensor_tensor, {"data2": lambda: a_tile(shape=(64, 2, 64)).select(1, a_tile(nl.int32, shape=(1, 1)))}),
    "no tensor": (tensor_tensor, {"data2": 1.0}),
    "no operator": (tensor_tensor, {"op": [nl.add]}),
    "storage of another type": (activation, {"data": lambda: a_tile(nl.float8_e4m3fn)}),
    "function": (activation, {"op": nl.tanh}),
    "scale that is a column": (activation, {"scale": lambda: a_tile(shape=(64, 1))}),
    "scale that is no column": (activation, {"scale": a_tile}),
    "bias": (activation, {"bias": lambda: a_tile(shape=(64, 1))}),
    "bias in PSUM": (activation, {"bias": lambda: a_tile(buffer=nl.psum, shape=(64, 1))}),
    "reduce_cmd": (activation, {"reduce_cmd": nisa.reduce_cmd.reset_reduce}),
    "reduce_res": (activation, {"reduce_op": nl.add, "reduce_res": lambda: a_tile(shape=(64, 1))}),
    "reduce_res alone": (activation, {"reduce_res": lambda: a_tile(shape=(64, 1))}),
    "scale of a copy": (identity, {"scale": 2.0}),
    "operand that is a column": (tensor_scalar, {"operand0": lambda: a_tile(shape=(64, 1))}),
    "operand of another type": (tensor_scalar, {"operand0": lambda: a_tile(nl.bfloat16, shape=(64, 1))}),
    "operand of text": (tensor_scalar, {"operand0": "1.0"}),
    "reverse": (tensor_scalar, {"reverse0": True}),
    "second operator": (tensor_scalar, {"op1": nl.add, "operand1": 1.0}),
    "second operand alone": (tensor_scalar, {"operand1": 1.0}),
    "reverse that is no flag": (tensor_scalar, {"reverse0": 0.0}),
    "other second operator": (two_operators, {"op1": nl.multiply}),
    "second reverse": (two_operators, {"reverse1": True}),
    "second operand that is a column": (two_operators, {"operand1": lambda: a_tile(shape=(64, 1))}),
    "other bits": (bits, {"operand0": 5}),
    "bits of a fraction": (bits, {"operand0": 3.0}),
    "operand that is not taken": (root, {"operand0": 2}),
    "operator of one operand": (tensor_scalar, {"op0": nl.rsqrt}),
    "negate": (reduce, {"negate": True}),
    "axis": (reduce, {"axis": 0}),
    "axis of another shape": (reduce, {"data": lambda: a_tile(shape=(64, 1, 64))}),
    "is_transpose": (product, {"is_transpose": True}),
    "accumulate": (product, {"accumulate": True}),
    "accumulate that is no flag": (product, {"accumulate": 0.0}),
    "tile_position": (product, {"tile_position": (0, 0), "tile_size": (64, 64)}),
    "tile_position that there is none": (product, {"tile_position": (0, 7), "tile_size": (64, 64)}),
    "is_transpose that is no flag": (product, {"is_transpose": 0.0}),
    "columns of another bank": (product_in_bank, {"dst": lambda: a_tile(buffer=nl.psum, shape=(64, 1024))[:, 480:544]}),
    "byte of an address": (product_at, {"dst": lambda: a_tile(buffer=nl.psum, address=(0, 1984))}),
    "operator of a fold": (reduce, {"op": nl.maximum}),
    "negate of bits": (bits_of_rows, {"negate": True}),
    "perf_mode": (product, {"perf_mode": "double_row"}),
    "bank": (product, {"dst": lambda: a_tile(buffer=nl.psum, shape=(64, 1024))[:, 480:544]}),
    "product of halves": (product, {"moving": lambda: a_tile(nl.bfloat16)}),
    "engine of a copy": (tensor_copy, {"engine": nisa.scalar_engine}),
    "type of a copy": (tensor_copy, {"dtype": nl.int32}),
    "engine of a fill": (memset, {"engine": nisa.gpsimd_engine}),
    "number": (memset, {"value": 2}),
    "number that is a flag": (memset, {"value": True}),
    "no number": (memset, {"value": "1.5"}),
    "number of a whole type": (memset, {"dst": lambda: a_tile(nl.uint8), "value": 300}),
    "oob_mode": (copy, {"oob_mode": 0}),
    "dge_mode": (copy, {"dge_mode": nisa.dge_mode.swdge}),
    "queue": (copy, {"dge_mode": nisa.dge_mode.hwdge, "engine": nisa.scalar_engine}),
    "queue without its mode": (copy, {"engine": nisa.scalar_engine}),
    "priority": (copy, {"priority": 9}),
    "dst_rmw_op": (copy, {"dst_rmw_op": nl.add}),
    "rows that are stepped over": (copy, {"dst": lambda: a_tile(shape=(128, 64))[0:128:2]}),
    "copy into PSUM": (copy, {"dst": lambda: a_tile(buffer=nl.psum)}),
}


CALLS: dict[Callable[..., None], tuple[str, ...]] = {
    tensor_tensor: ("dst", "data1", "data2"), activation: ("dst", "data"), tensor_scalar: ("dst", "data"),
    reduce: ("dst", "data"), product: ("dst", "stationary", "moving"), copy: ("dst", "src"),
    tensor_copy: ("dst", "src"), memset: ("dst",),
}  # fmt: skip
OTHERS: list[Callable[[], Any]] = [
    lambda: a_tile(nl.int32), lambda: a_tile(buffer=nl.psum), lambda: a_tile(buffer=nl.shared_hbm),
    lambda: a_tile(shape=(32, 64)), lambda: a_tile(shape=(64, 32)), lambda: a_tile(shape=(128, 64))[33:97],
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_each_operand_counts(call: Callable[..., None]) -> None:
    for name in CALLS[call]:
        for made in OTHERS:

            def other(name: str = name, made: Callable[[], Any] = made) -> None:
                call(**{name: made()})

            steps = [call, other, call, other]
            expected = outcome(steps, "trn2", plain=True)
            assert expected != outcome([call] * 4, "trn2", plain=True)
            forget()
            assert outcome(steps, "trn2") == outcome(steps, "trn2") == expected


@pytest.mark.parametrize("case", DIFFERENCES)
def test_every_part_that_an_answer_depends_on_counts(case: str) -> None:
    call, changes = DIFFERENCES[case]

    def other() -> None:
        call(**{name: made() if callable(made) and made.__module__ == __name__ else made
                for name, made in changes.items()})  # fmt: skip

    if case != "tile_position":  # of which nothing is seen in the operation
        assert outcome([other], "trn2", plain=True)[-1:] != outcome([call], "trn2", plain=True)[-1:]
    for steps in ([call, call, other, other, call], [other, other, call, call, other]):
        expected = outcome(steps, "trn2", plain=True)
        forget()
        assert outcome(steps, "trn2") == expected
        assert outcome(steps, "trn2") == expected


@pytest.mark.parametrize("seed", range(12))
def test_every_index_counts(seed: int) -> None:
    """Views of views of some tiles: where they begin, too, as a pattern may go on in the next partition."""
    ends = [None, 0, 1, 2, 20, 32, 48, 63, 64, -1, -64, 65, True, np.int64(2), 2.0, kinds.FAR]
    chance = random.Random(seed)
    pick = chance.choice
    items = [
        *[lambda: slice(pick(ends), pick(ends), pick([None, None, 1, 2, -1]))] * 3,
        *[lambda: slice(None), lambda: pick(ends), lambda: nl.ds(pick(ends[1:]), pick(ends[1:]))],
        lambda: range(*sorted(chance.sample(range(8), 2))),
    ]
    keys: list[Any] = [tuple(pick(items)() for _ in range(pick([1, 2, 2, 3]))) for _ in range(200)]
    keys += [
        slice(0, 63),
        (slice(0, 1), slice(20, 24)),
        (nl.ds(0, 0),),
        (slice(0, 0),),
        (nl.ds(2, 1),),
        (2,),
        (Ellipsis, 1),
    ]
    chance.shuffle(keys)

    def looked_at() -> list[Any]:
        found: list[Any] = []

        def body() -> None:
            tile = a_tile(shape=(64, 64))
            starts = [
                tile,
                tile.ap([[64, 63], [1, 64]]),
                tile.ap([[64, 63], [1, 64]], 48),
                tile.ap([[64, 63], [1, 32]], 48),
                a_tile(buffer=nl.shared_hbm),
                tile[0:63, 0:32],
                tile.select(1, a_tile(nl.int32, shape=(1, 1))),
            ]
            for key in keys:
                for tensor in starts:
                    if forgetful:
                        forget()
                    try:
                        part = tensor[key]
                        found.append((part.shape, part.strides, part.offset, part.is_indirect(), part.dtype, part.name))
                        found.append(part.base_view[1:])
                    except (NeuronError, TypeError) as error:
                        found.append(str(error).partition(" at ")[0])

        trace_body(body)
        return found

    forgetful = True
    expected = looked_at()
    forgetful = False
    assert looked_at() == looked_at() == expected


def test_a_pattern_with_the_strides_of_a_tile_is_not_taken_for_one() -> None:
    def step() -> None:
        tensor_tensor(data2=a_tile(shape=(64, 128)).ap([[64, 64], [1, 64]]))

    forget()
    assert "partition stride 64" in outcome([tensor_tensor, step], "trn2")[-1]


def test_generations_know_their_own_and_a_lenient_launch_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps() -> list[Callable[[], Any]]:
        return [lambda: nisa.tensor_copy(a_tile(), a_tile(), nisa.scalar_engine)]

    forget()
    assert "ComputeOp" in outcome(steps(), "trn2")[0]
    assert "needs gen3" in outcome(steps(), "trn1")[0]
    assert [len(known) for _, known in kinds._operations.values()] == [1, 0]
    monkeypatch.setenv("NEURONTOOLS_LENIENT", "1")
    forget()
    outcome(steps() * 2, "trn2")
    assert not kinds._operations and not kinds.NOTHING


def test_types_and_those_of_their_storage_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Narrow floats on chip may be stored as wide ones."""

    def steps(dtype: Any) -> list[Callable[[], Any]]:
        return [lambda: tensor_scalar(operand0=a_tile(dtype, shape=(64, 1))),
                lambda: nisa.tensor_copy(a_tile(), a_tile(dtype))]  # fmt: skip

    def outcomes() -> list[Any]:
        found = []
        for precise in ("0", "1"):
            monkeypatch.setenv("NKI_PRECISE_FP", precise)
            found += [outcome(steps(one), "trn2") for one in (nl.float32, nl.bfloat16, nl.float32)]
        return found

    expected = []
    for precise in ("0", "1"):
        monkeypatch.setenv("NKI_PRECISE_FP", precise)
        expected += [outcome(steps(one), "trn2", plain=True) for one in (nl.float32, nl.bfloat16, nl.float32)]
    assert expected[0] != expected[1] != expected[4]
    forget()
    assert outcomes() == outcomes() == expected


def test_a_known_operation_takes_few_calls() -> None:
    def calls(count: int) -> int:
        def body() -> None:
            a, b = a_tile(), a_tile(buffer=nl.shared_hbm)
            for _ in range(count):
                nisa.dma_copy(a[0:32, 0:32], b[0:32, 32:64])

        return counted(lambda: trace_body(body), builtins=True)[0]

    calls(1)
    forget()
    unknown = calls(1)
    assert calls(1) < unknown - 15
    assert (calls(30) - calls(10)) / 20 < 40


def test_what_is_known_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    monkeypatch.setattr(kinds, "_MOST", 8)
    monkeypatch.setattr(kinds, "_MOST_PARTS", 8)
    monkeypatch.setattr(kinds, "_MOST_OPERATIONS", 4)

    def one(size: int) -> Callable[[], Any]:
        return lambda: nisa.tensor_copy(a_tile(shape=(64, size))[0:32], a_tile(shape=(64, 2 * size))[0:32, size:])

    steps = [one(size) for size in range(1, 40)]
    expected = outcome(steps, "trn2", plain=True)
    for _ in range(2):
        assert outcome(steps, "trn2") == expected
        assert len(kinds._kinds) <= 8
        assert kinds._parts <= 8
        assert len(kinds.WHOLES) <= 2 * 8
        assert all(len(known) <= 4 for _, known in kinds._operations.values())
