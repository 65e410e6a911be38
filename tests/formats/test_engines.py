"""Engines have one table of names, which every command reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats import isa, neff
from formats.engines import ENGINE_ALIASES, engine_name, short_engine
from formats.errors import NotFoundError


def test_every_engine_has_names_and_takes_its_own() -> None:
    assert set(ENGINE_ALIASES.values()) == set(isa.ENGINES) == set(neff.ENGINES)
    for engine in isa.ENGINES:
        assert engine_name(engine) == engine_name(short_engine(engine)) == engine
    with pytest.raises(NotFoundError, match="no engine 'vpu'; one of pe, act, pool, dve, sp"):
        engine_name("vpu")


def test_there_is_no_second_table(root: Path) -> None:
    tables = [
        str(path.relative_to(root))
        for part in ("formats", "emulator", "neurontools")
        for path in (root / part).rglob("*.py")
        if '"gpsimd": "Pool"' in path.read_text(encoding="utf-8")
    ]
    assert tables == ["formats/engines.py"]
