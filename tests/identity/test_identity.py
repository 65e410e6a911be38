"""Every program of the corpus comes to what it came to before: values, times, events, findings, recordings, dumps.

The table was made before the changes that it guards; how to make it anew: `tests/identity/table.py`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from neurontools import nki
from tests.identity.table import FETCHED, TABLE, Opener, arithmetic, fetched, fingerprint, is_brief, programs

KNOWN: dict[str, dict[str, Any]] = json.loads(TABLE.read_text())
KNOWN_FETCHED: dict[str, dict[str, Any]] = json.loads(FETCHED.read_text())
# What depends on the last bits of this machine's arithmetic, or on bytes that were computed.
COMPUTED = {"values", "dump", "unwatched", "untimed", "shaken"}
# A minute of them would be too long: one public file in so many is run.
EVERY = 6


@pytest.fixture(autouse=True)
def _kernels() -> Any:
    nki.install()
    yield
    nki.uninstall()


@cache
def members() -> dict[str, Opener]:
    return dict(programs())


def compare(known: dict[str, dict[str, Any]], name: str, opener: Opener) -> None:
    row, before = fingerprint(opener, is_brief(name)), known[name]
    if known[""]["arithmetic"] != arithmetic():
        row, before = ({k: v for k, v in one.items() if k not in COMPUTED} for one in (row, before))
    assert row == before


def test_the_table_holds_every_member() -> None:
    assert set(members()) == set(KNOWN) - {""}


@pytest.mark.parametrize("name", [name for name in KNOWN if name])
def test_a_program_comes_to_what_it_came_to(name: str) -> None:
    compare(KNOWN, name, members()[name])


@pytest.mark.parametrize("name", [name for name in KNOWN_FETCHED if name][::EVERY])
def test_a_fetched_program_comes_to_what_it_came_to(corpus: Path, name: str) -> None:
    found = dict(fetched(corpus))
    if name not in found:
        pytest.skip(f"no {name} in {corpus}")
    compare(KNOWN_FETCHED, name, found[name])
