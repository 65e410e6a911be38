"""`neurontools overlap whatif`: the documented shares, end times against a packet-by-packet count, refused settings."""

from __future__ import annotations

import pytest

from emulator.machine.arbitration import Ring, serve
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_the_documented_shares(cli: Cli) -> None:
    """Defaults give compute 4/68 of an engine, 65536 and 4096 give it 64/68 (collectives.md 9)."""
    words = ("overlap", "whatif", "--dma-packet", 65536, "--cc-packet", 4096)
    row = checked_json(cli(*words, "--json"), "overlap whatif")["rings"][0]
    assert round(row["share_before"], 3) == 0.059 and round(row["share_after"], 3) == 0.941
    assert row["done_after_us"] < row["done_before_us"]
    text = cli(*words).out
    assert "5.9%" in text and "94.1%" in text and "compute is not slower" in text


@pytest.mark.parametrize(
    "sizes", [(100_000, 300_000), (65_536, 4_096), (0, 70_000), (1, 1, 1), (99_999, 12_345, 700_001)]
)
def test_ends_against_a_count_of_packets(sizes: tuple[int, ...]) -> None:
    packets = (4096, 65536, 16384)
    rings = [Ring(str(at), packets[at], size) for at, size in enumerate(sizes)]
    left, now, ends = list(sizes), 0, [0] * len(sizes)
    while any(left):
        for at, size in enumerate(left):
            now += min(size, packets[at])
            left[at] -= min(size, packets[at])
            if size and not left[at]:
                ends[at] = now
    assert [one.done_ns for one in serve(rings, 2.0)] == pytest.approx([end / 2 for end in ends])


def test_priorities_of_trn3(cli: Cli) -> None:
    found = checked_json(cli("overlap", "whatif", "--target", "trn3", "--streams", 2, "--cc", "4MiB,4MiB", "--json"),
                         "overlap whatif")  # fmt: skip
    compute, tensor, other = found["rings"]
    assert found["priorities"] and tensor["done_before_us"] < compute["done_before_us"] < other["done_before_us"]


def test_what_goes_first_must_not_get_slower(cli: Cli) -> None:
    """The recommended list has large packets for stream 0; the other way round it waits for stream 1."""
    words = ("overlap", "whatif", "--streams", 2, "--cc", "8MiB,8MiB", "--dma-packet", 65536, "--cc-packet")
    assert cli(*words[:-1]).status == 1  # compute alone was given more
    assert cli("overlap", "whatif", "--streams", 2, "--cc", "8MiB,8MiB", "--cc-packet", "65536,4096").status == 0
    ended = cli(*words, "4096,65536")
    assert ended.status == 1 and ended.out.splitlines()[-2] == "stream 0 is slower"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--dma-packet", 2048), 6, "may only grow"),
        (("--dma-packet", 131072), 6, "may only grow"),
        (("--cc-packet", "131072"), 6, "may only shrink"),
        (("--cc-packet", "4096,4096"), 6, "packet sizes for 2 streams"),
        (("--cc", "1MiB,1MiB"), 2, "2 backlogs and 1 streams"),
        (("--compute", "much"), 2, "no number of bytes"),
        (("--target", "inf1"), 6, "described, not emulated"),
    ],
)
def test_what_is_not_allowed(cli: Cli, words: tuple[object, ...], status: int, message: str) -> None:
    ended = cli("overlap", "whatif", *words)
    assert ended.status == status and message in ended.error_line
