"""--variable-size-op-metadata of the V forms: chunks as the file says, bit for bit; what does not fit together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def kept(folder: Path, *entries: dict[str, Any]) -> Path:
    path = folder / "metadata.json"
    path.write_text(json.dumps({"metadata": entries}))
    return path


def sent(*counts: int, **more: Any) -> dict[str, Any]:
    return {"send_counts": list(counts), **more}


@pytest.mark.parametrize(("operation", "entries"), [
    ("allgv", [sent(256, send_displs=[0], recv_counts=[256] * 4, recv_displs=[0, 256, 512, 768])]),
    ("allgv", [sent(5), sent(0), sent(17), sent(3)]), ("redsctv", [sent(1, 0, 4, 2)]),
    ("alltoallv", [sent(5, 1, 2, 0, send_displs=[0, 5, 6, 8]), sent(0, 0, 0, 3), sent(1, 1, 1, 1), sent(0, 9, 0, 0)]),
])  # fmt: skip
def test_chunks_are_those_of_the_file(cli: Cli, tmp_path: Path, operation: str, entries: list[dict[str, Any]]) -> None:
    words = (operation, "-r", 4, "--size", 4000, "--variable-size-op-metadata", kept(tmp_path, *entries))
    found = checked_json(cli("cc", "verify", *words, "--json"), "cc verify")
    assert found["wrong_ranks"] == [] and found["hangs"] == [] and not found["seeds_differ"]
    ended = cli("cc", "run", *words, "--inputs", "ramp", "--outputs", tmp_path / "out.npz")
    assert ended.status == 0
    sizes = [len(array) for _, array in sorted(np.load(tmp_path / "out.npz").items())]
    counts = [one["send_counts"] for one in entries * (4 if len(entries) == 1 else 1)]
    if operation == "alltoallv":
        wanted = [sum(column) for column in zip(*counts, strict=True)]
    else:
        wanted = counts[0] if operation == "redsctv" else [sum(map(sum, counts))] * 4
    assert [size * sum(wanted) for size in sizes] == [size * sum(sizes) for size in wanted]


def test_bench_of_the_guide(cli: Cli, tmp_path: Path) -> None:
    """The example of nccom-test's guide: 2,048 bytes of fp16 over four ranks."""
    path = kept(tmp_path, sent(256, send_displs=[0], recv_counts=[256] * 4, recv_displs=[0, 256, 512, 768]))
    words = ("cc", "bench", "allgv", "-r", 4, "-b", 2048, "-e", 2048, "-d", "fp16", "-c", "random")
    (row,) = checked_json(cli(*words, "--variable-size-op-metadata", path, "--json"), "cc bench")["rows"]
    assert (row["size"], row["elements"], row["type"], row["passed"]) == (2048, 1024, "fp16", True)
    ended = cli(*words)
    assert ended.status == 6 and "--variable-size-op-metadata" in ended.error_line


@pytest.mark.parametrize(("operation", "entries", "status", "says"), [
    ("allg", [sent(1)], 6, "metadata of variable sizes for allg"),
    ("allgv", [sent(1), sent(2)], 3, "one for each of 4 ranks"), ("allgv", [sent(1, 2)], 3, "1 of them"),
    ("allgv", [sent(0)], 3, "some elements"), ("allgv", [], 3, "a list of objects"),
    ("allgv", [{"send_count": [1]}], 3, "send_count"), ("allgv", [sent(-1)], 3, "whole numbers"),
    ("allgv", [{"send_counts": [1.5]}], 3, "whole numbers"),
    ("alltoallv", [sent(1, 2, 3)], 3, "4 of them"),
    ("alltoallv", [sent(1, 2, 3, 4, recv_counts=[1, 2, 3, 4])], 3, "what is sent, [1, 1, 1, 1]"),
    ("alltoallv", [sent(1, 2, 3, 4, send_displs=[0, 2, 3, 6])], 6, "side by side"),
    ("redsctv", [sent(1, 1, 1, 1), sent(1, 1, 1, 2), sent(1, 1, 1, 1), sent(1, 1, 1, 1)], 3, "the same for every rank"),
])  # fmt: skip
def test_what_does_not_fit(
    cli: Cli, tmp_path: Path, operation: str, entries: list[dict[str, Any]], status: int, says: str
) -> None:
    ended = cli("cc", "run", operation, "-r", 4, "--variable-size-op-metadata", kept(tmp_path, *entries))
    assert ended.status == status and says in ended.error_line
