"""NKI kernels called in graphs: inlined, right by NumPy, known by line, refused where they do not fit."""

from __future__ import annotations

import base64
import importlib
import inspect
import json
import math
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neurontools
from formats.errors import NeuronError
from formats.hlo import Computation, Instruction, Module, PrimitiveType, array, tuple_of
from formats.hlo.attributes import Metadata, OutputAlias
from neurontools import nki
from neurontools.builder.native_kernel import TARGET, config_of, decode, encode
from neurontools.compiler.graph import Graph
from neurontools.compiler.map_command import operations_of
from neurontools.compiler.pipeline import Compiled, compile_module
from neurontools.compiler.rewriting import Builder
from neurontools.debugger import Session
from neurontools.hlo_interpreter import evaluate
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.framework.compiled import CompileKernel
from neurontools.nki.graph_calls import GraphCall, graph_call, graph_target
from tests.compiler.support import OURS, compiled, floats, integers, run, run_shared

HERE = Path(__file__).name
SOURCE = Path(__file__).read_text().splitlines()


def at(mark: str) -> int:
    """Return the number of the line that ends with a mark."""
    return next(number for number, line in enumerate(SOURCE, 1) if line.endswith(f"# {mark}"))


@nki.jit(platform_target="trn2")
def add(a_input, b_input, scale=1.0):  # type: ignore[no-untyped-def]
    a = nl.load(a_input)  # LOAD
    b = nl.load(b_input)
    total = nl.add(a, b)  # ADD
    if scale != 1.0:
        total = nl.multiply(total, scale)
    out = nl.ndarray(a_input.shape, dtype=a_input.dtype, buffer=nl.shared_hbm)
    nl.store(out, total)
    return out


@nki.jit(platform_target="trn2")
def update(cache, new):  # type: ignore[no-untyped-def]
    rows = nl.load(new)
    nl.store(cache[4 : 4 + new.shape[0]], rows)
    total = nl.ndarray((1, cache.shape[1]), dtype=cache.dtype, buffer=nl.shared_hbm)
    nl.store(total, nl.load(cache[0:1]))
    return cache, total


@nki.jit(platform_target="trn2")
def product(left_t, right):  # type: ignore[no-untyped-def]
    a, b = nl.load(left_t), nl.load(right)
    psum = nl.ndarray((left_t.shape[1], right.shape[1]), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=psum, stationary=a, moving=b)
    tile = nl.ndarray(psum.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=psum)
    out = nl.ndarray(psum.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out[2:6]  # a part


@nki.jit(platform_target="trn2")
def halves(x):  # type: ignore[no-untyped-def]
    """Each program doubles its half, then copies the other's."""
    rows = x.shape[0] // 2
    mine, other = nl.program_id(0), 1 - nl.program_id(0)
    doubled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    swapped = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[mine * rows : (mine + 1) * rows])
    nl.store(doubled[mine * rows : (mine + 1) * rows], nl.multiply(tile, 2.0))
    nisa.core_barrier(doubled, (0, 1))
    nl.store(swapped[mine * rows : (mine + 1) * rows], nl.load(doubled[other * rows : (other + 1) * rows]))
    return doubled, swapped


@nki.jit(platform_target="trn2")
def exchanged(x):  # type: ignore[no-untyped-def]
    """Each program sends its half, takes the other's, adds both, and sends the sum into the tile that it came from."""
    rows = x.shape[0] // 2
    mine, other = nl.program_id(0), 1 - nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[mine * rows : (mine + 1) * rows])
    came = nl.ndarray(tile.shape, dtype=tile.dtype)
    nisa.sendrecv(src=tile, dst=came, send_to_rank=other, recv_from_rank=other, pipe_id=0)
    total = nl.add(nl.multiply(tile, 2.0), came)
    nisa.sendrecv(src=total, dst=total, send_to_rank=other, recv_from_rank=other, pipe_id=0)
    nl.store(out[mine * rows : (mine + 1) * rows], total)
    return out


def called(b: Builder, call: GraphCall, *operands: Any, **attrs: Any) -> list[Any]:
    kinds = [(_HLO[one.dtype.name], one.shape) for one in call.results]
    node = b.graph.node("custom-call", operands, kinds, {"target": TARGET, "config": call.config.encode(), **attrs})
    return list(node.results)


_HLO = {"float32": "f32", "bfloat16": "bf16", "int32": "s32", "bool": "pred", "uint8": "u8"}


def test_a_kernel_between_operations() -> None:
    a, b, d = (floats(128, 64, seed=seed) for seed in range(3))
    call = graph_call(add, (a, b), {"scale": 0.5})

    def make(builder: Builder, x: Any, y: Any, z: Any) -> Any:
        first = called(builder, call, builder.op("multiply", x, y), y)[0]
        second = called(builder, call, first, z)[0]  # once more, with other tensors
        return builder.op("subtract", second, z)

    made = compiled(make, a, b, d)
    np.testing.assert_array_equal(run(made, a, b, d)[0], ((a * b + b) / 2 + d) / 2 - d)
    for seed in range(3):
        np.testing.assert_array_equal(run(made, a, b, d, seed=seed)[0], ((a * b + b) / 2 + d) / 2 - d)


def test_a_kernel_between_steps_that_two_cores_share() -> None:
    """What comes before it is done on both cores when it begins, and it is done when what comes behind begins."""
    a, b = floats(1024, 1024), floats(64, 1024, seed=1)
    call = graph_call(add, (b, b), {"scale": 0.5})

    def make(builder: Builder, x: Any, y: Any) -> Any:
        grown = builder.op("tanh", builder.op("multiply", x, x))
        part = builder.graph.add("slice", (grown,), "f32", (64, 1024), starts=(960, 0), strides=(1, 1))
        made = called(builder, call, part, y)[0]
        return [grown, builder.op("multiply", grown, builder.broadcast(builder.reduce(made, (0,), "add", 0.0),
                                                                       (1024, 1024), (1,)))]  # fmt: skip

    one, two = (compiled(make, a, b, options=OURS._replace(lnc=lnc)) for lnc in (1, 2))
    expected = run(one, a, b)
    np.testing.assert_allclose(expected[0], np.tanh(a * a), rtol=1e-5)
    neff = neurontools.open_neff(two.neff)
    assert all(any(neff.subgraphs[number].streams.values()) for number in range(2))
    for seed in (None, 1, 2, 3):
        for mine, other in zip(expected, run(two, a, b, seed=seed), strict=True):
            np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("lnc", [1, 2])
def test_programs_that_exchange_tiles(lnc: int) -> None:
    a = floats(64, 48)
    call = graph_call(exchanged[2], (a,), {})

    def make(builder: Builder, x: Any) -> Any:
        return builder.op("negate", called(builder, call, builder.op("add", x, x))[0])

    made = compiled(make, a, options=OURS._replace(lnc=lnc))
    low, high = 2 * a[:32], 2 * a[32:]
    want = -np.concatenate([2 * high + low, 2 * low + high])
    for seed in (None, 1, 2):
        np.testing.assert_array_equal(run(made, a, seed=seed)[0], want)


def test_operands_that_are_views_and_constants() -> None:
    a = floats(64, 128)
    call = graph_call(add, (np.zeros((128, 32), np.float32),) * 2, {})

    def make(builder: Builder, x: Any) -> Any:
        turned = builder.graph.add("transpose", (x,), "f32", (128, 64), permutation=(1, 0))
        part = builder.graph.add("slice", (turned,), "f32", (128, 32), starts=(0, 32), strides=(1, 1))
        return called(builder, call, part, builder.broadcast(builder.constant(3.0, "f32"), (128, 32), ()))[0]

    made = compiled(make, a)
    np.testing.assert_array_equal(run(made, a)[0], a.T[:, 32:] + 3)


def test_every_argument_is_an_operand_also_where_one_array_is_given_twice() -> None:
    a, b = floats(8, 4), floats(8, 4, seed=1)
    call = graph_call(add, (a, a), {})
    made = compiled(lambda builder, x, y: called(builder, call, x, y)[0], a, b)
    np.testing.assert_array_equal(run(made, a, b)[0], a + b)


def test_a_result_that_is_part_of_a_tensor() -> None:
    a, b = floats(16, 8), floats(16, 12, seed=1)
    call = graph_call(product, (a, b), {})
    assert call.results[0].shape == (4, 12)
    made = compiled(lambda builder, x, y: builder.op("negate", called(builder, call, x, y)[0]), a, b)
    np.testing.assert_allclose(run(made, a, b)[0], -(a.T @ b)[2:6], rtol=1e-6)


@pytest.mark.parametrize("shared", [False, True])
def test_a_kernel_that_writes_its_argument(shared: bool) -> None:
    """The operand keeps its values for everybody else; only the aliased result has the new ones."""
    cache, new = floats(32, 16), floats(3, 16, seed=1)
    call = graph_call(update, (cache, new), {})
    assert call.aliases == {0: 0} and call.is_sequence

    def make(builder: Builder, x: Any, y: Any) -> Any:
        both = called(builder, call, x, y, aliases={0: 0})
        return [both[0], both[1], builder.op("add", x, both[0])]

    made = compiled(make, cache, new)
    after = cache.copy()
    after[4:7] = new
    got = run_shared(made, [cache, new], 0) if shared else run(made, cache, new)
    for one, wanted in zip(got, (after, cache[:1], cache + after), strict=True):
        np.testing.assert_array_equal(one, wanted)


def test_two_programs_take_turns_on_one_core() -> None:
    x = floats(64, 16)
    call = graph_call(halves[2], (x,), {})
    assert len(decode(config_of(call.config.encode())).traces) == 2  # type: ignore[arg-type]
    made = compiled(lambda builder, one: called(builder, call, one), x)
    doubled, swapped = run(made, x)
    np.testing.assert_array_equal(doubled, 2 * x)
    np.testing.assert_array_equal(swapped, np.concatenate([2 * x[32:], 2 * x[:32]]))


def test_a_kernel_in_a_loop_of_the_device() -> None:
    a = floats(16, 8)
    call = graph_call(add, (a, a), {})

    def make(builder: Builder, x: Any, count: Any) -> Any:
        body, condition = Graph("body"), Graph("condition")
        for one in (body, condition):
            one.origin = builder.graph.origin
            one.parameter("f32", (16, 8)), one.parameter("s32", ())
        total, left = body.parameters
        inner = Builder(body)
        body.roots = [called(inner, call, total, total)[0], inner.op("subtract", left, inner.constant(1, "s32"))]
        test = Builder(condition)
        zero = test.constant(0, "s32")
        condition.roots = [
            condition.add("compare", (condition.parameters[1], zero), "pred", (), direction="GT", type="")
        ]
        kinds = [("f32", (16, 8)), ("s32", ())]
        return builder.graph.node("while", (x, count), kinds, {"body": body, "condition": condition}).results[0]

    made = compiled(make, a, np.array(3, np.int32))
    for turns in (0, 3):
        np.testing.assert_array_equal(run(made, a, np.array(turns, np.int32))[0], a * 2**turns)


def test_kernels_of_the_first_generation_run_their_whole_grid() -> None:
    from neurontools.neuronxcc import nki as first

    fl = first.language

    def tiles(x, bias=1.0):  # type: ignore[no-untyped-def]
        out = fl.ndarray(x.shape, dtype=x.dtype, buffer=fl.shared_hbm)
        rows = fl.program_id(0) * 32 + fl.arange(32)[:, None]
        columns = fl.program_id(1) * 16 + fl.arange(16)[None, :]
        fl.store(out[rows, columns], value=fl.load(x[rows, columns]) + bias)
        return out

    from neurontools.neuronxcc.nki.compiler.backends.neuron.FrameworkKernel import UnifiedKernel

    x = floats(64, 32)
    traced = UnifiedKernel.trace(tiles, grid=(2, 2), platform_target="trn2").dump_config(x, 2.0)
    assert traced.return_types == [(np.dtype("float32"), (64, 32))] and not traced.result_is_sequence

    def make(builder: Builder, one: Any) -> Any:
        attrs = {"target": TARGET, "config": traced.dumped_config.encode()}
        return builder.graph.node("custom-call", (one,), [("f32", (64, 32))], attrs).results[0]

    np.testing.assert_array_equal(run(compiled(make, x), x)[0], x + 2)


# From operation to instruction to line


def _module(call: GraphCall, *, shape: tuple[int, ...] = (32, 16), aliases: tuple[OutputAlias, ...] = ()) -> Module:
    """Return a module that calls a kernel at model.py:42 and negates its first result."""
    kind = array(PrimitiveType.F32, *shape)
    a, b = Instruction("a", "parameter", kind), Instruction("b", "parameter", kind, parameter_number=1)
    kinds = [array(PrimitiveType[_HLO[one.dtype.name].upper()], *one.shape) for one in call.results]
    kernel = Instruction("custom-call.3", "custom-call", tuple_of(*kinds) if call.is_sequence else kinds[0], [a, b],
                         custom_call_target=TARGET, backend_config=call.config.encode(), output_aliasing=aliases,
                         metadata=Metadata(source_file="model.py", source_line=42))  # fmt: skip
    parts = [a, b, kernel]
    if call.is_sequence:
        parts.append(Instruction("first", "get-tuple-element", kinds[0], [kernel], tuple_index=0))
    root = Instruction("negate.4", "negate", kinds[0], [parts[-1]])
    main = Computation("main", [*parts, root], root)
    return Module("calls", [main], main)


def _compiled(call: GraphCall) -> Compiled:
    return compile_module(_module(call), OURS)


def test_the_map_leads_from_the_call_to_lines_of_the_kernel() -> None:
    x = floats(32, 16)
    made = _compiled(graph_call(add, (x, x), {}))
    (graph,) = neurontools.open_neff(made.neff).subgraphs
    rows, _ = operations_of(graph)
    mine = {(Path(row.file or "").name, row.line) for row in rows if row.operation == "custom-call.3"}
    assert {(HERE, at("LOAD")), (HERE, at("ADD"))} <= mine
    (row,) = (row for row in rows if row.line == at("ADD"))
    assert row.operation == "custom-call.3" and list(row.pcs) == ["DVE"]


def test_stepping_shows_the_line_of_the_kernel_and_behind_it_the_line_of_the_model() -> None:
    x = floats(32, 16)
    made = _compiled(graph_call(add, (x, x), {}))
    session = Session(neurontools.open_neff(made.neff), {"input0": x, "input1": x}, timing=False)
    session.break_at(f"{HERE}:{at('ADD')}")
    assert session.continue_().reason == "breakpoint"
    levels = [(row.function, Path(row.file or "").name, row.line) for row in session.backtrace()]
    assert levels == [("add", HERE, at("ADD")), ("%custom-call.3", "model.py", 42)]


def test_findings_name_the_line_of_the_kernel() -> None:
    @nki.jit(platform_target="trn2")
    def unwritten(x, y):  # type: ignore[no-untyped-def]
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[0:16], src=x[0:16])
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)  # UNWRITTEN
        nisa.dma_copy(dst=out, src=tile)
        return out

    x = floats(32, 16)
    made = _compiled(graph_call(unwritten, (x, x), {}))
    result = neurontools.run(neurontools.open_neff(made.neff), {"input0": x, "input1": x}, checks="all")
    places = {(Path(one.site.source.file or "").name, one.site.source.line) for one in result.findings}
    assert (HERE, at("UNWRITTEN")) in places, result.findings
    clean = _compiled(graph_call(add, (x, x), {}))
    assert not neurontools.run(neurontools.open_neff(clean.neff), {"input0": x, "input1": x}, checks="all").findings


def test_the_interpreter_runs_the_kernel_by_itself() -> None:
    a, b = floats(32, 16), floats(32, 16, seed=1)
    np.testing.assert_array_equal(evaluate(_module(graph_call(add, (a, b), {})), [a, b]), -(a + b))


def test_the_same_text_comes_back() -> None:
    a = floats(16, 8)
    for kernel, arguments in ((add, (a, a)), (product, (a, a)), (update, (a, a[:3])), (halves[2], (a,))):
        config = graph_call(kernel, arguments, {}).config
        assert encode(decode(config_of(config.encode()))) == config  # type: ignore[arg-type]


# What does not fit


def _refused(make: Any, *inputs: np.ndarray[Any, Any], code: str, says: str) -> None:
    with pytest.raises(NeuronError, match=re.escape(f"[NCC_{code}]")) as caught:
        compiled(make, *inputs)
    assert says in str(caught.value) and "%test" in str(caught.value) and "model.py:42" in str(caught.value)


X = floats(32, 16)
ADDED = graph_call(add, (X, X), {})


def test_calls_that_do_not_fit_the_kernel() -> None:
    _refused(lambda b, x: called(b, ADDED, x, x)[0], floats(32, 8), code="EVRF064",
             says="takes float32[32,16] as a_input")  # fmt: skip
    _refused(lambda b, x: called(b, ADDED, x, x)[0], integers(32, 16), code="EVRF064", says="takes float32[32,16]")
    _refused(lambda b, x: called(b, ADDED, x)[0], X, code="EVRF064", says="takes 2 tensors, the call has 1")
    _refused(lambda b, x: called(b, ADDED, x, x, aliases={0: 0})[0], X, code="EVRF064",
             says="does not return operand 0 as result 0")  # fmt: skip
    other = ADDED._replace(results=ADDED.results * 2)
    _refused(lambda b, x: called(b, other, x, x)[0], X, code="EVRF064", says="returns 1 tensors, the call 2")
    wide = ADDED._replace(results=(ADDED.results[0]._replace(shape=(16, 32)),))
    _refused(lambda b, x: called(b, wide, x, x)[0], X, code="EVRF064", says="returns float32[32,16] as result 0")


def test_a_kernel_for_another_target() -> None:
    call = graph_call(nki.jit(add, platform_target="trn3"), (X, X), {})
    _refused(lambda b, x: called(b, call, x, x)[0], X, code="EUOC002", says="was traced for trn3")


def test_kernels_of_other_front_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config: dict[str, Any] = {"kernel_version": 1, "klir_binary": {"binary": str(tmp_path / "deep" / "add.klir")}}

    def call() -> GraphCall:
        return ADDED._replace(config=base64.b64encode(json.dumps(config).encode()).decode())

    _refused(lambda b, x: called(b, call(), x, x)[0], X, code="EVRF059", says="add.klir")
    (tmp_path / "here" / "deep").mkdir(parents=True)
    (tmp_path / "here" / "deep" / "add.klir").write_bytes(b"?")
    monkeypatch.chdir(tmp_path / "here")  # by its last folder and name
    _refused(lambda b, x: called(b, call(), x, x)[0], X, code="EUOC002", says="only kernels that neurontools' own nki")
    del config["kernel_version"]
    _refused(lambda b, x: called(b, call(), x, x)[0], X, code="EVRF065", says="version")


def _unpacked() -> tuple[dict[str, Any], dict[str, Any]]:
    whole = json.loads(base64.b64decode(ADDED.config))
    return whole, json.loads(zlib.decompress(base64.b64decode(whole["neurontools"])))


def _packed(whole: dict[str, Any], inner: Any) -> GraphCall:
    packed = base64.b64encode(zlib.compress(json.dumps(inner).encode())).decode()
    return ADDED._replace(config=base64.b64encode(json.dumps({**whole, "neurontools": packed}).encode()).decode())


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        found += _places(one, (*path, key))
    return found


WHOLE, INNER = _unpacked()
PLACES = _places(INNER)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from([None, -1, 1 << 40, 1.5, "x", [], {}, True, [[0, 0]]]))
def test_damaged_kernels_are_errors_or_kernels(place: tuple[Any, ...], value: Any) -> None:
    inner = json.loads(json.dumps(INNER))
    inside = inner
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    try:
        compiled(lambda b, x: called(b, _packed(WHOLE, inner), x, x)[0], X)
    except NeuronError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("change", [
    lambda trace: trace["ops"].insert(0, ["loop end", 0, {}, None]),
    lambda trace: trace["ops"].append(["loop", 0, {"condition": 0, "counting": True}, None]),
    lambda trace: trace.update(after=[[0, [1]]]), lambda trace: trace.update(after=[[1, [1]]]),
])  # fmt: skip
def test_loops_without_ends_and_waits_for_what_comes_later_are_refused(change: Any) -> None:
    inner = json.loads(json.dumps(INNER))
    change(inner["traces"][0])
    call = _packed(WHOLE, inner)
    _refused(lambda b, x: called(b, call, x, x)[0], X, code="EVRF065", says="")


def test_what_is_no_package_of_traces() -> None:
    for text in ("AAAA", "", base64.b64encode(zlib.compress(b"[]")).decode(), base64.b64encode(b"junk").decode()):
        call = ADDED._replace(config=json.dumps({**WHOLE, "neurontools": text}))
        _refused(lambda b, x, call=call: called(b, call, x, x)[0], X, code="EVRF065", says="cannot be read")


def test_kernels_whose_results_a_graph_cannot_have() -> None:
    def silent(x):  # type: ignore[no-untyped-def]
        nl.store(x, nl.multiply(nl.load(x), 2.0))
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x))
        return out

    with pytest.raises(NkiValidationError, match="writes its argument x and does not return it"):
        graph_call(nki.jit(silent), (X,), {})
    with pytest.raises(NkiValidationError, match="returns 3"):
        graph_call(nki.jit(lambda x: 3), (X,), {})


# What frameworks ask of the front end


def test_modules_that_frameworks_look_for() -> None:
    for name in ("nki", "neuronxcc.nki"):
        generic = importlib.import_module(f"neurontools.{name}.compile").GenericKernel
        unified = importlib.import_module(f"neurontools.{name}.compiler.backends.neuron.FrameworkKernel").UnifiedKernel
        assert issubclass(unified, generic) and issubclass(generic, nki.Kernel)
    assert importlib.import_module("neurontools.nki.framework.kernel").Kernel is nki.Kernel
    assert callable(importlib.import_module("neurontools.neuronxcc.driver.CommandDriver").main)
    from neurontools.neuronxcc.nki import typing

    assert all(inspect.isclass(getattr(typing, name)) for name in ("mutable", "immutable", "mutable_tensor", "tensor"))


def test_a_framework_copies_the_fields_and_sets_its_own_call(monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    fields = {one.name: getattr(add, one.name) for one in dataclasses.fields(add) if one.name != "func"}
    fields.setdefault("lnc", 1)
    kernel = CompileKernel(add.func, **fields, target="trn2")
    nir = dataclasses.replace(kernel, _enable_backend_opt=True)._cached_compile_to_bir(
        kernel._frontend_cls(enable_backend_opt=False), {"b_input": X, "a_input": X}, kernel._compile_opts()
    )
    made = nir.build_config()
    assert [(one.shape, one.dtype) for one in made.output_specs] == [((32, 16), np.dtype("float32"))]
    assert made.operand_output_aliases == {} and not nir.is_tuple_return and not made.has_collectives
    assert kernel.compile({"a_input": X, "b_input": X})[0].backend_config_b64 == made.backend_config_b64
    monkeypatch.setattr(nki.Kernel, "__call__", lambda self, *args: (self.func, args))
    assert add(1, 2) == (add.func, (1, 2))


def test_the_target_of_a_kernel_in_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    from neurontools.nki import graph_calls

    for name in ("NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(graph_calls, "_PRODUCT", "/nowhere/at/all")
    assert graph_target(None).name == "trn2" and graph_target("trn1").name == "trn1"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    assert graph_target("trn1").name == "trn3"


def test_an_instance_says_its_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from neurontools.nki import graph_calls

    for name in ("NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION"):
        monkeypatch.delenv(name, raising=False)
    product = tmp_path / "product_name"
    monkeypatch.setattr(graph_calls, "_PRODUCT", str(product))
    for text, wanted in (("trn1.32xlarge\n", "trn1"), ("c5.large\n", "trn2"), ("trn3.gen\n", "trn3")):
        product.write_text(text)
        assert graph_target(None).name == wanted


def test_files_with_infinite_numbers_verify() -> None:
    """Neither the number that a result is nor a variable of a kernel is written as JSON does not have it."""

    @nki.jit(platform_target="trn2")
    def filled(x, least=-math.inf):  # type: ignore[no-untyped-def]
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.maximum(nl.load(x), least))  # FILLED
        return out

    call = graph_call(filled, (X,), {})

    def make(b: Builder, x: Any) -> Any:
        lowest = b.broadcast(b.constant(-math.inf, "f32"), x.shape, ())
        return [b.op("maximum", called(b, call, x)[0], lowest), b.reduce(x, (1,), "maximum", -math.inf), lowest]

    made = compiled(make, X)
    neff = neurontools.open_neff(made.neff)
    assert [one for one in neff.verify() if one.severity == "error"] == []
    for got, wanted in zip(run(made, X), (X, X.max(1), np.full_like(X, -np.inf)), strict=True):
        np.testing.assert_array_equal(got, wanted)
    session = Session(neff, {"input0": X}, timing=False)
    session.break_at(f"{HERE}:{at('FILLED')}")
    session.continue_()
    assert ("least", -math.inf) in [(row.name, row.value) for row in session.info_locals()]
