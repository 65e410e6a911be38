"""Every class has an executor or a reason; every real word of the reference vectors binds and runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emulator.engines import ELSEWHERE, bind, executor_of
from emulator.engines.registry import executes
from formats import isa
from formats.errors import UnsupportedError
from tests.emulator.engines.machine import Bench


@pytest.mark.parametrize("cls", isa.CLASSES, ids=lambda c: c.__name__)
def test_every_class_is_executed_somewhere(cls: type[isa.Instruction]) -> None:
    assert (executor_of(cls) is None) == (cls in ELSEWHERE)
    if cls in ELSEWHERE:
        with pytest.raises(UnsupportedError, match=cls.NAME):
            bind(cls(), Bench())


def test_a_second_executor_is_refused() -> None:
    for cls in (isa.Copy, isa.DmaDirect2d):
        with pytest.raises(TypeError, match=cls.__name__):
            executes(cls)(lambda word, port: lambda: None)


def test_real_words_bind_and_run(reference_data: Path) -> None:
    rows = json.loads((reference_data / "isa_vectors.json").read_text())["vectors"]
    bench = Bench("trn2", 224 << 10)
    seen = set()
    for row in rows:
        word = isa.decode(bytes.fromhex(row["hex"]), "gen3", "neuron")
        if type(word) in (isa.MatMul, *ELSEWHERE) or row["stage"] != "compiler":
            continue
        bench.run(word, row["engine"])
        seen.add(type(word))
    assert {isa.LoadWeights, isa.Copy, isa.Activate, isa.TensorReduce, isa.TensorScalar, isa.Reciprocal} <= seen
