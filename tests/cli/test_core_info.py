"""`neurontools core info`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.dumps import dump, refuses_bad_dumps


def test_a_hang(cli: Cli, hang_core: Path) -> None:
    result = checked_json(cli("core", "info", hang_core, "--json"), "core info")
    assert (result["dump"]["outcome"], result["status"]["code"], result["fault"]) == ("hang", 5, None)
    assert result["headline"] == "deadlock: nc0 Activation S[6]>=1, nc0 Pool S[4]>=1, nc0 DVE S[4]>=1"
    assert result["neff"]["name"] == "deadlock" and result["file_bytes"] == hang_core.stat().st_size
    text = cli("core", "info", hang_core).out
    assert text.startswith("deadlock.core: light core dump, trn2 (gen3), 1 core: hang\n")
    assert "NRT_TIMEOUT (5) in nrt_execute" in text and "2 lines of log" in text


def test_a_fault(cli: Cli, fault_core: Path) -> None:
    result = checked_json(cli("core", "info", fault_core, "--json"), "core info")
    assert result["fault"]["engine"] == "DVE" and result["dump"]["level"] == "full"
    assert result["headline"].endswith("out of bounds, nc0 DVE pc 2 (examples/out_of_bounds.s:15)")


def test_a_cut_dump_is_shown_with_warnings(cli: Cli, root: Path, tmp_path: Path) -> None:
    path = dump(root, "race", tmp_path / "x.core")
    path.write_bytes(path.read_bytes()[:-3000])
    ended = cli("core", "info", path)
    assert ended.status == 0 and "finished" in ended.out
    listed = cli("core", "ls", path, "--json").json
    assert any("segments are cut off or missing" in line for line in listed["warnings"])


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_dumps(cli, "core info", tmp_path)
