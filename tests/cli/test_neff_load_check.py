"""`neurontools neff load-check`."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formats.errors import FormatError
from formats.neff import open_neff
from formats.neff.coverage import coverage
from formats.neff.memory import MICROCODE_BYTES, device_memory
from formats.nrt.status import NrtStatus
from formats.ntff import open_ntff
from formats.targets import resolve_target
from neurontools.neff.captured_memory import LEDGER, captured_memory
from neurontools.neff.load_checks import Machine, predict
from tests.cli import captures
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.formats.neff.support import SMALL, changed, contents, fixture, plain_tar, wrapped
from tests.formats.ntff.made import CoreSpec, capture

LARGE = Path("nkipy") / "spike" / "tests" / "artifacts" / "matmul_large.neff"


def verdict(cli: Cli, path: Path, *more: object) -> tuple[str, dict[str, dict[str, Any]]]:
    ended = cli("neff", "load-check", path, *more, "--json")
    result = checked_json(ended, "neff load-check")
    assert ended.status == (result["status"] != "NRT_SUCCESS")
    return result["status"], {check["name"]: check for check in result["checks"]}


@pytest.fixture
def gen2(tmp_path: Path) -> Path:
    """Return a file for trn1 of our own writer."""
    path = tmp_path / "gen2.neff"
    path.write_bytes(fixture())
    return path


def test_a_sound_file_loads(cli: Cli, gen2: Path, program_file: Path) -> None:
    status, checks = verdict(cli, gen2)
    assert status == "NRT_SUCCESS" and {check["outcome"] for check in checks.values()} == {"pass"}
    assert verdict(cli, gen2, "--validate-hash")[0] == "NRT_SUCCESS"
    assert verdict(cli, program_file, "--lnc", "1")[0] == "NRT_SUCCESS"
    assert "gen2.neff on trn1, LNC 1, runtime newest: NRT_SUCCESS (0)" in cli("neff", "load-check", gen2).out


@pytest.mark.parametrize(
    ("options", "status", "check"),
    [
        (["--target", "trn2", "--lnc", "1"], "NRT_FAILURE", "target"),
        (["--lnc", "2"], "NRT_INVALID", "lnc"),
        (["--cores", "0"], "NRT_LOAD_NOT_ENOUGH_NC", "cores"),
        (["--runtime", "1.0.6904.9"], "NRT_UNSUPPORTED_NEFF_VERSION", "version"),
        (["--used-memory", "16300"], "NRT_RESOURCE", "memory"),
    ],
)
def test_each_reason_has_its_status(cli: Cli, gen2: Path, options: list[str], status: str, check: str) -> None:
    found, checks = verdict(cli, gen2, *options)
    failed = [one for one in checks.values() if one["outcome"] == "fail"]
    assert (found, [one["name"] for one in failed]) == (status, [check])
    assert failed[0]["status"] == status and failed[0]["cite"] and failed[0]["provenance"] in ("documented", "inferred")


def test_limits_are_where_they_are_said_to_be(cli: Cli, gen2: Path) -> None:
    assert verdict(cli, gen2, "--runtime", "1.0.6905.0")[0] == "NRT_SUCCESS"
    assert verdict(cli, gen2, "--cores", "1")[0] == "NRT_SUCCESS"
    assert verdict(cli, gen2, "--used-memory", 16 * 1024 - 609)[0] == "NRT_SUCCESS"
    assert verdict(cli, gen2, "--used-memory", 16 * 1024 - 608)[0] == "NRT_RESOURCE"


def many_queues(definition: dict[str, Any]) -> None:
    for number in range(20):
        definition["dma_queue"][f"qMore{number}"] = {"type": "data", "owner": "sp", "num_queues": 1}


def many_instances(definition: dict[str, Any]) -> None:
    definition["dma_queue"]["qMore"] = {
        "type": "data", "owner": "sp", "queue_instances": [f"i{number}" for number in range(600)]
    }  # fmt: skip


def no_such_stream(definition: dict[str, Any]) -> None:
    definition["pe_instr"] = "missing.bin"


def ours(definition: dict[str, Any]) -> None:
    definition["neff_features"] = ["neurontools_extended"]


@pytest.mark.parametrize(
    ("change", "options", "status", "says"),
    [
        (many_queues, [], "NRT_RESOURCE", "queue sets, a DMA engine has 16 rings"),
        (many_instances, ["--runtime", "2.31.23.0"], "NRT_RESOURCE", "runtimes before 2.31.24 take 512"),
        (many_instances, ["--runtime", "2.31.24.0"], "NRT_SUCCESS", None),
        (no_such_stream, [], "NRT_INVALID", "member is missing"),
        (b"{", [], "NRT_INVALID", "sg00/def.json: not JSON"),
        (ours, [], "NRT_INVALID", "extension words of neurontools"),
    ],
)
def test_content_decides_too(
    cli: Cli, tmp_path: Path, change: Callable[[Any], None] | bytes, options: list[str], status: str, says: str | None
) -> None:
    path = tmp_path / "changed.neff"
    path.write_bytes(changed(sg00__def_DOT_json=change))
    ended = cli("neff", "load-check", path, *options, "--json")
    result = checked_json(ended, "neff load-check")
    assert result["status"] == status
    assert says is None or says in result["reason"]


@pytest.mark.parametrize("seed", range(4))
def test_damage_is_a_prediction_and_never_more(seed: int) -> None:
    """Damage inside the archive, its hash made right again: a status, or a refusal that says where."""
    rng = random.Random(seed)
    machine = Machine(resolve_target("trn1"), 1, validate_hash=True)
    files = contents(fixture())
    for _ in range(60):
        name = rng.choice(sorted(files))
        damaged = bytearray(files[name] or b"x")
        for _ in range(rng.choice((1, 1, 2, 8))):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        neff = open_neff(wrapped(plain_tar({**files, name: bytes(damaged)})), SMALL)
        result = predict(neff, machine)
        assert result.status in NrtStatus.__members__ and bool(result.code) == (result.reason is not None)
        try:
            found = coverage(neff)
            assert found.words >= found.decoded >= max(found.reencoded, found.consistent)
        except FormatError as error:
            assert result.code and "\n" not in str(error)


def test_a_wrong_hash_counts_only_where_it_is_checked(cli: Cli, tmp_path: Path) -> None:
    data = bytearray(fixture())
    data[172] ^= 0xFF
    path = tmp_path / "hash.neff"
    path.write_bytes(data)
    assert verdict(cli, path)[0] == "NRT_SUCCESS"
    assert verdict(cli, path, "--validate-hash")[0] == "NRT_INVALID"


def test_a_version_without_documented_runtime(cli: Cli, tmp_path: Path) -> None:
    data = bytearray(fixture())
    data[24] = 7
    path = tmp_path / "version.neff"
    path.write_bytes(data)
    assert verdict(cli, path)[0] == "NRT_UNSUPPORTED_NEFF_VERSION"


def test_an_opcode_that_we_do_not_know_is_left_open(cli: Cli, tmp_path: Path) -> None:
    stream = open_neff(fixture()).subgraphs[0].stream_bytes("DVE")
    path = tmp_path / "strange.neff"
    path.write_bytes(changed(sg00__DVE_DOT_bin=b"\x77" + stream[1:]))
    status, checks = verdict(cli, path)
    assert status == "NRT_SUCCESS"
    assert checks["instructions"]["outcome"] == "open" and "0x77 (sg00/DVE)" in checks["instructions"]["message"]


def test_a_cut_file_is_invalid(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "cut.neff"
    path.write_bytes(fixture()[:4000])
    status, checks = verdict(cli, path)
    assert status == "NRT_INVALID" and checks["header"]["outcome"] == "fail"


def test_memory_is_counted_from_the_variables() -> None:
    def add(definition: dict[str, Any]) -> None:
        definition["var"]["scratch"] = {
            "type": "virtual", "var_id": 90, "size": 70 << 20, "backing_variable_off": 60 << 20, "ops": []
        }  # fmt: skip

    neff = open_neff(changed(sg00__def_DOT_json=add))
    found = {one.name: one.bytes for one in device_memory(neff)}
    graph = neff.subgraphs[0]
    words = sum(len(graph.stream_bytes(engine)) for engine in graph.streams)
    assert 0 < found["Model Code"] - MICROCODE_BYTES["gen2"] - words < 40_000 + 84_000  # loader's words, tables
    tables = sum(one.kind == "dge-table" for one in graph.variables.values())
    assert found["Tensors"] == sum(tensor.nbytes for tensor in (*neff.inputs, *neff.outputs)) + 8 * tables
    assert found["Shared Scratchpad"] == 512 << 20  # 130 MiB in a page, as captures have it
    late = {one.name: (one.bytes, one.provenance) for one in device_memory(neff, (2, 33, 0))}
    assert late["Shared Scratchpad"] == (192 << 20, "documented")  # in one region of 64 MiB steps
    assert all(one.cite and one.provenance for one in device_memory(neff))


def test_memory_beside_a_captures(cli: Cli, root: Path, tmp_path: Path) -> None:
    file, path = captures.neff(root, tmp_path), captures.capture(root)
    result = checked_json(cli("neff", "load-check", file, "--capture", path, "--json"), "neff load-check")
    captured = {one["name"]: (one["bytes"], one["captured"]) for one in result["memory"]}
    assert captured["DMA Rings IO"] == (65_536, 4_096) and captured["Model Code"][1] == 384
    assert result["machine"]["runtime"] == "2.30.51" and captured["Shared Scratchpad"] == (0, 0)
    text = cli("neff", "load-check", file, "--capture", path).out
    assert "captured" in text and "16.00" in text
    assert "captured" not in cli("neff", "load-check", file).out
    assert "captured" not in str(checked_json(cli("neff", "load-check", file, "--json"), "neff load-check")["memory"])
    other = cli("neff", "load-check", root / "fixtures" / "neff" / "add_exp.neff", "--capture", path)
    assert "is of the uuid" in other.err
    assert cli("neff", "load-check", file, "--capture", file).status == 3


def test_every_category_of_a_capture_has_its_place() -> None:
    made = open_ntff(capture([CoreSpec("s", 0, memory=dict.fromkeys(LEDGER, 1) | {"new": 5})]))
    found = captured_memory(made)
    assert found.pop("new") == 5 and sum(found.values()) == len(LEDGER)
    assert {one.name for one in device_memory(open_neff(fixture()))} <= set(found)


def test_bad_files_and_options(cli: Cli, tmp_path: Path, gen2: Path) -> None:
    refuses_bad_files(cli, "neff load-check", tmp_path)
    assert cli("neff", "load-check", gen2, "--runtime", "two").status == 2
    assert cli("neff", "load-check", gen2, "--target", "trn9").status == 3
    ended = cli("neff", "load-check", gen2, "--cores", "0", "-q", "--error-exitcode", "9")
    assert (ended.status, ended.out) == (9, "")


def test_an_older_chip_is_described_only(cli: Cli, gen2: Path) -> None:
    status, checks = verdict(cli, gen2, "--target", "inf1")
    assert status == "NRT_FAILURE" and checks["memory"]["outcome"] == "open"


def test_a_real_file(cli: Cli, corpus: Path) -> None:
    status, checks = verdict(cli, corpus / LARGE)
    assert status == "NRT_SUCCESS"
    # Nobody has named these bits: that is said, not guessed.
    assert checks["features"]["outcome"] == "open" and "12, 21" in checks["features"]["message"]
    result = json.loads(cli("neff", "load-check", corpus / LARGE, "--json").out)["result"]
    generators = 2 * 8
    assert {one["name"]: one["bytes"] for one in result["memory"]}["Tensors"] == 4_320_133_120 + generators
