"""One call of the collector: documented names, what is in them, and whatever may be missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from formats.core import open_core
from formats.core.records import DeviceNote
from formats.nrt.names import parse_file
from neurontools.dump.flags import FLAGS, read_flags
from neurontools.dump.program import usage
from tests.dump.support import INSTANCE, ROOT, core_file, environment, flags, run, sysfs, whole_dumps
from tests.nrt.logs import OOB, STATUS, infodump
from tools import dump_manual as manual

DIRECTORY = "dt-20250917-194443-cid-0000000000000000"
HEAD = f"{INSTANCE}-nd0-nc"
TAIL = "-pid-897-tid-897-lid-0"


def test_an_emulated_device_is_handed_over(tmp_path: Path) -> None:
    core = core_file(tmp_path / "core", cores=2)
    log = tmp_path / "log"
    log.write_text("\n".join([OOB, STATUS, *infodump()]))
    directory = tmp_path / "dumps" / DIRECTORY
    ended = run(
        flags(directory, pid=4444),
        env=environment(
            NEURONTOOLS_CORE_FILE=str(core),
            NEURONTOOLS_LOG_FILE=str(log),
            NEURON_RT_LOG_LEVEL="INFO",
            NEURON_SECRET_TOKEN="hush",
        ),
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{directory}\n", "")
    names = sorted(os.listdir(directory))
    tail = "-pid-4444-tid-4444-lid-0"
    assert names == [
        f"{HEAD}0{tail}", f"{HEAD}1{tail}", f"{INSTANCE}-neuron-dump{tail}.json", f"{INSTANCE}-nrt-pid-4444.log"
    ]  # fmt: skip
    assert (directory / names[0]).read_bytes() == (directory / names[1]).read_bytes() == core.read_bytes()
    assert (directory / names[0]).stat().st_ino == (directory / names[1]).stat().st_ino
    assert (directory / names[3]).read_text() == log.read_text() + "\n"
    document = json.loads((directory / names[2]).read_text())
    assert document["arguments"]["error-code"] == "1006" and document["arguments"]["neff-name"] == "model"
    assert document["environment"]["variables"] == {"NEURON_RT_LOG_LEVEL": "INFO"}
    assert "numpy" in document["environment"]["packages"] and document["missing"] == []
    assert "hush" not in (directory / names[2]).read_text()
    assert whole_dumps(directory) == {4444}


def test_a_real_device_is_read_from_sysfs(tmp_path: Path) -> None:
    directory = tmp_path / DIRECTORY
    ended = run(flags(directory, sysfs_root=sysfs(tmp_path / "sys", devices=2)))
    assert ended.returncode == 0
    names = sorted(name for name in os.listdir(directory) if "-nc" in name)
    assert names == [f"{INSTANCE}-nd{d}-nc{c}{TAIL}" for d in (0, 1) for c in (0, 1)]
    core = open_core(directory / names[3])
    assert (core.status.code, core.status.name, core.error_location) == (1006, "NRT_EXEC_OOB", "nrt_execute")
    assert core.dump.device == "neuron" and core.neff.name == "model"
    note = core.note(DeviceNote)
    assert note is not None and (note.device, note.core) == (1, 1)
    assert note.core_attributes == {"stats/status/oob/total": "2"}
    assert note.attributes["info/serial_number"] == "19fc1" and "reset" not in note.attributes
    shown = run(["info", str(directory / names[3])])
    assert shown.returncode == 0 and "nd1 nc1" in shown.stdout and "stats/status/oob/total 2" in shown.stdout
    why = run(["why", str(directory / names[3])])
    assert "the runtime reported NRT_EXEC_OOB" in why.stdout and "nobody waits" not in why.stdout


@pytest.mark.parametrize(
    ("variables", "cores"),
    [
        ({"NEURON_RT_VISIBLE_CORES": "1-2"}, [(0, 1), (1, 0)]),
        ({"NEURON_RT_VISIBLE_CORES": "1", "NEURON_RT_VIRTUAL_CORE_SIZE": "2"}, [(1, 0), (1, 1)]),
        ({"NEURON_RT_VISIBLE_CORES": "what"}, [(0, 0), (0, 1), (1, 0), (1, 1)]),
    ],
)
def test_only_visible_cores(tmp_path: Path, variables: dict[str, str], cores: list[tuple[int, int]]) -> None:
    directory = tmp_path / DIRECTORY
    run(flags(directory, sysfs_root=sysfs(tmp_path / "sys", devices=2)), env=environment(**variables))
    parsed = [parse_file(name) for name in sorted(os.listdir(directory))]
    assert [(each.device, each.core) for each in parsed if each is not None and each.kind == "core"] == cores


def test_nothing_is_there_but_the_call(tmp_path: Path) -> None:
    ended = run(flags(tmp_path / DIRECTORY, sysfs_root=tmp_path / "none"))
    assert ended.returncode == 0
    assert "log tail not collected" in ended.stderr and "device state not collected" in ended.stderr
    (name,) = os.listdir(tmp_path / DIRECTORY)
    document = json.loads((tmp_path / DIRECTORY / name).read_text())
    assert [each["what"] for each in document["missing"]] == ["log tail", "device state"]


@pytest.mark.parametrize("manifest", ["", "[]", "{}", '{"files": [1]}', '{"files": 7}'])
def test_a_damaged_manifest_is_left_as_it_is(tmp_path: Path, manifest: str) -> None:
    path = tmp_path / DIRECTORY / f"{INSTANCE}-neuron-dump{TAIL}.json"
    path.parent.mkdir()
    path.write_text(manifest)
    ended = run(flags(path.parent))
    assert (ended.returncode, ended.stdout) == (0, f"{path.parent} (was there already)\n")
    assert path.read_text() == manifest


def test_odd_calls_are_warnings(tmp_path: Path) -> None:
    arguments = [*flags(tmp_path / DIRECTORY, pid=1, error_code="NRT_TIMEOUT", timeout="soon"), "--new-flag", "7",
                 "stray", "--tid=what", "--log-id"]  # fmt: skip
    ended = run(arguments)
    assert ended.returncode == 0
    for text in ("--new-flag is not known", "'stray' belongs to no flag", "--tid 'what' is not a number",
                 "--log-id has no value", "--timeout 'soon'"):  # fmt: skip
        assert text in ended.stderr
    assert (tmp_path / DIRECTORY / f"{INSTANCE}-neuron-dump-pid-1-tid-0-lid-0.json").exists()
    assert read_flags(arguments).number("--error-code") == 5


def test_names_cannot_leave_the_directory(tmp_path: Path) -> None:
    directory = tmp_path / "in" / DIRECTORY
    run(flags(directory, instance_id="../../evil"))
    assert os.listdir(tmp_path) == ["in"] and len(os.listdir(directory)) == 1


def test_without_flags_and_variables_the_default_directory_is_the_runtimes() -> None:
    request = read_flags(["--date-time", "2025-09-17-19-44", "--cluster-id", "abc"])
    assert request["--local-output-dir"] == "/tmp/neuron-core-dump/dt-2025-09-17-19-44-cid-abc"


def test_both_empty_disables(tmp_path: Path) -> None:
    ended = run(flags("", s3_output_prefix=""))
    assert ended.returncode == 0 and "nothing to do" in ended.stderr and ended.stdout == ""


def test_a_second_call_changes_nothing(tmp_path: Path) -> None:
    core = core_file(tmp_path / "core")
    directory = tmp_path / DIRECTORY
    variables = environment(NEURONTOOLS_CORE_FILE=str(core))
    run(flags(directory), env=variables)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()}
    ended = run(flags(directory), env=variables)
    assert (ended.returncode, ended.stdout) == (0, f"{directory} (was there already)\n")
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()} == before


def test_a_shared_log_gives_the_lines_of_the_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("\n".join([OOB.replace("4444:4445", "1:1"), OOB, "  and more of it", STATUS.replace("4444", "2")]))
    run(flags(tmp_path / DIRECTORY, pid=4444, log=log))
    kept = (tmp_path / DIRECTORY / f"{INSTANCE}-nrt-pid-4444.log").read_text().splitlines()
    assert kept == [OOB, "  and more of it"]


def test_the_end_of_a_long_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"{number} {'x' * 400}\n" for number in range(5000)))
    run(flags(tmp_path / DIRECTORY, log=log))
    kept = (tmp_path / DIRECTORY / f"{INSTANCE}-nrt-pid-897.log").read_text().splitlines()
    assert kept[-1].startswith("4999 ") and 1000 < len(kept) <= 2000 and kept[0].split()[0].isdecimal()


def test_a_damaged_core_is_kept_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(b"no core")
    ended = run(flags(tmp_path / DIRECTORY), env=environment(NEURONTOOLS_CORE_FILE=str(tmp_path / "core")))
    assert ended.returncode == 0
    assert (tmp_path / DIRECTORY / f"{HEAD}0{TAIL}").read_bytes() == b"no core"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_is_no_failure(tmp_path: Path, unbuffered: str) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "neurontools.dump", *flags(tmp_path / DIRECTORY)]
    ended = subprocess.run(
        command, stdout=write, stderr=write, env=environment(PYTHONUNBUFFERED=unbuffered), check=False
    )
    os.close(write)
    assert ended.returncode == 0 and whole_dumps(tmp_path / DIRECTORY) == {897}


def test_it_starts_without_the_heavy_packages(tmp_path: Path) -> None:
    code = (
        "import sys; from neurontools.dump.program import main; main(sys.argv[1:]); "
        "print([m for m in ('numpy', 'typer', 'rich', 'textual', 'emulator', 'boto3') if m in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code, *flags(tmp_path / DIRECTORY)], env=environment(), text=True,
                           capture_output=True, check=True)  # fmt: skip
    assert ended.stdout.splitlines()[-1] == "[]"


def test_words_hand_over_to_the_reader(tmp_path: Path) -> None:
    core = core_file(tmp_path / "core")
    ended = run(["show", str(core), "--json"])
    assert ended.returncode == 0 and json.loads(ended.stdout)["schema"] == "neurontools.core.info/1"
    ended = run(["why", str(core)])
    assert "index 99999 of 128" in ended.stdout and "k.py" in ended.stdout
    assert run(["nonsense"]).returncode == 2
    assert run(["recover", str(tmp_path / "none")]).returncode == 4


def test_help_and_manual_name_every_flag() -> None:
    assert (ROOT / manual.PATH).read_text() == manual.page(), "run `python -m tools`"
    for flag in FLAGS:
        assert flag.name in usage() and flag.name.replace("-", "\\-") in manual.page()
    assert run(["--help"]).stdout.rstrip("\n") == usage()
    assert run([]).returncode == 2
    # The flags of the runtime are exactly the documented ones.
    assert {flag.name for flag in FLAGS if flag.cite} == {
        "--neff-name", "--neff-uuid", "--date-time", "--pid", "--tid", "--log-id", "--instance-id", "--cluster-id",
        "--error-location", "--error-code", "--local-output-dir", "--s3-output-prefix",
    }  # fmt: skip
