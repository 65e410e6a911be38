"""`neurontools neff dma`."""

from __future__ import annotations

from pathlib import Path

from formats import isa
from formats.neff import open_neff
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli


def test_dma_names_what_starts_each_block(cli: Cli, program_file: Path) -> None:
    result = checked_json(cli("neff", "dma", program_file, "--json"), "neff dma")
    blocks = {block["queue"]: block for block in result["blocks"]}
    for queue in ("qIn", "qOut"):
        (trigger,) = blocks[queue]["triggers"]
        stream = open_neff(program_file).subgraphs[0].streams[trigger["engine"]]
        word = stream[trigger["pc"]]
        assert isinstance(word, isa.PseudoDmaTrigger) and word.queue == queue
    assert blocks["qIn"]["bytes"] == 32768 == sum(d["bytes"] for d in blocks["qIn"]["descriptors"])
    only = checked_json(cli("neff", "dma", program_file, "--queue", "qOut", "--json"), "neff dma")
    assert [block["queue"] for block in only["blocks"]] == ["qOut"]
    assert "qOut block 0: 32.0 KiB" in cli("neff", "dma", program_file, "--queue", "qOut").out
    missing = cli("neff", "dma", program_file, "--queue", "nowhere")
    assert missing.status == 4 and "no queue nowhere in sg00: it has qIn, qOut" in missing.err


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "neff dma", tmp_path)
