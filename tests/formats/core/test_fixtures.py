"""The sample dumps: listed with their origin, whole, and still telling what they are there to tell."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from formats.core import NOTES, open_core
from neurontools.core.verify import verified
from neurontools.core.why import explained

NAMES = ("hang", "nan", "oob", "race")


def test_every_file_is_listed(root: Path) -> None:
    readme = (root / "fixtures" / "README.md").read_text()
    for path in (root / "fixtures" / "core").iterdir():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert f"`core/{path.name}`" in readme and digest in readme, f"fixtures/README.md: {path.name} {digest}"
    assert {p.stem for p in (root / "fixtures" / "core").iterdir()} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_fixture_is_whole(root: Path, name: str) -> None:
    core = open_core(root / "fixtures" / "core" / f"{name}.core")
    assert verified(core, None).problems == () and core.size < 32_000
    assert len([kind for kind in NOTES.values() if core.note(kind.record) is not None]) >= 14


def test_the_fault_and_the_hang(root: Path) -> None:
    folder = root / "fixtures" / "core"
    fault = open_core(folder / "oob.core").fault
    assert fault is not None and (fault.opcode, fault.operand) == ("TENSOR_TENSOR", "src1")
    assert fault.source is not None and fault.source.line == 17
    hang = explained(open_core(folder / "hang.core"))
    assert [(wait.engine, wait.cause) for wait in hang.waits] == [
        ("Activation", "deadlock"), ("Pool", "blocked"), ("DVE", "deadlock")
    ]  # fmt: skip


def test_the_two_wrong_results(root: Path) -> None:
    from neurontools.debugger import open_core_session

    folder = root / "fixtures" / "core"
    nan, race = (open_core_session(folder / f"{name}.core") for name in ("nan", "race"))
    for session in (nan, race):
        values = session.print_tensor("y")
        assert (values != values).all() and session.outcome == "finished"
    assert nan.last_write("0:0x5000").text.startswith("TENSOR_TENSOR S[8]>=16 op=DIVIDE")
    assert race.core.findings[0].tool == "racecheck"
    read, written = race.last_write("0:0x6000").number, race.last_write("0:0x5000").number
    assert read is not None and written is not None and read < written
