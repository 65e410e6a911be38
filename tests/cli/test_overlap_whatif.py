"""`neurontools overlap whatif`: the documented shares, end times against a packet-by-packet count, refused settings."""

from __future__ import annotations

from pathlib import Path

import pytest

import neurontools
from emulator.machine.arbitration import Ring, serve
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.compiler.layers import LAYERS
from tests.emulator.machine.test_overlap import X, backlog


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


# --- a program -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a compiled step of three layers, fully sharded over four ranks."""
    folder = tmp_path_factory.mktemp("layers")
    (folder / "layers.txt").write_text(LAYERS)
    neurontools.compile(folder / "layers.txt", lnc=1, limits="ours").save(folder / "layers.neff")
    return folder / "layers.neff"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernel") / "b.neff"
    neurontools.build(backlog, X, target="trn1", lnc=1).save(path)
    return path


def test_gathers_a_layer_earlier_are_faster_than_at_their_use(cli: Cli, layers: Path) -> None:
    """Each gather is called earlier, less of all is exposed, and outputs are the same to the bit."""
    words = ("overlap", "whatif", layers, "--ranks", 4, "--inputs", "random", "--before", "shift-ag=0")
    ended = cli(*words, "--shift-ag", 1, "--json")
    found = checked_json(ended, "overlap whatif")
    assert ended.status == 0 and not found["slower"], ended.err
    assert found["after"]["time_ps"] < found["before"]["time_ps"]
    assert found["after"]["exposed_ps"] < found["before"]["exposed_ps"]
    assert (found["before"]["settings"], found["after"]["settings"]) == ("shift-ag=0", "shift-ag=1")
    assert found["compared"] == 4 * 3 and found["outputs"] == []
    rows = {row["source"].split("%")[-1]: row for row in found["collectives"]}
    assert len(rows) == len(found["collectives"]) == 6
    for name in ("g2", "g3"):
        assert rows[name]["after"]["called_ps"] < rows[name]["before"]["called_ps"]
    assert all(row[side]["trigger_ps"] == 1_000_000 for row in rows.values() for side in ("before", "after"))
    ended = cli(*words[:-2], "--shift-ag", 0)
    assert ended.status == 1 and ended.out.splitlines()[-1] == "slower"
    assert "all 12 outputs are the same to the bit" in ended.out and "the next matmul waits longest for" in ended.out


def test_streams_and_late_scatters(cli: Cli, layers: Path) -> None:
    words = ("overlap", "whatif", layers, "--ranks", 4, "--inputs", "random", "--streams", 2, "--shift-rs", 0)
    found = checked_json(cli(*words, "--json"), "overlap whatif")
    streams = {row["source"].split("%")[-1]: row["after"]["stream"] for row in found["collectives"]}
    assert streams == {"g1": 1, "g2": 1, "g3": 1, "s1": 1, "s2": 1, "m2": 0}
    assert {row["before"]["stream"] for row in found["collectives"]} == {0} and not found["outputs"]


def test_options_of_the_compilation_stay(cli: Cli, layers: Path, tmp_path: Path) -> None:
    """A file that was compiled with casts and a shift is compiled again with them: only what is asked for differs."""
    options = {"lnc": 1, "limits": "ours", "auto_cast": "all", "early_ag_shift": 2}
    path = tmp_path / "cast.neff"
    neurontools.compile(layers.with_suffix(".txt"), **options).save(path)
    words = ("overlap", "whatif", path, "--ranks", 4, "--inputs", "random", "--json")
    found = checked_json(cli(*words, "--shift-ag", 2), "overlap whatif")
    assert found["before"]["time_ps"] == found["after"]["time_ps"] and not found["outputs"]
    assert not checked_json(cli(*words, "--shift-ag", 0), "overlap whatif")["outputs"]


def test_packets_of_a_kernel(cli: Cli, kernel: Path) -> None:
    """Larger packets of compute, smaller ones of the collective: its end comes later, the copies' earlier."""
    words = ("overlap", "whatif", kernel, "--ranks", 2, "--dma-packet", 65536, "--cc-packet", 4096, "--json")
    found = checked_json(cli(*words), "overlap whatif")
    assert found["before"]["compute"] < 0.1 and found["after"]["compute"] > 0.85
    assert (found["before"]["settings"], found["after"]["settings"]) == (
        "as it is", "dma-packet=65536 cc-packet=4096")  # fmt: skip


def test_a_script(cli: Cli, root: Path) -> None:
    """Packets of transfers that engines describe themselves stay as they are: nothing changes (collectives.md 9)."""
    script = root / "examples" / "ranks" / "data_parallel.py"
    words = ("overlap", "whatif", script, "--ranks", 2, "--target", "trn2", "--dma-packet", 65536, "--json")
    found = checked_json(cli(*words), "overlap whatif")
    assert found["before"]["time_ps"] == found["after"]["time_ps"] > 0 and found["ranks"] == 2
    (row,) = found["collectives"]
    assert row["source"].startswith(str(script)) and row["before"] == row["after"] and not found["outputs"]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--ranks", 2, "--shift-ag", 1), 6, "carries no graph"),
        (("--ranks", 2, "--streams", 2), 6, "carries no graph"),
        (("--ranks", 2, "--before", "shift-ag"), 3, "no setting"),
        (("--ranks", 2, "--before", "shift=1"), 3, "no setting"),
        (("--ranks", 2, "--before", "shift-ag=soon"), 3, "no number"),
        (("--ranks", 2, "--dma-packet", 1), 6, "may only grow"),
        (("--ranks", 2, "--streams", 1, "--cc-packet", "4096,4096"), 6, "packet sizes for 2 streams"),
        (("--shift-ag", 1), 2, "--ranks N"),
        (("--ranks", 2, "--compute", "1MiB"), 2, "without FILE"),
        (("--ranks", 2, "--cc", "1MiB"), 2, "without FILE"),
    ],
)
def test_what_a_program_cannot_have(
    cli: Cli, kernel: Path, words: tuple[object, ...], status: int, message: str
) -> None:
    ended = cli("overlap", "whatif", kernel, *words)
    assert ended.status == status and message in ended.error_line


@pytest.mark.parametrize("words", [("--ranks", 2), ("--shift-ag", 1), ("--before", "shift-ag=0"), ("--nodes", 2)])
def test_what_goes_with_a_program_only(cli: Cli, words: tuple[object, ...]) -> None:
    ended = cli("overlap", "whatif", *words)
    assert ended.status == 2 and "goes with FILE" in ended.error_line


def test_programs_with_nothing_to_shift(cli: Cli, layers: Path, tmp_path: Path) -> None:
    """A script has no graph; a graph without gathers of weights has nothing that a shift would move."""
    script = tmp_path / "s.py"
    script.write_text("raise SystemExit(3)\n")
    ended = cli("overlap", "whatif", script, "--ranks", 2, "--shift-ag", 1)
    assert ended.status == 6 and "is a script" in ended.error_line
    plain = tmp_path / "plain.neff"
    text = LAYERS.replace("w1), dimensions", "p1), dimensions").replace(
        "  g1 =", "  p1 = f32[16,64]{1,0} tanh(w1)\n  g1 =")  # fmt: skip
    (tmp_path / "plain.txt").write_text(text.replace("(c2), dim", "(p1), dim").replace("(w3), dim", "(p1), dim"))
    neurontools.compile(tmp_path / "plain.txt", lnc=1, limits="ours").save(plain)
    ended = cli("overlap", "whatif", plain, "--ranks", 4, "--shift-ag", 1)
    assert ended.status == 6 and "no all-gather of weights" in ended.error_line


def test_malformed_options_of_the_compilation(cli: Cli, layers: Path, tmp_path: Path) -> None:
    assert cli("neff", "unpack", layers, tmp_path / "all").status == 0
    (flags,) = (tmp_path / "all").rglob("compile_flags.json")
    malformed = ["{", "[]", '{"wrong": 1}', '{"optlevel": "2"}', '{"early_ag_shift": -9}', '{"lnc": 1, "lnc": 1}']
    for data in (*malformed, "[" * 60_000, '{"lnc": 1, "target": "' + " " * (1 << 16) + '"}'):
        flags.write_text(data)
        assert cli("neff", "pack", tmp_path / "all", "-o", tmp_path / "t.neff").status == 0
        ended = cli("overlap", "whatif", tmp_path / "t.neff", "--ranks", 4, "--shift-ag", 1)
        assert ended.status == 3 and ended.err.count("\n") == 1, (data[:40], ended.err)


def test_a_run_that_does_not_finish_is_told(cli: Cli, root: Path) -> None:
    ended = cli("overlap", "whatif", root / "examples/ranks/deadlock.py", "--ranks", 2, "--dma-packet", 65536)
    assert ended.status == 5
    for when in ("before", "after"):
        assert f"the run {when} the change did not finish: its times and outputs end there" in ended.err
