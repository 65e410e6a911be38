"""`neurontools check`: findings as text, JSON, SARIF and JUnit; suppressions; exit statuses."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from neurontools.check.exchange import uri_of
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli

SCRIPT = """
import sys
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def twice(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    other = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[0:ROWS, 0:8], src=x[0:ROWS, 0:8])
    nisa.tensor_tensor(dst=other, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=other)
    return out

nki.simulate(twice)(np.ones((128, 8), np.float32))
print("done", sys.argv[1:])
"""


@pytest.fixture
def race(root: Path) -> Path:
    """Return the example with a race."""
    return root / "examples" / "race.s"


def script(folder: Path, rows: int) -> Path:
    path = folder / "kernel.py"
    path.write_text(SCRIPT.replace("ROWS", str(rows)))
    return path


def test_a_race_names_both_sides_and_the_way_out(cli: Cli, race: Path) -> None:
    ended = cli("check", race)
    assert ended.status == 1 and ended.err == ""
    lines = race.read_text().splitlines()
    reader = 1 + next(i for i, line in enumerate(lines) if "TENSOR_TENSOR" in line)
    writer = 1 + next(i for i, line in enumerate(lines) if "TRIGGER qB" in line)
    assert f"race.s:{reader}" in ended.out and f"race.s:{writer}" in ended.out
    assert "let DVE wait for S[24]>=16 at or before pc 1" in ended.out
    assert ended.out.splitlines()[-1] == "race.s: memcheck, initcheck, racecheck, synccheck: 1 error"


def test_json(cli: Cli, race: Path) -> None:
    result = checked_json(cli("check", race, "--json"), "check")
    (finding,) = result["findings"]
    assert finding["id"] == "racecheck:write-read:nc0.DVE.1:nc0.Pool.1"
    assert finding["site"]["knows"] == 0 and finding["site"]["operand"] == "src1"
    assert finding["range"]["byte"] == 0x5000 and finding["range"]["partitions"] == 128
    assert finding["reproduce"] == f"neurontools check {race} --tool racecheck"
    assert result["summary"]["kinds"] == {"racecheck:write-read": 1}
    assert cli("check", race, "--format", "json").json["result"]["findings"] == result["findings"]


def test_only_the_tools_asked_for(cli: Cli, race: Path) -> None:
    assert cli("check", race, "--tool", "memcheck", "--tool", "sync").status == 0
    assert cli("check", race, "--tool", "racecheck").status == 1
    ended = cli("check", race, "--tool", "valgrind")
    assert ended.status == 2 and "no check 'valgrind'" in ended.err


def test_exit_statuses(cli: Cli, race: Path, root: Path) -> None:
    assert cli("check", race, "--error-exitcode", 99).status == 99
    assert cli("check", race, "--fail-on", "never").status == 0
    assert cli("check", race, "--quiet") == (1, "", "")
    assert cli("check", root / "examples" / "deadlock.s").status == 1
    # What no tool in use explains is still no clean run.
    ended = cli("check", root / "examples" / "deadlock.s", "--tool", "racecheck")
    assert ended.status == 5 and "deadlock" in ended.out
    for option, value in (("--fail-on", "always"), ("--format", "pdf"), ("--nki", "mine")):
        assert cli("check", race, option, value).status == 2


def test_a_hang_that_no_finding_is_about_is_no_clean_run(cli: Cli, root: Path, tmp_path: Path) -> None:
    path = tmp_path / "both.s"
    text = (root / "examples" / "deadlock.s").read_text()
    early = "    COPY src=fp32@0x4000[1,1,1,1][64,1,1,1] dst=fp32@0x7000[1,1,1,1][64,1,1,1] channels=128\n"
    path.write_text(text.replace("    COPY S[6]>=1", early + "    COPY S[6]>=1"))
    assert cli("check", path, "--tool", "racecheck").status == 1
    ended = cli("check", path, "--tool", "racecheck", "--fail-on", "never")  # a race, and a deadlock besides
    assert ended.status == 5 and "the execution did not end" in ended.out
    assert cli("check", path, "--tool", "racecheck", "--tool", "synccheck", "--fail-on", "never").status == 0


def test_notes_are_shown_when_asked_for(cli: Cli, root: Path) -> None:
    deadlock = root / "examples" / "deadlock.s"
    assert "note:" not in cli("check", deadlock).out
    assert "note:" in cli("check", deadlock, "--notes").out
    assert cli("check", deadlock, "--fail-on", "note").status == 1


def test_sarif(cli: Cli, race: Path) -> None:
    (run,) = json.loads(cli("check", race, "--format", "sarif").out)["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["racecheck/write-read"]
    (found,) = run["results"]
    place = found["locations"][0]["physicalLocation"]
    assert found["level"] == "error" and place["artifactLocation"]["uri"] == race.as_uri()
    assert "TENSOR_TENSOR" in place["region"]["snippet"]["text"]
    assert found["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] < place["region"]["startLine"]


def sarif_run(cli: Cli, *arguments: object) -> Any:
    (run,) = json.loads(cli("check", *arguments, "--format", "sarif").out)["runs"]
    return run


URI = re.compile(r"(file:///)?([\w\-.~!$&'()*+,;=@/]|%[0-9A-F]{2})+", re.ASCII)  # RFC 3986; no colon in a first segment


def conforms(document: Any) -> int:
    """Hold a log to what SARIF 2.1.0 demands of what is in it; return the number of its results."""
    assert document["version"] == "2.1.0" and document["$schema"].endswith("sarif-2.1.0.json")  # 3.13
    (run,) = document["runs"]
    driver, (invocation,) = run["tool"]["driver"], run["invocations"]
    rules = [rule["id"] for rule in driver["rules"]]
    assert driver["name"] and driver["version"] and len(set(rules)) == len(rules)  # 3.19, 3.49.3
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    assert type(invocation["executionSuccessful"]) is bool and type(invocation["exitCode"]) is int  # 3.20.8, 3.20.14
    for told in invocation["toolExecutionNotifications"]:
        assert told["level"] in ("none", "note", "warning", "error") and told["message"]["text"]  # 3.58
    results = run["results"]
    assert {result["ruleId"] for result in results} <= set(rules)  # 3.27.5
    assert len({"suppressions" in result for result in results}) <= 1  # 3.27.23: all of them, or none
    prints = [tuple(sorted(result["partialFingerprints"].items())) for result in results]
    assert len(set(prints)) == len(prints)  # 3.27.17
    for result in results:
        assert result["level"] in ("none", "note", "warning", "error") and result["message"]["text"]  # 3.27.10, 11
        assert all(one["kind"] in ("external", "inSource") for one in result.get("suppressions", ()))  # 3.35.2
        assert isinstance(result["properties"], dict)  # 3.8
        related = [place["id"] for place in result["relatedLocations"]]
        assert len(set(related)) == len(related) and all(number >= 0 for number in related)  # 3.28.2
        for place in (*result["locations"], *result["relatedLocations"]):
            assert all(one["fullyQualifiedName"] for one in place["logicalLocations"])  # 3.33
            if "physicalLocation" in place:
                where = place["physicalLocation"]
                assert (
                    URI.fullmatch(where["artifactLocation"]["uri"]) and where["region"]["startLine"] >= 1
                )  # 3.10, 3.30
    return len(results)


def test_logs_are_what_sarif_demands(cli: Cli, root: Path, race: Path, tmp_path: Path) -> None:
    accepted, several, odd = tmp_path / "accepted", tmp_path / "several.s", tmp_path / os.fsdecode(b"50% \xff.s")
    accepted.write_text("racecheck:*\n")
    unused = ".dma    qA   1  8 a+0[1,256][256,128] -> SB+0x7000[1,262144][256,128]\n"
    several.write_text(race.read_text().replace("act  40\n", f"act  40\n{unused}"))
    odd.write_text(race.read_text())
    for words, least in (((race,), 1), ((odd,), 1), ((tmp_path / "none.s",), 0), ((root / "examples/deadlock.s",), 2),
                         ((root / "examples/out_of_bounds.s", "--tool", "all", "--tool", "lint"), 1),
                         ((several, "--suppressions", accepted), 2)):  # fmt: skip
        document = json.loads(cli("check", *words, "--format", "sarif").out, parse_constant=pytest.fail)
        assert conforms(document) >= least, words


def test_names_that_are_no_text_are_uris_too() -> None:
    assert uri_of(os.fsdecode(b"a/\xff.s")) == "a/%FF.s" and uri_of(os.fsdecode(b"/\xff.s")) == "file:///%FF.s"


def test_uris_of_sarif_are_encoded(cli: Cli, race: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("50% of it").mkdir()
    odd = Path("50% of it/a race#1.s")
    odd.write_text(race.read_text())
    for path, uri in ((odd, "50%25%20of%20it/a%20race%231.s"), (tmp_path / odd, (tmp_path / odd).as_uri())):
        (found,) = sarif_run(cli, path)["results"]
        assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri
    assert uri.startswith("file:///") and uri.endswith("/50%25%20of%20it/a%20race%231.s")


def test_fingerprints_know_no_pc(cli: Cli, race: Path, tmp_path: Path) -> None:
    def prints(text: str) -> list[str]:
        path = tmp_path / str(len(text)) / "race.s"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return [one["partialFingerprints"]["finding/v2"] for one in sarif_run(cli, path)["results"]]

    text = race.read_text()
    moved = text.replace(".engine dve\n", "# a comment\n.engine dve\n    NOP cycle=0\n")
    assert moved != text and prints(moved) == prints(text)
    assert prints(text.replace("op=ADD", "op=MULTIPLY")) != prints(text)


def test_sarif_tells_of_the_run(cli: Cli, race: Path, tmp_path: Path) -> None:
    (invocation,) = sarif_run(cli, race)["invocations"]
    assert invocation == {"executionSuccessful": True, "exitCode": 1, "toolExecutionNotifications": []}
    path = script(tmp_path, 128)
    path.write_text(path.read_text() + "sys.exit(7)\n")
    (invocation,) = sarif_run(cli, path)["invocations"]
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "the script ended with status 7"
    damaged = tmp_path / "damaged.neff"
    damaged.write_bytes(b"no")
    for file, status in ((damaged, 3), (tmp_path / "missing.s", 4)):
        ended = cli("check", file, "--format", "sarif")
        (run,) = json.loads(ended.out)["runs"]
        (invocation,) = run["invocations"]
        assert ended.status == invocation["exitCode"] == status and not invocation["executionSuccessful"]
        assert run["results"] == [] and ended.error_line
        (told,) = invocation["toolExecutionNotifications"]
        assert told["level"] == "error" and told["message"]["text"] == ended.error_line
        tree = ElementTree.fromstring(cli("check", file, "--format", "junit").out)
        assert tree.find("testsuite/testcase/error") is not None
        assert cli("check", file, "--format", "sarif", "--quiet").out == ""


def test_a_script_without_launches_is_an_error(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "nothing.py"
    path.write_text("x = 1\n")
    ended = cli("check", path)
    assert ended.status == 4 and "launched no kernel" in ended.error_line
    (run,) = json.loads(cli("check", path, "--format", "sarif").out)["runs"]
    assert not run["invocations"][0]["executionSuccessful"]


def test_a_script_that_fails_before_its_first_launch_was_not_checked(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "early.py"
    path.write_text("raise SystemExit(3)\n")
    ended = cli("check", path, "--json")
    assert ended.status == 1
    why = "the script ended with status 3 before it launched a kernel: nothing was checked"
    assert ended.json["warnings"] == [why]
    assert cli("check", path).out == "early.py: memcheck, initcheck, racecheck, synccheck: nothing was checked\n"
    # reports for other programs must not say that all is well
    (run,) = json.loads(cli("check", path, "--format", "sarif").out)["runs"]
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"] and invocation["exitCode"] == 1
    assert [one["message"]["text"] for one in invocation["toolExecutionNotifications"]] == [why]
    tree = ElementTree.fromstring(cli("check", path, "--format", "junit").out)
    (told,) = tree.iterfind("testsuite/testcase/error")
    assert told.get("message") == why and len(tree.findall("testsuite/testcase")) == 1


def test_two_forms_at_once_are_refused(cli: Cli, race: Path) -> None:
    assert cli("check", race, "--json", "--format", "sarif").status == 2
    assert cli("profile", race, "--json", "--format", "chrome").status == 2


def test_junit(cli: Cli, race: Path) -> None:
    root = ElementTree.fromstring(cli("check", race, "--format", "junit").out)
    failures = {suite.get("name"): suite.get("failures") for suite in root}
    assert failures == {"memcheck": "0", "initcheck": "0", "racecheck": "1", "synccheck": "0"}
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None and "may still be writing" in str(failure.get("message"))


@pytest.mark.parametrize(
    "line",
    [
        "racecheck:write-read",
        "race*",
        "racecheck:write-read:nc0.DVE.1:* # why",
        "*  file=*race.s engine=DVE pc=1 operand=src1",
    ],
)
def test_suppressions(cli: Cli, race: Path, tmp_path: Path, line: str) -> None:
    path = tmp_path / "accepted.txt"
    path.write_text(f"# looked at\n\n{line}\n")
    ended = cli("check", race, "--suppressions", path)
    assert ended.status == 0 and ended.out.endswith("1 suppressed\n")
    (found,) = sarif_run(cli, race, "--suppressions", path)["results"]
    assert found["suppressions"] == [{"kind": "external"}]
    path.write_text("racecheck:*  engine=PE\nmemcheck:*\n")
    assert cli("check", race, "--suppressions", path).status == 1
    path.write_text("racecheck:*  colour=red\n")
    ended = cli("check", race, "--suppressions", path)
    assert ended.status == 3 and "accepted.txt:1" in ended.error_line


def test_a_script_is_checked_launch_by_launch(cli: Cli, tmp_path: Path) -> None:
    ended = cli("check", script(tmp_path, 128), "--", "--rows", 3)
    assert (ended.status, ended.err) == (0, "done ['--rows', '3']\n")
    assert ended.out == "kernel.py: memcheck, initcheck, racecheck, synccheck: nothing found\n"


def test_a_kernel_that_reads_what_it_did_not_load(cli: Cli, tmp_path: Path) -> None:
    path = script(tmp_path, 100)
    ended = cli("check", path)
    line = 1 + next(i for i, text in enumerate(path.read_text().splitlines()) if "tensor_tensor" in text)
    assert ended.status == 1 and f"kernel.py:{line}" in ended.out
    assert f"> {line} | nisa.tensor_tensor(dst=other, data1=tile, data2=tile, op=nl.add)" in ended.out
    result = checked_json(cli("check", path, "--json", "--tool", "initcheck"), "check")
    assert {finding["kind"] for finding in result["findings"]} == {"undefined-output"}
    assert result["findings"][0]["details"]["bytes"] == 28 * 8 * 4


def test_a_neff_takes_inputs(cli: Cli, program_file: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones((128, 64), np.float32))
    assert cli("check", program_file, "--inputs", tmp_path / "in.npz").status == 0
    ended = cli("check", program_file)
    assert ended.status == 0 and ended.err == "warning: input x float32[128, 64] was not given; it is all zeros\n"
    assert cli("check", script(tmp_path, 128), "--inputs", tmp_path / "in.npz").status == 2
    assert cli("check", program_file, "--inputs", tmp_path / "in.npz", "--", "more").status == 2


def test_files_that_are_none(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "check", tmp_path)


def test_the_graph_of_a_hang(cli: Cli, root: Path, race: Path) -> None:
    ended = cli("check", root / "examples" / "deadlock.s", "--format", "dot")
    assert ended.status == 1 and ended.out.startswith("digraph hang {")
    assert '"nc0 DVE" -> "nc0 Activation" [label="Activation pc 1: blocked", color=red];' in ended.out
    assert '"nc0 Pool" [label="nc0 Pool pc 1\\nS[4]>=1, is 0"];' in ended.out
    assert cli("check", race, "--format", "dot") == (1, "", "")
    (one,) = checked_json(cli("check", root / "examples" / "deadlock.s", "--json"), "check")["runs"]
    assert one["graph"]["cycles"] == [["nc0 Activation", "nc0 DVE"]]
