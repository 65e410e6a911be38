"""Words of small traces: what the streams hold, checked against the forms of real files."""

from __future__ import annotations

import numpy as np
import pytest

from formats import isa
from formats.dtypes import Dtype
from formats.isa import AccessPattern, Fp32Pass, TransposeMode
from formats.neff import Neff, open_neff
from neurontools.builder import BuildError, build, transfers
from neurontools.builder.trace import DmaOp, View
from neurontools.builder.transfers import Side, TransferEncoder, descriptors
from tests.builder.maker import BF16, F16, F32, I32, Maker

Word = isa.Instruction


def built(m: Maker) -> Neff:
    """Return the NEFF of a trace; it verifies clean, but for a trace without results."""
    neff = open_neff(build([m.trace], "test").to_bytes())
    assert [one for one in neff.verify() if one.message != "the graph has no output"] == []
    return neff


def body(neff: Neff, engine: str, subgraph: int = 0) -> list[Word]:
    """Return an engine's words behind the prelude."""
    words = list(neff.subgraphs[subgraph].streams[engine])
    prelude = 1 if neff.target.generation == "gen2" else 2
    assert words[0] == isa.SetOrderingMode(ordering_mode="relaxed")
    assert prelude == 1 or isinstance(words[1], isa.OpcodeCC)
    return words[prelude:]


def multiply(
    m: Maker, dtype: Dtype, steps: int = 1, *, accumulate: bool | None = None, transpose: bool = False
) -> None:
    left, right, result = m.sbuf((128, 128), dtype), m.sbuf((128, 512), dtype), m.psum((128, 512))
    for _ in range(steps):
        m.matmul(result, left, right, accumulate, transpose)
        m.memset(left, 1.0)


def test_two_byte_matmul_reads_columns_backwards() -> None:
    m = Maker()
    multiply(m, F16)
    load, matmul = body(built(m), "PE")
    assert isinstance(load, isa.LoadWeights) and isinstance(matmul, isa.MatMul)
    assert load.src == AccessPattern(0x4000 + 127 * 2, (-1, 0, -32), (32, 1, 4))
    assert matmul.src == AccessPattern(0x4100, (1, 0, 0), (512, 1, 1))
    assert matmul.dst == AccessPattern(0x2000000, (1, 0, 0), (512, 1, 1))
    assert (load.fp32_mode, matmul.fp32_mode, matmul.acc_flags) == (Fp32Pass.NONE, Fp32Pass.NONE, 3)
    assert (load.rows, load.cols, matmul.rows, matmul.cols) == (128, 128, 128, 128)
    assert matmul.dst_dtype == 0


def test_fp32_matmul_takes_two_passes() -> None:
    m = Maker()
    multiply(m, F32, 3)
    words = body(built(m), "PE")
    assert [type(word) for word in words] == [isa.LoadWeights, isa.MatMul] * 6
    loads, matmuls = words[::2], words[1::2]
    assert [word.fp32_mode for word in loads] == [Fp32Pass.LOW, Fp32Pass.HIGH] * 3
    assert {word.fp32_mode for word in matmuls} == {Fp32Pass.LOW_HIGH}
    assert [word.acc_flags for word in matmuls] == [1, 0, 0, 0, 0, 2]
    assert loads[0].src == AccessPattern(0x4000 + 127 * 4, (-1, 0, 0), (128, 1, 1))
    # Only HIGH passes signal, since only they complete a sum.
    assert all(not word.update for word in [*loads, *matmuls[::2]])


def test_groups_follow_the_tile_and_not_the_loop() -> None:
    m = Maker()
    outside = m.psum((128, 64))
    left, right, target = m.sbuf((128, 128), BF16), m.sbuf((128, 64), BF16), m.sbuf((128, 64))
    for _ in range(2):
        inside = m.psum((128, 64))
        for _ in range(3):
            m.matmul(inside, left, right)
            m.matmul(outside, left, right)
        m.copy(target, inside)
    m.copy(target, outside)
    flags: dict[int, list[int]] = {}
    for word in body(built(m), "PE"):
        if isinstance(word, isa.MatMul):
            flags.setdefault(word.dst.address, []).append(word.acc_flags)
    assert sorted(flags.values()) == [[1, 0, 0, 0, 0, 2], [1, 0, 2], [1, 0, 2]]


def test_accumulate_is_honoured_and_a_memset_counts_as_written() -> None:
    m = Maker()
    left, right = m.sbuf((128, 128), BF16), m.sbuf((128, 64), BF16)
    zeroed, forced = m.psum((128, 64)), m.psum((128, 64))
    m.memset(zeroed, 0.0)
    m.matmul(zeroed, left, right)
    m.matmul(forced, left, right, True)
    m.matmul(forced, left, right, False)
    m.matmul(forced, left, right, None)
    assert [w.acc_flags for w in body(built(m), "PE") if isinstance(w, isa.MatMul)] == [2, 2, 1, 2]


def test_a_tile_written_in_part_is_cleared_where_it_is_not() -> None:
    m = Maker()
    left, right, result = m.sbuf((128, 128), BF16), m.sbuf((128, 64), BF16), m.psum((128, 64))
    m.matmul(m.view(result, slice(None), slice(8, 24)), left, m.view(right, slice(None), slice(0, 16)))
    m.matmul(result, left, right)
    neff = built(m)
    fills = [word for word in body(neff, "DVE") if isinstance(word, isa.Memset)]
    start = 0x2000000
    assert [(w.dst.address - start, w.dst.counts[0], w.count) for w in fills] == [(0, 8, 8), (96, 40, 40)]
    assert [w.acc_flags for w in body(neff, "PE") if isinstance(w, isa.MatMul)] == [3, 2]


def test_weights_stay_loaded_until_they_change() -> None:
    m = Maker()
    left, right = m.sbuf((128, 128), BF16), m.sbuf((128, 64), BF16)
    for _ in range(3):
        m.matmul(m.psum((128, 64)), left, right)
    m.memset(left, 2.0)
    m.matmul(m.psum((128, 64)), left, right)
    names = [word.NAME for word in body(built(m), "PE")]
    assert names == ["LDWEIGHTS", "MATMUL", "MATMUL", "MATMUL", "LDWEIGHTS", "MATMUL"]


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_transposes(target: str) -> None:
    m = Maker(target)
    data, identity = m.sbuf((128, 64)), m.sbuf((128, 128))
    m.matmul(m.psum((64, 128)), data, identity, False, True)
    words = body(built(m), "PE")
    modes = [(w.NAME, w.fp32_mode, w.transpose_mode) for w in words]
    if target == "trn1":
        assert modes == [
            ("LDWEIGHTS", Fp32Pass.LOW, TransposeMode.DISABLED),
            ("MATMUL", Fp32Pass.HIGH, TransposeMode.DISABLED),
            ("LDWEIGHTS", Fp32Pass.HIGH, TransposeMode.DISABLED),
            ("MATMUL", Fp32Pass.HIGH, TransposeMode.DISABLED),
        ]
    else:
        assert modes == [
            ("LDWEIGHTS", Fp32Pass.LOW, TransposeMode.ENABLED),
            ("MATMUL", Fp32Pass.LOW_HIGH, TransposeMode.ENABLED),
        ]
        assert words[1].acc_flags == 3
    assert (words[0].rows, words[0].cols) == (128, 64)


def test_a_transpose_into_another_type_multiplies() -> None:
    m = Maker()
    data, identity = m.sbuf((128, 64), BF16), m.sbuf((128, 128), BF16)
    m.matmul(m.psum((64, 128), BF16), data, identity, False, True)
    m.matmul(m.psum((64, 128), F32), data, identity, False, True)
    matmuls = [word for word in body(built(m), "PE") if isinstance(word, isa.MatMul)]
    assert [(w.transpose_mode, w.dst_dtype) for w in matmuls] == [(1, 0), (0, 0)]


def test_gen3_loads_and_stores_are_direct() -> None:
    m = Maker()
    x, y, tile = m.input("x", (256, 512), F16), m.output("y", (256, 512)), m.sbuf((128, 512), F16)
    m.dma(tile, m.view(x, slice(128, 256)))
    m.dma(m.view(y, slice(0, 128)), tile)
    neff = built(m)
    (load,), (store, end) = body(neff, "SP"), body(neff, "Pool")
    assert load.text.split("dge_op")[0] == "PSEUDO_DMA_DIRECT2D "
    assert (load.src, load.dst) == (isa.DmaAddress("table", 0, 128 * 1024), isa.DmaAddress("variable", 0, 0x4000))
    assert load.src_pattern == ((1024, 1), (128, 1)) and load.dst_pattern == ((0x40000, 1), (128, 1))
    assert (load.src_element_size, load.dst_element_size, load.semaphore, load.semaphore_increment) == (
        1024,
        1024,
        8,
        16,
    )
    # The store casts, waits for the load, and the program ends behind it.
    assert (store.src_element_size, store.dst_element_size) == (1024, 2048)
    assert (store.src_dtype, store.dst_dtype) == (F16, F32)
    assert store.wait == isa.Wait(isa.WaitMode.SEM_GE, 8, 16) and store.semaphore == 24
    assert isinstance(end, isa.Nop) and end.wait == isa.Wait(isa.WaitMode.SEM_GE, 24, 16)
    sg = neff.subgraphs[0]
    assert {name: (q.kind, q.owner, q.semaphores[0]) for name, q in sg.queues.items()} == {
        "qSPDynamicHW": ("dynamic", "sp", 8),
        "qPoolDynamic": ("dynamic", "pool", 24),
    }
    assert sg.queues["qPoolDynamic"].scratch_size == 16384
    assert [sg.variables_by_id[i].name for i in sg.dge_table.entries] == ["x", "y"]  # type: ignore[union-attr]


def test_gen2_transfers_are_listed() -> None:
    m = Maker("trn1")
    x, y, tile = m.input("x", (128, 64)), m.output("y", (64, 128)), m.sbuf((128, 64))
    m.dma(tile, x)
    m.dma(y, tile, "Activation", transpose=True)
    neff = built(m)
    (load,), (store,) = body(neff, "SP"), body(neff, "Activation")
    assert (load.queue, load.block_id, store.queue, store.block_id) == ("qSPIO0", 0, "qActIO0", 0)
    sg = neff.subgraphs[0]
    copy, swap = sg.dma_blocks["qSPIO0", 0].descriptors[0], sg.dma_blocks["qActIO0", 0].descriptors[0]
    assert (copy.source, copy.source_sizes, copy.source_steps) == ("x", (256, 128), (1, 256))
    assert (copy.target, copy.target_sizes, copy.target_steps) == ("SB", (256, 128), (1, 0x40000))
    assert (swap.op, swap.source_sizes, swap.source_steps) == ("transpose", (4, 128, 64), (1, 0x40000, 4))
    assert (swap.target_sizes, swap.target_steps) == ((4, 8192), (1, 4)) or swap.target_steps == (1, 4, 512)
    assert sg.dma_blocks["qSPIO0", 0].semaphore == 8 and "qPoolIO0" not in sg.queues


def test_deep_patterns_become_a_list_of_descriptors() -> None:
    m = Maker()
    x, tile = m.input("x", (4, 8, 6, 10)), m.sbuf((8, 4, 3, 5))
    source = m.view(x, slice(None), slice(None), slice(0, 6, 2), slice(0, 10, 2))
    swapped = source._replace(dims=(source.dims[1], source.dims[0], *source.dims[2:]))
    m.dma(tile, swapped)
    neff = built(m)
    (trigger,) = body(neff, "SP")
    assert isinstance(trigger, isa.PseudoDmaTrigger) and trigger.queue == "qSPIO0"
    block = neff.subgraphs[0].dma_blocks["qSPIO0", 0]
    assert all(len(d.source_sizes) <= 4 for d in block.descriptors)
    assert sum(int(np.prod(d.target_sizes)) for d in block.descriptors) == 8 * 4 * 3 * 5 * 4


def test_lists_of_one_shape_differ_in_places_alone() -> None:
    """Copies of one shape share what their descriptors have in common: each is as if no other had come before."""
    m = Maker("trn1")
    x, y, tiles = m.input("x", (128, 64)), m.input("y", (300, 64)), [m.sbuf((128, 64)) for _ in range(2)]
    for tile, source in ((tiles[0], x), (tiles[1], m.view(y, slice(100, 228)))):
        m.dma(tile, source, "SP")
    ends = [(Side(0, 1, "x"), Side(512, 0, "SB")), (Side(25600, 2, "y"), Side(1024, 0, "SB"))]
    together, encoder = [], TransferEncoder(direct=False)
    for op, (src, dst) in zip(m.trace.ops, ends, strict=True):
        assert isinstance(op, DmaOp)
        together.append(descriptors(op, encoder.encode(op), src, dst))
    assert encoder.encode(m.trace.ops[0]) is encoder.encode(m.trace.ops[1])
    for op, (src, dst), found in zip(m.trace.ops, ends, together, strict=True):
        transfers._encoded.clear()
        assert found == descriptors(op, TransferEncoder(direct=False).encode(op), src, dst)
    assert [(one.source, one.source_offset, one.target_offset) for (one,) in together] == [
        ("x", 0, 512), ("y", 25600, 1024)]  # fmt: skip


def test_long_runs_fit_their_field() -> None:
    m = Maker()
    x, tile = m.input("x", (16, 40000)), m.sbuf((16, 40000))
    m.dma(tile, x)
    (word,) = body(built(m), "SP")
    assert word.src_element_size * word.src_pattern.counts[0] * word.src_pattern.counts[1] == 16 * 160000


def test_semaphores_of_a_queue_take_turns() -> None:
    m = Maker()
    x, tile, total = m.input("x", (128, 8)), m.sbuf((128, 8)), m.sbuf((128, 8))
    for _ in range(20):
        m.dma(tile, x, "SP")
        m.add(total, total, tile)
    neff = built(m)
    assert [word.semaphore for word in body(neff, "SP")] == [*range(8, 24), *range(8, 12)]
    waits = [word.wait for word in body(neff, "DVE") if word.wait and word.wait.index >= 8]
    assert [(wait.index, wait.value) for wait in waits][-5:] == [(23, 16), (8, 32), (9, 32), (10, 32), (11, 32)]


def test_loads_take_turns_on_two_engines_while_scalar_is_idle() -> None:
    for busy in (False, True):
        m = Maker()
        x, tile = m.input("x", (128, 8)), m.sbuf((128, 8))
        if busy:
            m.copy(tile, tile, "Activation")
        for _ in range(4):
            m.dma(tile, x)
        neff = built(m)
        loads = [sum(isinstance(w, isa.PseudoDmaDirect2d) for w in body(neff, e)) for e in ("SP", "Activation")]
        assert loads == ([4, 0] if busy else [2, 2])


def test_signals_come_only_from_words_that_somebody_awaits() -> None:
    m = Maker()
    a, b, c = (m.sbuf((128, 8)) for _ in range(3))
    m.memset(a, 1.0)
    m.memset(b, 2.0)
    m.copy(c, b, "Activation")
    m.copy(c, a, "Activation")
    neff = built(m)
    first, second = body(neff, "DVE")
    assert not first.update and second.update == isa.Update(isa.UpdateMode.SEM_INC, 6, 1)
    copies = body(neff, "Activation")
    # The second copy needs the earlier fill, which the first copy's wait implies.
    assert [copy.wait for copy in copies] == [isa.Wait(isa.WaitMode.SEM_GE, 6, 1), isa.Wait(0, 0, 0)]


def test_dve_waits_for_its_own_results_as_real_files_do() -> None:
    m = Maker()
    a, b = m.sbuf((128, 8)), m.sbuf((128, 8))
    m.memset(a, 1.0)
    m.copy(b, a)
    m.memset(a, 2.0)
    words = body(built(m), "DVE")
    assert [bool(word.wait) for word in words] == [False, True, False]
    assert words[0].update.index == words[1].wait.index == 6


def test_more_waits_stand_in_front() -> None:
    m = Maker()
    x = m.input("x", (128, 8))
    a, b, c, total = (m.sbuf((128, 8)) for _ in range(4))
    m.dma(a, x, "SP")
    m.dma(b, x, "Pool")
    m.copy(c, c, "Activation")
    m.compute(
        isa.ScalarTensorTensor,
        "DVE",
        {"src": a, "immediate0_pointer": m.view(c, slice(None), slice(0, 1)), "src1": b, "dst": total},
        op0=isa.AluOp.MULTIPLY,
        op1=isa.AluOp.ADD,
    )
    wait, word = body(built(m), "DVE")
    assert isinstance(wait, isa.EventSemaphore) and isinstance(word, isa.ScalarTensorTensor)
    assert {wait.wait.index, wait.wait2.index, word.wait.index} == {4, 8, 24}


def test_element_wise_views_are_cut_into_words() -> None:
    m = Maker()
    tile, out = m.sbuf((128, 4, 4, 4, 4)), m.sbuf((128, 4, 4, 4, 4))
    key = (slice(None), *[slice(0, 4, 3)] * 4)
    m.add(m.view(out, *key), m.view(tile, *key), m.view(tile, *key))
    words = body(built(m), "DVE")
    assert len(words) == 2 and all(word.dst.counts == (2, 2, 2) for word in words)
    assert words[1].dst.address - words[0].dst.address == words[1].src0.address - words[0].src0.address == 3 * 64 * 4


def test_reductions_cut_kept_dimensions_only() -> None:
    m = Maker()
    tile, out = m.sbuf((128, 3, 5, 7, 8)), m.sbuf((128, 2, 3, 2))
    source = m.view(tile, slice(None), slice(0, 3, 2), slice(0, 5, 2), slice(0, 7, 6), slice(0, 8, 2))
    m.compute(isa.TensorReduce, "DVE", {"src": source, "dst": out}, op=isa.AluOp.ADD, dims=isa.ReduceDims.X)
    m.compute(
        isa.TensorReduce, "DVE", {"src": tile, "dst": m.sbuf((128, 1))}, op=isa.AluOp.MAX, dims=isa.ReduceDims.XYZW
    )
    first, *rest = body(built(m), "DVE")
    assert first.src.counts == (4, 2, 3, 2) and first.dims == isa.ReduceDims.X
    assert first.dst.counts == (2, 3, 2, 1)
    assert [(w.dims, w.src.counts) for w in rest] == [(isa.ReduceDims.X, (840, 1, 1, 1))]


def test_activations_load_their_sets() -> None:
    m = Maker()
    a, bias = m.sbuf((128, 8)), m.sbuf((128, 1))
    for name in ("copy", "exp", "tanh", "gelu", "relu", "exp", "floor"):
        m.compute(isa.Activate, "Activation", {"src": a, "dst": a}, function=name)
    m.compute(isa.Activate, "Activation", {"src": a, "dst": a, "bias_pointer": bias}, function="exp", scale=0.5)
    neff = built(m)
    words = body(neff, "Activation")
    assert [w.table_select if isinstance(w, isa.ActTableLoad) else str(w.function.name).lower() for w in words] == [
        0,
        "copy",
        "exp",
        "tanh",
        1,
        "gelu",
        "relu",
        0,
        "exp",
        2,
        "floor",
        0,
        "exp",
    ]
    sets = neff.subgraphs[0].activation_sets
    assert [one.name for one in sets] == ["exp_and_others", "gelu_and_others", "neurontools"]
    assert {(f.name, f.func_id) for f in sets[0].functions} == {("copy", 128), ("exp", 7), ("tanh", 6)}
    assert words[1].no_bias == 1 and words[-1].no_bias == 0 and words[-1].bias_pointer
    assert neff.subgraphs[0].dialect == "extended"


def test_real_words_need_no_extension() -> None:
    m = Maker()
    a = m.sbuf((128, 8))
    m.memset(a, 0.0)
    m.compute(isa.Activate, "Activation", {"src": a, "dst": a}, function="exp")
    assert built(m).subgraphs[0].dialect == "neuron"
    m.memset(a, 1.0)
    assert built(m).subgraphs[0].dialect == "extended"


def test_integer_fills_keep_their_bits() -> None:
    m = Maker()
    m.memset(m.sbuf((128, 8), I32), -5)
    m.memset(m.sbuf((128, 8), I32), 0)
    m.memset(m.sbuf((128, 8)), -0.0)
    a, b, c = body(built(m), "DVE")
    assert a.value == isa.Bits(0xFFFFFFFB) and b.value == 0.0 and not b.value_is_integer
    assert (b.raw[36:40], c.raw[36:40]) == (bytes(4), bytes((0, 0, 0, 128)))


def test_debug_info_leads_to_the_kernel() -> None:
    m = Maker()
    a = m.sbuf((128, 8))
    m.memset(a, 1.0)
    m.copy(a, a)
    neff = built(m)
    assert neff.source_of("DVE", 0) is None
    where = neff.source_of("DVE", 3)
    assert where is not None and (where.file, where.line, where.name) == ("kernel.py", 2, "I-1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, a, b: m.compute(isa.Copy, "PE", {"src": a, "dst": b}), "COPY does not run on PE"),
        (
            lambda m, a, b: m.compute(isa.Copy, "DVE", {"src": a, "dst": m.view(b, slice(0, 64))}),
            "differ in partitions",
        ),
        (lambda m, a, b: m.copy(m.view(b, slice(None), slice(0, 3)), a), "elements per partition"),
        (lambda m, a, b: m.dma(a, m.psum((128, 8))), "in PSUM, which DMA does not reach"),
        (lambda m, a, b: m.dma(a, b, "DVE"), "has no queue on DVE"),
        (lambda m, a, b: m.dma(a, m.view(b, slice(0, 64))), "copies 512 elements to 1024"),
        (lambda m, a, b: m.matmul(m.psum((9, 8)), a, b), "writes 9 partitions from 8 stationary columns"),
        (
            lambda m, a, b: m.compute(isa.TensorScalar, "DVE", {"src": a, "dst": b, "immediate0_pointer": m.view(a)}),
            "one",
        ),
        (lambda m, a, b: m.exchange(a, b), "there is one program"),
    ],
)
def test_what_no_word_can_hold_names_the_line(change: object, message: str) -> None:
    m = Maker()
    a, b = m.sbuf((128, 8)), m.sbuf((128, 8))
    m.memset(a, 1.0)
    change(m, a, b)  # type: ignore[operator]
    with pytest.raises(BuildError, match=message) as caught:
        build([m.trace], "test")
    assert "\n" not in str(caught.value)
    if "program" not in message:
        assert str(caught.value).startswith("kernel.py:2: ")


def test_views_of_another_type_reach_the_same_bytes() -> None:
    m = Maker()
    tile, other = m.sbuf((128, 8)), m.sbuf((128, 8))
    half = View(tile, BF16, 0, 128, 2, ((2, 8),))
    m.memset(tile, 1.0)
    m.compute(isa.Copy, "Activation", {"src": half, "dst": m.view(m.sbuf((128, 8), BF16))})
    m.memset(other, 1.0)
    (copy,) = body(built(m), "Activation")
    assert copy.src == AccessPattern(0x4002, (2, 1, 1, 1), (8, 1, 1, 1)) and copy.wait
