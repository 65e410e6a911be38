"""Each rule on a word that obeys it and on the same word with one thing wrong."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from formats import isa
from formats.isa.declare import PROVENANCES
from formats.isa.rules import rules_of

S, P = 0x4000, isa.PSUM_BASE


def ap3(address: int, count: int = 8, step: int = 1) -> isa.AccessPattern:
    return isa.AccessPattern(address, (step, 1, 1), (count, 1, 1))


def ap4(address: int, *counts: int) -> isa.AccessPattern:
    return isa.AccessPattern(address, (1,) * 4, (*counts, *(1,) * (4 - len(counts))))


def ap5(address: int, count: int = 8) -> isa.AccessPattern:
    return isa.AccessPattern(address, (1,) * 5, (count, 1, 1, 1, 1))


SIDE: dict[str, Any] = {
    "src_element_size": 64,
    "dst_element_size": 32,
    "src_dtype": 10,
    "dst_dtype": 6,
    "src": isa.DmaAddress("variable", 0, S),
    "dst": isa.DmaAddress("table", 1, 0),
    "src_pattern": ((0x40000, 1), (128, 1)),
    "dst_pattern": ((64, 1), (128, 1)),
}
GOOD: dict[str, isa.Instruction] = {
    "weights": isa.LoadWeights(src=ap3(S + 254, 128, -1), dtype=7),
    "matmul": isa.MatMul(src=ap3(S, 512), dst=ap3(P + 0x800, 512), dtype=6, acc_flags=3),
    "activate": isa.Activate(src=ap3(P), dst=ap3(S), src_dtype=10, dst_dtype=6, bias_pointer=0x4800, function="EXP"),
    "tensor": isa.TensorTensor(
        src0=ap3(P), src1=ap3(S), dst=ap3(S), src0_dtype=10, src1_dtype=10, dst_dtype=10, op="ADD"
    ),
    "scalar": isa.TensorScalar(src=ap3(S), dst=ap3(S), src_dtype=10, dst_dtype=10, immediate0_pointer=0x4000),
    "reduce": isa.TensorReduce(src=ap4(S, 8, 4), dst=ap4(0x5000, 4), src_dtype=10, dst_dtype=10, op="MAX", dims="X"),
    "copy": isa.Copy(src=ap4(S, 8), dst=ap4(0x5000, 8), src_dtype=8, dst_dtype=8),
    "cast": isa.Cast(src=ap4(S, 8), dst=ap4(0x5000, 8), src_dtype=10, dst_dtype=6),
    "memset": isa.Memset(dst=ap4(S, 8), dtype=10, count=8),
    "semaphore": isa.EventSemaphore(update2_mode="SEM_WRITE_IMM", update2_index=2),
    "clear": isa.EventSemaphoreRangeClear(first=3, last=53),
    "branch": isa.CompareBranch(target=-128),
    "write": isa.Write(address0=0x1000, data0=1),
    "load": isa.TensorLoad(address=0x1000),
    "trigger": isa.PseudoDmaTrigger(queue="qIn"),
    "dma": isa.PseudoDmaDirect2d(**SIDE),
    "loaded": isa.DmaDirect2d(**SIDE),
    "indirect": isa.DmaIndirect(
        rows=8,
        index_step=256,
        row_step=0x40000,
        index=ap5(S, 1),
        channels=8,
        src_dtype=10,
        dst_dtype=10,
        src=isa.DmaAddress("table", 0, 0),
        dst=isa.DmaAddress("variable", 0, S),
        src_element_size=256,
        dst_element_size=256,
        src_pattern=((1,) * 4, (1,) * 4),
        dst_pattern=((1,) * 4, (1,) * 4),
    ),
    "scan": isa.TensorTensorScan(src=ap5(S), src1=ap5(S), dst=ap5(S), src_dtype=10, src1_dtype=10, dst_dtype=10),
    "select": isa.Select(predicate=ap5(S), src=ap5(S), dst=ap5(S), src_dtype=10, predicate_dtype=3, dst_dtype=10),
    "transpose": isa.VectorTranspose(
        src=ap5(S, 16), dst=ap5(S, 32), channels=32, columns=16, src_dtype=10, dst_dtype=10
    ),
    "shuffle": isa.StreamShuffle(
        src=ap5(S), dst=ap5(S), src_dtype=10, dst_dtype=10, mask=(255,) * 16 + tuple(range(16, 32))
    ),
}
BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("copy", {"length": 15}, "length", "not 0x10"),
    ("copy", {"wait_mode": 3}, "wait_mode", "no name in WaitMode"),
    ("copy", {"update_mode": "SEM_ADD_IMM"}, "update_mode", "no place for"),
    ("indirect", {"rows": 9}, "rows", "9 rows and 8 indices"),
    ("indirect", {"dst_element_size": 128}, "dst_pattern", "64 elements are read, 32 are written"),
    ("tensor", {"op": 5}, "op", "no name in AluOp"),
    ("copy", {"src_dtype": 0, "dst_dtype": 0}, "src_dtype", "not known"),
    ("copy", {"src_dtype": 99, "dst_dtype": 99}, "dst_dtype", "not known"),
    ("copy", {"channels": 0}, "channels", "not 1 to 128"),
    ("matmul", {"rows": 129}, "rows", "not 1 to 128"),
    ("matmul", {"cols": 200}, "cols", "not 1 to 128"),
    ("copy", {"src": ap4(S, 8, 0), "dst": ap4(S, 0)}, "src", "zero elements"),
    ("copy", {"src": ap4(0x37FF0, 8)}, "src", "leave SBUF"),
    ("cast", {"src": ap4(P + 0x3FF0, 8)}, "src", "leave PSUM"),
    ("weights", {"src": ap3(8, 128, -1)}, "src", "leave SBUF"),
    ("copy", {"src": ap4(isa.SBUF_PARTITION_STRIDE * 32 + S, 8)}, "src", "partitions 32 to 159"),
    ("copy", {"src": ap4(isa.SBUF_PARTITION_STRIDE * 32 + S, 8), "channels": 64}, "src", "start at 32"),
    ("copy", {"dst": ap4(isa.SBUF_PARTITION_STRIDE * 16 + S, 8), "channels": 8}, "dst", "not at 0 or 32 or 64 or 96"),
    ("copy", {"src": ap4(S + 2, 8)}, "src", "not a multiple of 4"),
    ("activate", {"bias_pointer": 0x4802}, "bias_pointer", "not a multiple of 4"),
    ("copy", {"src": ap4(S, 9)}, "dst", "elements differ: src 9, dst 8"),
    ("copy", {"src_dtype": 10}, "dst_dtype", "raw bits"),
    ("tensor", {"src1": ap3(S, 4)}, "dst", "src1 4"),
    ("reduce", {"dims": "XY"}, "dst", "1 elements are kept"),
    ("reduce", {"dims": 9}, "dims", "no name"),
    ("memset", {"count": 7}, "count", "differs"),
    ("matmul", {"dst": ap3(S, 512)}, "dst", "not in PSUM"),
    ("matmul", {"src": ap3(P, 512)}, "src", "not in SBUF"),
    ("matmul", {"dst": ap3(P + 0x804, 512)}, "dst", "cross a PSUM bank"),
    ("matmul", {"src": ap3(S, 513), "dst": ap3(P, 513)}, "src", "over 512"),
    ("matmul", {"acc_flags": 4}, "acc_flags", "other than first and last"),
    ("matmul", {"row_groups": 0}, "row_groups", "mask"),
    ("matmul", {"fp32_mode": "LOW"}, "fp32_mode", "fp32 operand"),
    ("weights", {"cols": 64}, "cols", "128 stationary columns"),
    ("clear", {"last": 2}, "last", "empty"),
    ("branch", {"target": 65}, "target", "multiple of 64"),
    ("write", {"size0": 0}, "size0", "sizes"),
    ("load", {"count0": 33}, "count0", "registers"),
    ("trigger", {"queue": ""}, "queue", "no name"),
    ("dma", {"src_dtype": 0}, "src_dtype", "not known"),
    ("dma", {"src_element_size": 63}, "src_element_size", "whole elements"),
    ("dma", {"dst_element_size": 64}, "dst_pattern", "2048 elements are read, 4096"),
    ("loaded", {"dst_pattern": ((64, 1), (0, 1))}, "dst_pattern", "zero elements"),
    ("dma", {"src": isa.DmaAddress("variable", 0, 0x1FFFFC4)}, "src", "leave on-chip memory"),
    ("scan", {"dst": ap5(S, 9)}, "dst", "elements differ"),
    ("select", {"on_false_tile": ap5(S, 9), "on_false_dtype": 10}, "dst", "on_false_tile 9"),
    ("transpose", {"columns": 33}, "columns", "more than 32"),
    ("transpose", {"dst": ap5(S, 31)}, "dst", "for 32 partitions by 16"),
    ("shuffle", {"mask": (32,) * 32}, "mask", "0 to 31"),
]


@pytest.mark.parametrize("name", GOOD)
def test_a_good_word_has_no_problems(name: str) -> None:
    assert isa.check(GOOD[name]) == []


@pytest.mark.parametrize(("name", "changes", "field", "said"), BAD, ids=[f"{n}-{f}-{s}" for n, _, f, s in BAD])
def test_one_wrong_thing_is_found(name: str, changes: dict[str, Any], field: str, said: str) -> None:
    found = isa.check(GOOD[name].replace(**changes))
    assert any(p.field == field and said in p.message for p in found), found
    assert all(p.provenance in PROVENANCES and p.cite and "\n" not in str(p) for p in found)


def test_bits_without_a_field_are_found() -> None:
    raw = bytearray(GOOD["copy"].raw)
    raw[41] = 0x20
    assert [str(p) for p in isa.check(isa.decode(bytes(raw)))] == [
        "byte 41: 0x20 where no field is known [observed; isa.md 1]"
    ]


def test_limits_follow_the_generation() -> None:
    high = GOOD["copy"].replace(src=ap4(0x32000, 8))
    assert [isa.check(high, t) == [] for t in ("gen2", "gen3", "gen4")] == [False, True, True]
    wide = GOOD["matmul"].replace(src=ap3(S, 1024), dst=ap3(P, 1024))
    assert [len(isa.check(wide, t)) for t in ("trn1", "trn2", "trn3")] == [2, 2, 0]
    assert "does not exist on gen2" in isa.check(GOOD["dma"], "gen2")[0].message


def test_engines_have_their_words_and_memories() -> None:
    assert isa.check(GOOD["copy"], engine="DVE") == []
    assert "not PE" in isa.check(GOOD["copy"], engine="PE")[0].message
    assert [p.field for p in isa.check(GOOD["cast"].replace(src=ap4(P, 8)), engine="Pool")] == ["src"]


def test_unknown_words_are_one_problem() -> None:
    assert [p.field for p in isa.check(isa.decode(b"\x77" * 64))] == ["opcode"]


def test_unused_operands_are_not_judged() -> None:
    assert isa.check(GOOD["activate"].replace(bias_pointer=3, no_bias=1, unknown_15=1)) == []
    assert isa.check(GOOD["scalar"].replace(immediate1=float("nan"))) == []


def test_transposed_results_have_the_elements_of_their_source() -> None:
    # 512 fp32 fill a bank, 1024 two-byte elements of a transpose fill it too; one more crosses.
    word = GOOD["matmul"].replace(transpose_mode="ENABLED", dst=isa.AccessPattern(P, (2, 0, 0), (512, 1, 1)))
    assert isa.check(word) == []
    crossing = word.replace(dst=isa.AccessPattern(P + 4, (2, 0, 0), (512, 1, 1)))
    assert any("cross" in problem.message for problem in isa.check(crossing))


def test_every_rule_is_documented_and_listed_once() -> None:
    for cls in isa.CLASSES:
        docs = [rule.doc for rule in rules_of(cls)]
        assert len(set(docs)) == len(docs) and all(d.endswith(".") for d in docs)
        assert all(rule.provenance in PROVENANCES and rule.cite for rule in rules_of(cls))
        assert set(cls.RULES) <= set(rules_of(cls))


@pytest.mark.parametrize("generation", ["gen2", "gen3", "gen4"])
def test_words_of_a_kind_are_judged_as_each_of_them_is(generation: str) -> None:
    """Words with addresses and bytes of their fields changed: what is kept for a kind says what all rules say."""
    chance, words = random.Random(generation), json.loads((Path(__file__).parent / "words.json").read_text())["words"]
    seen = {True: 0, False: 0}
    for given in words:
        raw = bytes.fromhex(given["hex"])
        cls = type(isa.decode(raw, generation, given["dialect"]))
        for _ in range(25):
            changed = bytearray(raw)
            for operand in cls.OPERANDS.values():
                address = chance.choice((0, P)) + chance.choice((0, 1, 2, 3)) * 32 * isa.SBUF_PARTITION_STRIDE
                address += chance.choice((0, 4, 0x7FE, 0x1000, 0x2FFFC, 0x30000, chance.randrange(1 << 18)))
                changed[operand.offset : operand.offset + 4] = address.to_bytes(4, "little")
            if chance.random() < 0.3:
                changed[chance.randrange(2, len(changed))] = chance.randrange(256)
            word = cls.from_raw(bytes(changed))
            problems = [problem for problem in isa.check(word, generation) if problem.field in cls.OPERANDS]
            assert isa.operand_problems(word, generation) == problems
            found = bool(problems)
            assert isa.are_operands_sound(word, generation) is not found, (word, isa.check(word, generation))
            seen[found] += 1
    assert min(seen.values()) > 200


@pytest.mark.parametrize("most", [3, 1 << 15])
def test_many_words_are_sound_where_each_of_them_is(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known to be sound hides no word that is not, of its class or another one's with the same bytes."""
    monkeypatch.setattr("formats.isa.rules._SOUND", {})
    monkeypatch.setattr("formats.isa.rules._MOST_SOUND", most)
    chance, words = random.Random(most), json.loads((Path(__file__).parent / "words.json").read_text())["words"]
    told = {True: 0, False: 0}
    for _ in range(150):
        some = []
        for given in chance.sample(words, 4):
            raw = bytearray.fromhex(given["hex"])
            cls = type(isa.decode(bytes(raw), "gen3", given["dialect"]))
            for operand in cls.OPERANDS.values():
                address = chance.choice((0, 0, 0, 1)) * 32 * isa.SBUF_PARTITION_STRIDE + chance.choice((0, 0x3000))
                raw[operand.offset : operand.offset + 4] = address.to_bytes(4, "little")
            some.append(cls.from_raw(bytes(raw)))
        want = all(isa.are_operands_sound(word) for word in some)
        each = {(type(word), word.raw): isa.operand_problems(word) for word in some}
        broken = {key: problems for key, problems in each.items() if problems}
        if chance.random() < 0.5:
            assert isa.problems_of(some) == isa.problems_of(some) == broken
            assert isa.are_all_sound(some) is want
        else:
            assert isa.are_all_sound(some) is isa.are_all_sound(some) is want
            assert isa.problems_of(some) == broken
        told[want] += 1
    assert min(told.values()) > 20


def test_problems_of_many_words_of_a_class_are_those_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond so many words of a class these are looked at together, kind by kind."""
    monkeypatch.setattr("formats.isa.rules._SOUND", {})
    chance, words = random.Random(0), json.loads((Path(__file__).parent / "words.json").read_text())["words"]
    met = 0
    for given in chance.sample(words, 40):
        raw = bytearray.fromhex(given["hex"])
        cls = type(isa.decode(bytes(raw), "gen3", given["dialect"]))
        many = []
        for _ in range(40):
            for operand in cls.OPERANDS.values():
                address = chance.choice((0, 0x40, 0x1000)) + (0x37FFE if chance.random() < 0.02 else 0)
                raw[operand.offset : operand.offset + 4] = address.to_bytes(4, "little")
            many.append(cls.from_raw(bytes(raw)))
        broken = {(cls, word.raw): found for word in many if (found := isa.operand_problems(word))}
        assert isa.problems_of(many) == isa.problems_of(many) == broken
        assert isa.are_all_sound(many) is (not broken)
        met += bool(broken)
    assert met > 5
