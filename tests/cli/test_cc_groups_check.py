"""`neurontools cc groups check`: replica groups and pairs, legal and not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def checked(
    cli: Cli, folder: Path, groups: object, *words: object, key: str = "replica_groups"
) -> tuple[int, dict[str, object]]:
    path = folder / "g.json"
    path.write_text(json.dumps({key: [groups]}))
    ended = cli("cc", "groups", "check", path, *words, "--json")
    return ended.status, checked_json(ended, "cc groups check")["operations"][0]


def test_legal_groups_and_what_they_allow(cli: Cli, tmp_path: Path) -> None:
    status, found = checked(cli, tmp_path, [list(range(at, at + 16)) for at in range(0, 64, 16)])
    assert status == 0 and found["findings"] == [] and set(found["allowed"]) == {  # type: ignore[call-overload]
        "ring", "mesh", "rdh", "kangaring", "single-step-mesh",
    }  # fmt: skip
    status, found = checked(cli, tmp_path, [[0, 4, 8], [1, 5, 9]])
    assert status == 0 and found["refused"]["rdh"] == "3 ranks are no power of two"  # type: ignore[index]
    status, found = checked(cli, tmp_path, [[0, 64], [1, 65]], "--nodes", 2)
    assert status == 0 and "hier" in found["allowed"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("groups", "words", "message"),
    [
        ([[0, 1], [1, 2]], (), "rank 1 is in group 0 and in group 1"),
        ([[0, 0]], (), "group 0 has rank 0 twice"),
        ([[0, 1], [2]], (), "groups of different sizes"),
        ([[0, 99]], (), "no rank 99"),
        ([[]], (), "group 0 is empty"),
        ([[rank] for rank in range(17)], (), "17 replica groups"),
        ([[rank] for rank in range(13)], ("--limit", 12), "13 replica groups"),
        ([[0, 1, 5]], (), "neither contiguous nor evenly spaced"),
        ([[0, 65]], ("--nodes", 2), "other local ranks on other nodes"),
    ],
)
def test_groups_that_are_not_legal(
    cli: Cli, tmp_path: Path, groups: object, words: tuple[object, ...], message: str
) -> None:
    status, found = checked(cli, tmp_path, groups, *words)
    assert status == 1 and any(message in text for text in found["findings"])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [([[0, 4], [4, 0]], ""), ([[0, 4]], "no circular permute"), ([[0, 40], [40, 0]], "not linked"),
     ([[0, 4], [0, 8]], "rank 0 is a source 2 times"), ([], "no pair")],
)  # fmt: skip
def test_pairs(cli: Cli, tmp_path: Path, pairs: object, message: str) -> None:
    status, found = checked(cli, tmp_path, pairs, key="src_target_pairs")
    assert status == bool(message) and (not message or message in found["findings"][0])  # type: ignore[index]


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"replica_groups": [[["a"]]]}', b'{"replica_groups": 3}', b"[" * 10000]
)
def test_files_that_are_none(cli: Cli, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "g").write_bytes(data)
    assert cli("cc", "groups", "check", tmp_path / "g").status == 3
