"""`neurontools doctor env`: every kind of finding planted beside a clean twin, files, formats."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.nrt.environment import NAMED, VARIABLES, misfit, nearest, parse_cpus, parse_environment, variable
from neurontools.doctor.env import examined
from neurontools.doctor.findings import KINDS
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.corpus.files import find

CLEAN = {
    "NEURON_RT_VISIBLE_CORES": "4-7", "NEURON_LOGICAL_NC_CONFIG": "1", "NEURON_RT_LOG_LEVEL": "info",
    "NEURON_SCRATCHPAD_PAGE_SIZE": "1024", "NEURON_CC_FLAGS": "-O1 --hbm-scratchpad-page-size=1024",
    "NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY": "40-47,88-95,136-143,184-191",
    "NEURON_RT_ROOT_COMM_ID": "10.0.0.1:5000",
    "NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY": "/tmp/x/dt-%d-cid-%c", "NEURON_PROCESS_TAG": "a",
    "HOME": "/", "NEURONTOOLS_X": "1",
    "FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "NEURON_RT_STOCHASTIC_ROUNDING_EN": "1",
    "NEURON_RT_STOCHASTIC_ROUNDING_SEED": "7",
}  # fmt: skip
PLANTED: list[tuple[str, dict[str, str | None], str]] = [
    ("unknown", {"NEURON_RT_VISBLE_CORES": "1"}, "did you mean NEURON_RT_VISIBLE_CORES?"),
    ("unknown", {"NEURON_RT_LOG_LEVEL_KMGR": "INFO"}, "NEURON_RT_LOG_LEVEL_NMGR"),
    ("unknown", {"NEURON_RT_PROFILE_BUF_DMAS_MB": "5"}, "CC_CORE_EVENT"),
    ("removed", {"NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS": "3"}, "nrta_execute_schedule"),
    ("removed", {"NEURONCORE_GROUP_SIZES": "1,1"}, "NEURON_RT_VISIBLE_CORES"),
    ("value", {"NEURON_RT_LOG_LEVEL": "loud"}, "ERROR, WARNING"),
    ("value", {"NEURON_RT_VISIBLE_CORES": "0,2"}, "cores in a row"),
    ("value", {"NEURON_RT_VISIBLE_CORES": "7-4"}, "numbers and ranges"),
    ("value", {"NEURON_RT_ROOT_COMM_ID": "10.0.0.1"}, "an address and a port"),
    ("value", {"NEURON_RT_EXEC_TIMEOUT": "soon"}, "a number from 0"),
    ("value", {"NEURON_RT_VALIDATE_HASH": "yes"}, "TRUE or FALSE"),
    ("cores", {"NEURON_RT_VISIBLE_CORES": "127-128"}, "0 to 127"),
    ("cores", {"NEURON_RT_VISIBLE_CORES": None, "NEURON_RT_NUM_CORES": "200"}, "128 at most"),
    ("contradiction", {"NEURON_RT_NUM_CORES": "2"}, "one of the two"),
    ("lnc", {"NEURON_RT_VIRTUAL_CORE_SIZE": "2"}, "one of the two"),
    ("page-size", {"NEURON_SCRATCHPAD_PAGE_SIZE": "1100", "NEURON_CC_FLAGS": "--hbm-scratchpad-page-size 1100"},
     "1024"),
    ("page-size", {"NEURON_SCRATCHPAD_PAGE_SIZE": "2048"}, "NEURON_SCRATCHPAD_PAGE_SIZE=1024"),
    ("page-size", {"NEURON_CC_FLAGS": "-O1"}, "--hbm-scratchpad-page-size=1024"),
    ("no-effect", {"NEURON_RT_CONTIGUOUS_SCRATCHPAD": "1"}, "page size"),
    ("no-effect", {"NEURON_LOGICAL_NC_CONFIG": "2"}, "NEURON_RT_CONTIGUOUS_SCRATCHPAD=0"),
    ("no-effect", {"NEURON_RT_INSPECT_DEVICE_PROFILE": "1"}, "NEURON_RT_INSPECT_ENABLE=1"),
    ("no-effect", {"NEURON_RT_STOCHASTIC_ROUNDING_EN": "0"}, "NEURON_RT_STOCHASTIC_ROUNDING_EN=1"),
    ("profiling", {"NEURON_RT_INSPECT_ENABLE": "1"}, "switch it off"),
    ("profiling", {"NEURON_RT_ENABLE_DGE_NOTIFICATIONS": "1"}, "profiles only"),
    ("affinity", {"NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY": "40-47"}, "as many CPUs of each node"),
    ("affinity", {"NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY": "0,48"}, "taskset"),
    ("affinity", {"NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY": "40,88,200,201"}, "0 to 191"),
    ("folder", {"NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY": "/tmp/%z"}, "%d"),
    ("folder", {"NEURON_RT_S3_CORE_DUMP_PREFIX": "bucket/x"}, "s3://"),
    ("dumps-off", {"NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY": "", "NEURON_RT_S3_CORE_DUMP_PREFIX": ""}, "unset"),
    ("collectives", {"FI_PROVIDER": "tcp"}, "FI_PROVIDER=efa"),
]  # fmt: skip


def findings(values: dict[str, str], nodes: int = 1) -> list[tuple[str, str]]:
    result = examined({name: (value, None) for name, value in values.items()}, "trn2.48xlarge", None,
                      "0-39,48-87,96-135,144-183", nodes, here=False)  # fmt: skip
    return [(one.kind, one.fix) for one in result.findings]


def test_the_clean_twin_is_clean() -> None:
    assert findings(CLEAN) == [] and findings(CLEAN, nodes=4) == []


@pytest.mark.parametrize(("kind", "change", "fix"), PLANTED)
def test_planted(kind: str, change: dict[str, str | None], fix: str) -> None:
    values = {name: value for name, value in {**CLEAN, **change}.items() if value is not None}
    found = findings(values)
    assert any(one == kind and fix in text for one, text in found), found


def test_every_kind_is_planted() -> None:
    assert {kind for kind, _, _ in PLANTED} == set(KINDS)


def test_several_instances_need_a_network() -> None:
    values = {name: value for name, value in CLEAN.items() if not name.startswith("FI_") and "ROOT" not in name}
    assert [kind for kind, _ in findings(values)] == []
    assert [kind for kind, _ in findings(values, nodes=2)] == ["collectives"] * 3


def test_a_file_for_another_lnc(cli: Cli, root: Path, tmp_path: Path) -> None:
    path = tmp_path / "job.env"
    path.write_text("NEURON_LOGICAL_NC_CONFIG=1\n")
    pair = root / "fixtures" / "neff" / "idle_pair.neff"
    ended = cli("doctor", "env", "--from-file", path, "--neff", pair)
    assert ended.status == 1 and "made for LNC 2" in ended.out and "NEURON_LOGICAL_NC_CONFIG=2" in ended.out
    path.write_text("NEURON_LOGICAL_NC_CONFIG=2\n")
    assert cli("doctor", "env", "--from-file", path, "--neff", pair).status == 0


def test_the_process_itself_and_its_folders(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY", f"{tmp_path}/new/dt-%d")
    assert cli("doctor").status == 0
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY", f"{tmp_path}/file/dt-%d")
    ended = cli("doctor", "--instance", "trn1.32xlarge")
    assert ended.status == 1 and "cannot be written" in ended.out


def test_json_and_sarif_of_a_file(cli: Cli, root: Path) -> None:
    path = root / "examples" / "job.env"
    result = checked_json(cli("doctor", "env", "--from-file", path, "--json"), "doctor env")
    assert {one["kind"] for one in result["findings"]} >= {"unknown", "removed", "value", "lnc", "no-effect"}
    assert all(re.fullmatch(r"runtime\.md [\d.]+", one["cite"]) for one in result["findings"])
    ended = cli("doctor", "env", "--from-file", path, "--format", "sarif")
    document = json.loads(ended.out)
    run = document["runs"][0]
    assert ended.status == 1 and document["version"] == "2.1.0" and run["invocations"][0]["exitCode"] == 1
    known = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {one["ruleId"] for one in run["results"]} <= known
    lines = {one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in run["results"]
             if "physicalLocation" in one["locations"][0]}  # fmt: skip
    assert 4 in lines and len(run["results"]) == len(result["findings"])


def test_what_the_documentation_sets_is_no_finding(corpus: Path) -> None:
    """But for the one list of cores that a page gives as an example of what is not valid."""
    assigned = re.compile(r"\b(NEURON[A-Z0-9_]+)=([^ `'\"\\\\<>$\n]+)")
    wrong, seen = set(), 0
    for path in find(corpus, "aws-neuron-sdk").rglob("*.rst"):
        for name, value in assigned.findall(path.read_text(errors="replace")):
            known = variable(name)
            if known is not None and not known.gone:
                seen += 1
                text = value.rstrip(".,;)")
                if misfit(known, text) is not None:
                    wrong.add((name, text))
    assert seen > 200 and wrong == {("NEURON_RT_VISIBLE_CORES", "3,5,6")}


def test_files_of_variables() -> None:
    text = ['export A_B="x y" C=d', "# no", "NEURON_X=1  # why", "env N=2 python t.py K=3", "noise", "", "python a=b"]
    assert parse_environment(text) == {"A_B": ("x y", 1), "C": ("d", 1), "NEURON_X": ("1", 3), "N": ("2", 4)}


def test_a_line_that_is_too_long_is_refused() -> None:
    """It was cut, and its value with it."""
    with pytest.raises(FormatError, match="too long a line"):
        parse_environment(["A=1", f"NEURON_CC_FLAGS='{'x ' * 20_000}'"])


def test_names_and_values() -> None:
    assert len(NAMED) == len(VARIABLES) and all(one.cite.startswith("runtime.md ") for one in NAMED)
    assert nearest("NEURON_RT_NUM_CORE") == "NEURON_RT_NUM_CORES" and nearest("NEURON_ZZZ") is None
    assert parse_cpus("0-2,5") == (0, 1, 2, 5) and parse_cpus("a") is None and parse_cpus("0-99999999") is None
    for one in NAMED:
        if one.default and one.kind != "folder":
            assert misfit(one, one.default) is None, one.name
    assert variable("NEURON_RT_LOG_LEVEL_TDRV") is not None


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("--from-file", "missing"), 4), (("--instance", "p5.48xlarge"), 4), (("--taskset", "all"), 2),
     (("--format", "xml"), 2), (("--neff", "missing.neff"), 4)],
)  # fmt: skip
def test_bad_options(cli: Cli, arguments: tuple[str, ...], status: int) -> None:
    assert cli("doctor", "env", *arguments).status == status


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "bad.env"
    path.write_text('NEURON_X="open\n')
    ended = cli("doctor", "env", "--from-file", path)
    assert ended.status == 3 and "bad.env" in ended.error_line and "line 1" in ended.error_line
    path.write_bytes(b"\xff=1\n")
    assert cli("doctor", "env", "--from-file", path).status == 3


def test_the_usual_page_size_said_to_the_compiler_is_no_contradiction(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "env"
    for size, status in (("512", 0), ("1024", 1)):
        file.write_text(f"NEURON_LOGICAL_NC_CONFIG=1\nNEURON_CC_FLAGS=--hbm-scratchpad-page-size={size}\n")
        assert cli("doctor", "env", "--from-file", file).status == status


def test_a_folder_whose_name_is_too_long_is_a_finding(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was an error of the command."""
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", f"/tmp/{'b' * 300}/cache")
    found = checked_json(cli("doctor", "env", "--json"), "doctor env")
    assert [one["variable"] for one in found["findings"] if one["kind"] == "folder"] == ["NEURON_COMPILE_CACHE_URL"]
