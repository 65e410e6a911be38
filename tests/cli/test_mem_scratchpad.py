"""`neurontools mem scratchpad`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from neurontools.memory.scratchpad import sweep
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli

MIB = 1 << 20


def made(lnc: int, *variables: tuple[int, int]) -> Any:
    """Return what `sweep` looks at of a file with some scratchpad variables, given as (offset, size) in MiB."""
    named = {f"v{n}": SimpleNamespace(name=f"v{n}", kind="virtual", backing_offset=at * MIB, size=size * MIB)
             for n, (at, size) in enumerate(variables)}  # fmt: skip
    graph = SimpleNamespace(variables=named)
    return SimpleNamespace(subgraphs=[graph] * lnc, lnc=lnc, target=SimpleNamespace(name="trn2", generation="gen3"))


def test_the_documented_example() -> None:
    files = [("a", made(1, (0, 512), (512, 1024))), ("b", made(1, (0, 100), (100, 1536)))]
    found = sweep(files, range(512, 3585, 512))
    costs = {one.page_mb: one for one in found.costs}
    assert (costs[512].shared, costs[512].private, costs[512].pages) == (2048 * MIB, 2560 * MIB, 4)
    assert (costs[2048].shared, costs[2048].private) == (2048 * MIB, 0)
    assert found.advised_mb == 2048 and not found.contiguous_possible
    assert [(one.file, one.name) for one in found.crossing] == [("a", "v1"), ("b", "v1")]
    both = sweep([(name, made(2, *v)) for name, v in (("a", [(0, 512), (512, 1024)]), ("b", [(0, 100), (100, 1536)]))],
                 range(512, 513))  # fmt: skip
    region = next(one for one in both.costs if one.contiguous)
    assert region.pages == 2 * 26 and region.shared == 2 * 1664 * MIB


def test_a_file(cli: Cli, root: Path) -> None:
    path = root / "fixtures" / "neff" / "add_exp.neff"
    result = checked_json(cli("mem", "scratchpad", path, path, "--json"), "mem scratchpad")
    assert result["costs"][0]["contiguous"] and [one["page_mb"] for one in result["costs"]][1:] == [
        *range(512, 3585, 512)
    ]
    ended = cli("mem", "scratchpad", path, "--sweep", "512..1024")
    assert ended.status == 0 and "NEURON_SCRATCHPAD_PAGE_SIZE=512" in ended.out


def test_bad_files_and_options(cli: Cli, tmp_path: Path, root: Path) -> None:
    refuses_bad_files(cli, "mem scratchpad", tmp_path)
    path = root / "fixtures" / "neff" / "add_exp.neff"
    for text in ("512", "500..600", "0..512", "1024..512", "512..9728"):
        assert cli("mem", "scratchpad", path, "--sweep", text).status == 2
    assert cli("mem", "scratchpad", path, root / "fixtures" / "neff" / "idle_pair.neff").status == 2
