"""Real files of neuronx-cc; they are fetched by whoever wants these tests and are no part of the project."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from formats.engines import ENGINES
from formats.neff import Neff, open_neff, pack, unpack

# Source: formats.md 1.1 (sha256 of the whole files).
SMALL = "5100752fb155fff1c3c2a5f9d68aa13373b049f838057cf54a125e26856742de"
LARGE = "9b96f4cffb6b5180bf7d6ed1e3eb3485f1b829a6b249ac26d0f56e96794f073c"


def real_files(corpus: Path) -> list[Path]:
    found = sorted(corpus.rglob("*.neff"))
    if not found:
        pytest.skip("no .neff below NEURONTOOLS_CORPUS")
    return found


@pytest.fixture(scope="module")
def small(corpus: Path) -> Neff:
    path = next((p for p in real_files(corpus) if p.name == "matmul_small.neff"), None)
    if path is None:
        pytest.skip("no nkipy/spike/tests/artifacts/matmul_small.neff below NEURONTOOLS_CORPUS")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SMALL
    return open_neff(path)


def test_every_real_file_verifies(corpus: Path) -> None:
    for path in real_files(corpus):
        assert open_neff(path).verify() == [], path


def test_every_real_file_packs_to_itself(corpus: Path, tmp_path: Path) -> None:
    for number, path in enumerate(real_files(corpus)):
        unpack(open_neff(path), tmp_path / str(number))
        assert pack(tmp_path / str(number), tmp_path / "out").method == "unchanged"
        assert (tmp_path / "out").read_bytes() == path.read_bytes(), path


def test_vectors_of_the_member_table(corpus: Path, reference_data: Path) -> None:
    vectors = json.loads((reference_data / "neff_header_vectors.json").read_text())["files"]
    by_hash = {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in real_files(corpus)}
    known = [(vector, by_hash[vector["file_sha256"]]) for vector in vectors if vector["file_sha256"] in by_hash]
    assert known
    for vector, path in known:
        neff = open_neff(path)
        assert [(m.name, m.size) for m in neff.members] == [(m["name"], m["size"]) for m in vector["members"]]
        assert neff.archive.compression == vector["data"]["compression"]
        assert neff.archive.stream_length == vector["data"]["gzip_bytes"]
        assert neff.archive.tar.size == vector["data"]["tar_bytes"]


def test_small_matmul_in_full(small: Neff) -> None:
    assert (small.target.name, small.lnc, small.header.uuid.hex()) == ("trn2", 2, "00a04c535fd94f07bffdd5eacdefc852")
    assert [(t.name, t.dtype, t.shape) for t in small.inputs + small.outputs] == [
        ("x", "float16", (128, 256)),
        ("y", "float16", (256, 128)),
        ("output0", "float16", (128, 128)),
    ]
    assert small.json("hlo_stats.json")["HloMacCount"] == 4194304  # type: ignore[index]
    assert small.info is not None and small.info.tool_version == "2.23.6484.0+3b612583"
    for graph in small.subgraphs:
        assert [len(graph.stream_bytes(engine)) // 64 for engine in ENGINES] == [12, 5, 7, 2, 3]
        assert [len(graph.debug(engine)) for engine in ENGINES] == [12, 5, 7, 2, 3]  # type: ignore[arg-type]
        assert graph.queues["qPoolDynamic"].semaphores == tuple(range(24, 40))
        assert graph.queues["qPoolDynamic"].scratch_size == 16384
        assert np.array_equal(graph.constant_array("identity_82_sg0000").squeeze(), np.eye(128, dtype=np.float16))
        assert graph.variables["DGETable0"].entries == (1, 2, 3)
    place = small.source_of("Pool", 3)
    assert place is not None and place.name == "I-71-0" and place.line == 58 and place.file is not None
    assert place.file.endswith("test_spike_async.py") and place.tensor == "float16<128 x 64> $71[c1_51]"
    assert small.source_of("PE", 0) is None


def test_activation_table_computes_exp(small: Neff) -> None:
    """The look-up of formats.md 3.10, written out here: the values that the reader gives are the table's."""
    (table,) = small.subgraphs[0].activation_sets
    functions = {f.name: f for f in table.functions}
    assert (len(table.buckets), len(table.controls)) == (941, 89)
    assert {n: functions[n].func_id for n in ("identity", "exp", "tanh", "copy", "memset_zero")} == {
        "identity": 1,
        "exp": 7,
        "tanh": 6,
        "copy": 128,
        "memset_zero": 130,
    }
    assert functions["exp"].pieces == 400 and table.bucket_starts["tanh"] == 813
    assert table.raw["func_to_ctl_start_idx"]["tanh"] == 64
    profile = functions["exp"].profile
    for x in np.linspace(-5, 5, 1001, dtype=np.float32):
        bits = int(np.float32(abs(x)).view(np.uint32))
        exponent, mantissa = bits >> 23, bits & 0x7FFFFF
        if exponent < profile["small_pos_signal_exp_threshold"]:
            continue
        base = profile["pwl_control_base_neg" if x < 0 else "pwl_control_base_pos"]
        control = table.controls[base + exponent - 127 - profile["exp_offset"]]
        piece = table.buckets[control.bucket + (mantissa >> control.shift if control.log2_count else 0)]
        t = float(x) - piece.x0
        value = piece.d0 + t * (piece.d1 + t * (piece.d2 + t * piece.d3))
        assert value == pytest.approx(float(np.exp(x)), rel=2e-5)


def test_large_matmul_has_its_words(corpus: Path) -> None:
    path = next((p for p in real_files(corpus) if p.name == "matmul_large.neff"), None)
    if path is None:
        pytest.skip("no nkipy/spike/tests/artifacts/matmul_large.neff below NEURONTOOLS_CORPUS")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == LARGE
    neff = open_neff(path)
    assert sum(len(g.stream_bytes(engine)) // 64 for g in neff.subgraphs for engine in ENGINES) == 59_590


def test_standard_tools_agree_on_the_members(small: Neff, tmp_path: Path) -> None:
    (tmp_path / "data.tar").write_bytes(small.archive.tar.read(0, small.archive.tar.size))
    listed = subprocess.run(["tar", "-tf", str(tmp_path / "data.tar")], capture_output=True, text=True, check=True)
    assert listed.stdout.split() == [member.name for member in small.members]
