"""`neurontools neff stats`."""

from __future__ import annotations

from pathlib import Path

from formats.neff import open_neff
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.corpus.files import MATMUL_SMALL, find


def test_stats_are_what_decoding_word_by_word_gives(cli: Cli, root: Path) -> None:
    for path in sorted((root / "fixtures" / "neff").glob("*.neff")):
        result = checked_json(cli("neff", "stats", path, "--json"), "neff stats")
        for graph, part in zip(open_neff(path).subgraphs, result["subgraphs"], strict=True):
            for engine, stream in graph.streams.items():
                names: dict[str, int] = {}
                for word in stream:
                    names[word.NAME] = names.get(word.NAME, 0) + 1
                found = part["engines"][engine]
                assert (found["opcodes"], found["words"]) == (names, len(stream))
                assert found["waits"] == sum((w.raw[4] != 0) + (w.raw[0] == 0xA0 and w.raw[32] != 0) for w in stream)


def test_stats_count_the_work_of_a_real_file(cli: Cli, corpus: Path) -> None:
    result = checked_json(cli("neff", "stats", find(corpus, MATMUL_SMALL), "--json"), "neff stats")
    assert result["macs"] == 128 * 256 * 128 and result["words"] == 58


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "neff stats", tmp_path)
