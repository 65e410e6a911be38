"""`nki.jit` objects, launch grids, traces of whole kernels, and what a launch does with arguments and results."""

from __future__ import annotations

import inspect
import sys
import types
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.faults import Fault
from emulator.settings import Settings
from neurontools.builder import BuildError
from neurontools.builder.trace import BarrierOp, DmaOp, SendRecvOp, View
from neurontools.nki.arguments import map_structure
from neurontools.nki.errors import KernelFaultError, NkiValidationError, UnsupportedError
from neurontools.nki.launch import launch, read_view, trace_kernel
from neurontools.nki.simulator import simulate_kernel
from tests.nki.support import trace

A = np.arange(12, dtype=np.float32).reshape(3, 4)


@nki.jit
def double(x: Any, scale: float = 2.0) -> Any:
    """Return x * scale."""
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), scale))
    return out


def test_the_jit_object_looks_like_its_function() -> None:
    assert double.__name__ == "double" and double.__doc__ == "Return x * scale."
    assert list(inspect.signature(double).parameters) == ["x", "scale"]
    assert "nl.multiply(nl.load(x), scale)" in inspect.getsource(double)
    assert isinstance(double[2], nki.Kernel) and double[2].grid == (2,) and double.grid == ()
    assert double[2].__name__ == "double"


def test_forms_of_the_decorator() -> None:
    @nki.jit()
    def plain() -> None: ...

    @nki.jit(platform_target="trn1", mode="trace")
    def older() -> None: ...

    assert isinstance(plain, nki.Kernel) and older.platform_target == "trn1"
    assert nki.simulate(older[1]).grid == (1,) and nki.simulate(older).platform_target == "trn1"
    assert trace(older, target=None)[0].trace.target.name == "trn1"  # type: ignore[arg-type]
    with pytest.raises(NkiValidationError, match="must be positive integers"):
        _ = plain[0]


def test_the_environment_decides_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    def target() -> str:
        return str(trace_kernel(double, (A,))[0].trace.target)

    assert target() == "trn3"
    monkeypatch.setenv("NKI_NC_VERSION", "gen3")
    assert target() == "trn2"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "inf2")
    assert target() == "inf2"
    assert str(trace_kernel(double, (A,), target="gen4")[0].trace.target) == "trn3"


def test_trace_of_a_kernel() -> None:
    (one,) = trace(double, A, 3.0)
    inputs, outputs = one.trace.inputs, one.trace.outputs
    assert [(a.name, a.kind, a.shape) for a in inputs] == [("x", "input", (3, 4))]
    assert [(a.kind, a.shape) for a in outputs] == [("output", (3, 4))]
    assert isinstance(one.trace.results, View) and one.trace.results.allocation is outputs[0]
    assert [a.born for a in one.trace.allocations] == [0, 0, 0, 1]


def test_arguments_keep_their_structure() -> None:
    marker = object()

    @nki.jit
    def kernel(pairs: Any, table: Any, other: Any, nothing: Any = None) -> Any:
        assert other is marker and nothing is None
        assert isinstance(pairs, list) and isinstance(pairs[1], tuple) and pairs[1][1] == "text"
        assert table["again"] is pairs[0]
        return {"out": pairs[0], "rest": [table["x"], 5]}

    x, y = A.copy(), A.astype(ml_dtypes.bfloat16)
    (one,) = trace(kernel, [x, (y, "text")], {"x": y, "again": x}, marker)
    assert [a.name for a in one.trace.inputs] == ["pairs_0", "pairs_1_0"]
    assert one.trace.results["rest"][1] == 5 and one.trace.results["out"].allocation is one.trace.inputs[0]
    empty: list[Any] = [1, (2, {"a": None})]
    assert map_structure(empty, lambda value, path: value) is empty


def test_names_of_tensors_are_unique_and_free_of_the_files_own() -> None:
    def kernel(SB: Any) -> Any:
        tiles = [nl.ndarray((4, 4), nl.float32, name="t") for _ in range(3)]
        return SB, [tile.allocation.name for tile in tiles]

    (one,) = trace(kernel, A)
    assert one.trace.inputs[0].name == "SB_1" and one.results[1] == ["t", "t_1", "t_2"]


def test_bad_arguments_and_results() -> None:
    with pytest.raises(NkiValidationError, match=r"argument x: dtype dtype\('float64'\) is not an NKI data type"):
        trace(double, np.zeros((2, 2)))
    with pytest.raises(NkiValidationError, match=r"the kernel returns .* in sbuf; results must be in HBM"):
        trace(nki.jit(lambda x: nl.load(x)), A)
    with pytest.raises(TypeError):
        double()


def test_two_cores_trace_twice_and_meet() -> None:
    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        scratch = nl.ndarray(x.shape, x.dtype, nl.private_hbm)
        rank = nl.program_id(0)
        assert (nl.num_programs(0), nl.num_programs(None), nl.program_ndim()) == (2, 2, 1)
        tile = nl.load(x)
        other = nl.ndarray(tile.shape, tile.dtype)
        nisa.sendrecv(src=tile, dst=other, send_to_rank=1 - rank, recv_from_rank=1 - rank, pipe_id=0)
        nisa.dma_copy(scratch, other)
        nisa.dma_copy(out[rank : rank + 1], tile[rank : rank + 1])
        nisa.core_barrier(out, (0, 1))
        return out if rank == 0 else None

    first, second = trace(kernel[2], A)
    assert [one.trace.program_id for one in (first, second)] == [0, 1] and first.trace.num_programs == 2
    assert [len(one.trace.outputs) for one in (first, second)] == [1, 1]  # matched by order
    assert second.trace.outputs[0].kind == "output"
    exchange = [op for op in second.trace.ops if isinstance(op, SendRecvOp)]
    assert [op.peer for op in exchange] == [0] and isinstance(second.trace.ops[-1], BarrierOp)
    copies = [op for op in second.trace.ops if isinstance(op, DmaOp)]
    assert copies[-1].dst.offset == 16 and copies[-1].src.partition == 1
    same = trace(kernel, A, lnc=2)
    assert len(same) == 2


def test_grids_of_one_program_and_too_many() -> None:
    @nki.jit
    def kernel() -> Any:
        return nl.program_ndim(), nl.program_id(), nl.num_programs()

    assert trace(kernel)[0].results == (0, 0, 1)
    assert trace(kernel[1])[0].results == (1, 0, 1)
    assert trace(kernel[nl.spmd_dim(nl.nc(2), 1)])[1].results == (1, 1, 2)
    with pytest.raises(NkiValidationError, match="trn1 \\(gen2\\) has 1"):
        trace(kernel[2], target="trn1")
    with pytest.raises(UnsupportedError, match="more than two programs"):
        trace(kernel[2, 2])


def test_a_kernel_inside_a_kernel_is_inlined() -> None:
    @nki.jit
    def outer(x: Any) -> Any:
        return double(double(x), scale=3.0)

    (one,) = trace(outer, A)
    assert len(one.trace.ops) == 6 and len(one.trace.outputs) == 1
    assert {op.source[0] for op in one.trace.ops} == {__file__}


class FakeRun:
    """Stands for builder and emulator: outputs are what a function makes of the inputs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, outputs: Any, fault: Any = None) -> None:
        self.traces: list[Any] = []
        builder, runtime = types.ModuleType("builder"), types.ModuleType("runtime")

        def build(traces: list[Any], name: str, schedule: bool) -> Any:
            assert not schedule  # unless NEURONTOOLS_SCHEDULE asks for it
            self.traces = traces
            return types.SimpleNamespace(to_bytes=name.encode, open=lambda: None, spilled=())

        def execute(neff: bytes, inputs: dict[str, Any], settings: Settings, **options: Any) -> Any:
            self.inputs, self.settings, self.options = inputs, settings, options
            return types.SimpleNamespace(outputs=outputs(self, inputs), fault=fault, hang=None, prints=())

        builder.build, runtime.execute = build, execute  # type: ignore[attr-defined]
        monkeypatch.setenv("NEURONTOOLS_LAUNCH_CACHE", "off")  # what the fake builds is for nobody else
        monkeypatch.setitem(sys.modules, "neurontools.builder", builder)
        monkeypatch.setattr("neurontools.builder", builder, raising=False)
        monkeypatch.setitem(sys.modules, "emulator.runtime", runtime)
        monkeypatch.setattr("emulator.runtime", runtime, raising=False)


def test_a_launch_converts_views_and_copies_back(monkeypatch: pytest.MonkeyPatch) -> None:
    @nki.jit
    def kernel(x: Any, y: Any) -> Any:
        out = nl.ndarray((3, 4), nl.float32, nl.shared_hbm)
        nisa.dma_copy(out, x)
        nisa.dma_copy(y, x)
        return out[1:, ::2], y, out.reshape((12,)), 7

    fake = FakeRun(
        monkeypatch,
        lambda fake, inputs: {one.name: inputs["x"] * (2 if one.name == "y" else 1) for one in fake.traces[0].outputs},
    )
    y = np.zeros((3, 4), np.float32)
    part, also_y, flat, seven = kernel(A, y)
    np.testing.assert_array_equal(part, A[1:, ::2])
    np.testing.assert_array_equal(flat, A.reshape(-1))
    np.testing.assert_array_equal(y, A * 2)
    np.testing.assert_array_equal(also_y, A * 2)
    assert seven == 7 and set(fake.inputs) == {"x", "y"}
    assert [one.name for one in fake.traces[0].outputs][1] == "y"

    locked = np.zeros((3, 4), np.float32)
    locked.flags.writeable = False
    with pytest.raises(NkiValidationError, match="argument y: the kernel writes it, but the array is read-only"):
        kernel(A, locked)


def test_assertions_hold_or_fail_after_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def kernel(x):\n    tile = nl.load(x)\n    assert nl.equal(tile, tile)\n"
    space: dict[str, Any] = {"nl": nl}
    exec(compile(source, "<docs>", "exec"), space)
    outcome = [np.ones((3, 4), np.float32)]
    FakeRun(monkeypatch, lambda fake, inputs: {"assert_0": outcome[0]})
    assert nki.simulate(space["kernel"])(A) is None
    outcome[0] = np.array([[1, 0, 1, 1]] * 3, np.float32)
    with pytest.raises(AssertionError, match=r"<docs>:3: assertion on .* does not hold: 3 of 12 elements are zero"):
        nki.simulate(space["kernel"])(A)


@pytest.mark.parametrize("statement", ["if nl.equal(t, t): pass", "assert not nl.equal(t, t)", "bool(t)", "t and 1"])
def test_the_truth_of_a_tensor_is_unknown_elsewhere(statement: str) -> None:
    space: dict[str, Any] = {"nl": nl}
    exec(f"def kernel(x):\n    t = nl.load(x)\n    {statement}\n", space)
    with pytest.raises(NkiValidationError, match="is not known while tracing"):
        trace(space["kernel"], A)


def test_assertions_in_a_test_module_are_seen_too() -> None:
    def kernel(x: Any) -> None:
        tile = nl.load(x)
        assert nl.equal(tile, tile)

    (one,) = trace(kernel, A)
    assert [o.kind for o in one.observations] == ["assert"] and len(one.trace.outputs) == 1


def test_faults_become_errors_and_options_are_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    from neurontools.program.configuration import RunConfiguration
    from neurontools.program.launches import Launches, using

    FakeRun(monkeypatch, lambda fake, inputs: {}, fault=Fault("oob", "out of bounds"))
    with pytest.raises(KernelFaultError, match="double: out of bounds"):
        double(A)
    fake = FakeRun(monkeypatch, lambda fake, inputs: {fake.traces[0].outputs[0].name: inputs["x"]})
    launches = Launches(RunConfiguration(seed=3, timing=False, lnc=2))
    with using(launches):
        simulate_kernel(double, (A,))
    assert fake.settings == Settings(seed=3, timing=False) and len(fake.traces) == 2
    assert callable(fake.options.pop("guard"))
    assert fake.options == {"checks": (), "observers": [], "progress": None}
    assert [one.made.name for one in launches.done] == ["double"]
    launch(double, (A,), {})
    assert len(fake.traces) == 1


def test_read_view_reinterprets_bytes() -> None:
    def kernel(x: Any) -> Any:
        return x.view(nl.uint16)[1:, 1::2]

    (one,) = trace(kernel, A)
    got = read_view(one.results, A)
    np.testing.assert_array_equal(got, A.view(np.uint16)[1:, 1::2])


def test_programs_that_make_shared_tensors_in_another_order_are_refused() -> None:
    def kernel(x: Any, same: bool) -> Any:
        names = ["first", "second"] if nl.program_id(0) == 0 else ["second", "first"]
        made = {name: nl.ndarray(x.shape, x.dtype, nl.shared_hbm, name=name) for name in names}
        for number, name in enumerate(("first", "second")):
            half = nl.ds(2 * nl.program_id(0), 2)
            nisa.dma_copy(made[name][:, half], nl.full((3, 2), number, nl.float32))
        return made["first"], made["second"]

    with pytest.raises(BuildError, match="program 1 makes shared tensor second where program 0 makes first"):
        launch(nki.jit(kernel)[2], (A, False), {}, target="trn2")

    def other(x: Any) -> Any:
        return nl.ndarray(x.shape, nl.int32 if nl.program_id(0) else nl.float32, nl.shared_hbm, name="out")

    with pytest.raises(
        BuildError, match=r"shares out \(48 bytes of int32\), program 0 shares out \(48 bytes of fp32\)"
    ):
        launch(nki.jit(other)[2], (A,), {}, target="trn2")


def test_an_exchange_has_the_name_that_the_kernel_gives_it() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        tile, other, there = nl.load(x), nl.ndarray(x.shape, x.dtype), 1 - nl.program_id(0)
        nisa.sendrecv(tile, other, there, there, name="swap")
        with pytest.raises(NkiValidationError, match="dma_engine is 'dma', must be nisa"):
            nisa.sendrecv(tile, other, there, there, dma_engine="dma")
        with pytest.raises(NkiValidationError, match="name is 3, must be text"):
            nisa.sendrecv(tile, other, there, there, name=3)  # type: ignore[arg-type]
        nisa.dma_copy(out[nl.program_id(0) : nl.program_id(0) + 1], other[0:1])
        return out

    first, _ = trace(nki.jit(kernel)[2], A)
    assert [op.name for op in first.trace.ops if isinstance(op, SendRecvOp)][:1] == ["swap"]


def test_an_input_that_the_second_program_alone_writes_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        nisa.dma_copy(x if nl.program_id(0) else out, nl.full(x.shape, 5.0 + nl.program_id(0), nl.float32))
        return out

    x = A.copy()
    np.testing.assert_array_equal(nki.jit(kernel)[2](x), np.full_like(A, 5))
    np.testing.assert_array_equal(x, np.full_like(A, 6))


def test_an_argument_that_is_returned_but_not_written_may_be_read_only() -> None:
    x = A.copy()
    x.flags.writeable = False
    np.testing.assert_array_equal(nki.jit(lambda x: x)(x), A)
    with pytest.raises(NkiValidationError, match="argument x: the kernel writes it, but the array is read-only"):
        nki.jit(lambda x: x.__setitem__(..., 1.0))(x)
