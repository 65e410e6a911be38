"""Rules of extension words: every golden word obeys them, and one thing wrong in it is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from formats import isa
from formats.isa.declare import PROVENANCES

ROWS = json.loads((Path(__file__).parent / "words.json").read_text())["words"]
GOOD: dict[str, tuple[isa.Instruction, str]] = {}
for _row in ROWS:
    _word = isa.decode(bytes.fromhex(_row["hex"]), _row["archs"][-1], _row["dialect"])
    GOOD[_word.NAME] = _word, _row["archs"][-1]


def flat(address: int, count: int) -> isa.AccessPattern:
    return isa.AccessPattern(address, (1, 0, 0, 0, 0), (count, 1, 1, 1, 1))


S = 0x5000
BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("IOTA", {"count0": 5}, "dst", "8 elements, not 10"),
    ("AFFINE_SELECT", {"op": "ADD"}, "op", "no comparison"),
    ("AFFINE_SELECT", {"src": flat(S, 9)}, "dst", "src 9, dst 8"),
    ("N_GATHER", {"indices": flat(S, 9)}, "dst", "indices 9, dst 8"),
    ("LOCAL_GATHER", {"channels": 24}, "channels", "24 is no multiple of 16"),
    ("LOCAL_GATHER", {"valid": 7}, "dst", "32 elements, not 28"),
    ("NONZERO_WITH_COUNT", {"src": flat(S, 9)}, "dst", "9 elements, not 10"),
    ("SEQUENCE_BOUNDS", {"src": flat(S, 9)}, "dst", "16 elements, not 18"),
    ("TOP_K", {"indices": flat(S, 9)}, "dst", "indices 9, dst 8"),
    ("TENSOR_PARTITION_REDUCE", {"src": flat(S, 9)}, "dst", "src 9, dst 8"),
    ("COPY_PREDICATED", {"predicate": flat(S, 9)}, "dst", "predicate 9"),
    ("SELECT_REDUCE", {"reduce_res": flat(S, 2)}, "reduce_res", "2 elements, not 1"),
    ("RANGE_SELECT", {"op1": "MAX"}, "op1", "no comparison"),
    ("TENSOR_SCALAR_REDUCE", {"src": flat(S, 9)}, "dst", "src 9, dst 8"),
    ("TENSOR_SCALAR_CUMULATIVE", {"src": flat(S, 9)}, "dst", "src 9, dst 8"),
    ("EXPONENTIAL", {"reduce_res": flat(S, 2)}, "reduce_res", "2 elements, not 1"),
    ("MAX8", {"dst": flat(S, 9)}, "dst", "9 elements, not 8"),
    ("FIND_INDEX8", {"values": flat(S, 7)}, "values", "7 elements, not 8"),
    ("MATCH_REPLACE8", {"indices": flat(S, 7)}, "indices", "7 elements, not 8"),
    ("BN_STATS", {"dst": flat(S, 5)}, "dst", "5 elements, not 6"),
    ("BN_AGGREGATE", {"src": flat(S, 13)}, "src", "13 elements are no triples"),
    ("DROPOUT", {"src": flat(S, 9)}, "dst", "src 9, dst 8"),
    ("QUANTIZE_MX", {"channels": 48}, "channels", "48 is no multiple of 32"),
    ("MATMUL_MX", {"dst": flat(S, 32)}, "dst", "is not in PSUM"),
    ("MATMUL_MX", {"stationary_scale": flat(S, 63)}, "stationary_scale", "stationary 64, stationary_scale 63"),
    ("ACTIVATE2", {"src": flat(S, 9)}, "dst", "src 9, dst 8"),
    ("INDIRECT_READ", {"channels": 48}, "group", "48 partitions in groups of 32"),
    ("INDIRECT_READ", {"dst": flat(S, 65)}, "indices", "64 in a group, not 65"),
    ("INDIRECT_WRITE", {"src": flat(S, 17)}, "indices", "16 in a group, not 17"),
    ("INDIRECT_WRITE", {"predicate": flat(S, 9)}, "predicate", "src 8, predicate 9"),
    ("REGISTER_LOAD", {"src": flat(S, 2)}, "src", "2 elements, not 1"),
    ("REGISTER_LOAD", {"channels": 2}, "channels", "2 partitions, not 1"),
    ("COLLECTIVE", {"src_element_size": 3}, "src_element_size", "2 runs of 3 bytes"),
    ("COLLECTIVE", {"dtype": 0}, "dtype", "element type 0x0 is not known"),
    ("COLLECTIVE", {"groups_rows": 0}, "groups_rows", "0 x 4 ranks"),
    ("COLLECTIVE", {"kind": "PERMUTE"}, "groups_columns", "4 ranks in a pair"),
    ("COLLECTIVE", {"stream": 4}, "stream", "4, and there are 4"),
    ("COLLECTIVE", {"kind": "ALL_REDUCE", "reduce": "MULTIPLY"}, "reduce", "no reduction by"),
]


@pytest.mark.parametrize(("name", "changes", "field", "said"), BAD, ids=[f"{n}-{f}" for n, _, f, _ in BAD])
def test_one_wrong_thing_is_found(name: str, changes: dict[str, Any], field: str, said: str) -> None:
    word, target = GOOD[name]
    assert isa.check(word, target) == []
    found = isa.check(word.replace(**changes), target)
    assert any(p.field == field and said in p.message for p in found), found
    assert all(p.provenance in PROVENANCES and p.cite and "\n" not in str(p) for p in found)


# Words of which test_rules.py tries every rule.
ELSEWHERE = {
    "TENSOR_TENSOR_SCAN",
    "SCALAR_TENSOR_TENSOR",
    "ACTIVATION_EXTENDED",
    "SELECT",
    "STREAM_SHUFFLE",
    "VECTOR_TRANSPOSE",
    "SEND_RECEIVE",
    "DMA_INDIRECT",
}


def test_every_rule_is_tried() -> None:
    ruled = {cls.NAME for cls in isa.CLASSES if cls.DIALECT == "extended" and cls.RULES}
    assert ruled - ELSEWHERE == {name for name, *_ in BAD} and ruled > ELSEWHERE
