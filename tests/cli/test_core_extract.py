"""`neurontools core extract`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from formats.core import open_core
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.dumps import dump, refuses_bad_dumps


def test_everything_as_plain_files(cli: Cli, root: Path, tmp_path: Path) -> None:
    path, folder = dump(root, "deadlock", tmp_path / "x.core"), tmp_path / "out"
    result = checked_json(cli("core", "extract", path, folder, "--json"), "core extract")
    on_disk = {str(p.relative_to(folder)): p.stat().st_size for p in folder.rglob("*") if p.is_file()}
    assert result["files"] == on_disk and result["bytes"] == sum(on_disk.values())
    assert (folder / "log.txt").read_text() == "one\ntwo\n"
    assert json.loads((folder / "notes" / "status.json").read_text())["code"] == 5
    core = open_core(str(path))
    words = core.read("instructions", 0, 0, 192, engine="DVE").data
    assert (folder / "instructions" / "nc0-DVE.bin").read_bytes() == words
    assert "EVENT_SEMAPHORE S[8]>=16" in (folder / "instructions" / "nc0-DVE.s").read_text()
    places = json.loads((folder / "memory" / "nc0-SBUF.json").read_text())
    assert places[1]["offset"] == places[0]["bytes"] and (folder / "memory" / "nc0-SBUF.bin").stat().st_size == 65536
    assert np.load(folder / "tensors" / "y.npy").shape == (128, 64)


def test_names_do_not_leave_the_folder(cli: Cli, tmp_path: Path) -> None:
    from formats.core import CoreWriter
    from formats.core import records as r

    with CoreWriter(tmp_path / "x.core") as writer:
        writer.note(r.DumpNote(target="trn2", generation="gen3"))
        writer.note(r.TensorsNote((r.TensorState("../../evil", "input", "HBM", None, "float32", (1,), 64, 4),),
                                  (r.Allocation("../../evil", 64, 4, 4, 4),)))  # fmt: skip
        writer.note(r.MapNote((r.Window("../HBM", 0, "../e", 64, 4, 1, 4), r.Window("HBM", 0, "", 0, 128, 1, 128))))
        writer.segment(64, b"abcd")
    assert cli("core", "extract", tmp_path / "x.core", tmp_path / "out").status == 0
    assert {each.name for each in tmp_path.iterdir()} == {"x.core", "out"}


def test_a_full_folder_is_refused(cli: Cli, tmp_path: Path, hang_core: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    assert cli("core", "extract", hang_core, tmp_path / "full").status == 2


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_dumps(cli, "core extract", tmp_path, tmp_path / "out")


def test_each_core_and_each_name_has_its_own_file(cli: Cli, tmp_path: Path) -> None:
    """Both cores of a pair have a tensor of one name; names that a file cannot have may be the same when cut."""
    from formats.core import CoreWriter
    from formats.core import records as r

    tensors = [("t", 0, 64, b"aaaa"), ("t", 1, 128, b"bbbb"), ("a/b", None, 192, b"cccc"), ("a:b", None, 256, b"dddd")]
    with CoreWriter(tmp_path / "x.core") as writer:
        writer.note(r.DumpNote(target="trn2", generation="gen3", cores=2, level="full"))
        writer.note(r.TensorsNote(
            tuple(r.TensorState(name, "virtual", "HBM", core, "int32", (1,), at, 4) for name, core, at, _ in tensors),
            tuple(r.Allocation(f"{name} {core}", at, 4, 4, 4) for name, core, at, _ in tensors)))  # fmt: skip
        writer.note(r.MapNote((r.Window("HBM", 0, "", 0, 1 << 20, 1, 1 << 20),)))
        for _, _, at, data in tensors:
            writer.segment(at, data)
    assert cli("core", "extract", tmp_path / "x.core", tmp_path / "out").status == 0
    found = {path.name: np.load(path).tobytes() for path in (tmp_path / "out" / "tensors").iterdir()}
    assert found == {"nc0-t.npy": b"aaaa", "nc1-t.npy": b"bbbb", "a_b.npy": b"cccc", "a_b-2.npy": b"dddd"}
