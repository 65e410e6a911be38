"""`neurontools core diff`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.dumps import dump, refuses_bad_dumps


def test_the_same(cli: Cli, root: Path, tmp_path: Path) -> None:
    one, two = (dump(root, "deadlock", tmp_path / name) for name in ("a.core", "b.core"))
    ended = cli("core", "diff", one, two, "--json")
    result = checked_json(ended, "core diff")
    assert ended.status == 0 and result["same"] and result["compared"] > 60_000 and result["only_one"] == 0
    assert cli("core", "diff", one, two).out.startswith("the same: 0 differences")


def test_another_moment(cli: Cli, root: Path, tmp_path: Path, hang_core: Path) -> None:
    early = dump(root, "deadlock", tmp_path / "a.core", steps=6)
    ended = cli("core", "diff", hang_core, early, "--json")
    result = checked_json(ended, "core diff")
    found = {d["where"]: (d["one"], d["two"]) for d in result["differences"]}
    assert ended.status == 1 and found["dump outcome"] == ("hang", "running") and found["nc0 S[8]"] == (16, 0)
    assert found["nc0 qIn pending"] == (0, 1) and "nc0 DVE pc" in found
    assert "nc0 S[8]" in cli("core", "diff", hang_core, early).out


def test_other_bytes(cli: Cli, root: Path, tmp_path: Path) -> None:
    one, two = (dump(root, "double", tmp_path / f"{x}.core", x=x) for x in (1.0, 2.0))
    ended = cli("core", "diff", one, two, "--json")
    result = checked_json(ended, "core diff")
    assert ended.status == 1 and result["differences"] == []
    assert {m["space"] for m in result["memory"]} == {"HBM", "SBUF"}
    inputs = next(m for m in result["memory"] if m["space"] == "HBM")
    assert inputs["name"] == "x" and inputs["different"] > 0
    assert cli("core", "diff", one, two, "--error-exitcode", "7").status == 7


def test_bad_files(cli: Cli, tmp_path: Path, hang_core: Path) -> None:
    refuses_bad_dumps(cli, "core diff", tmp_path, hang_core)
    assert cli("core", "diff", hang_core, tmp_path / "none.core").status == 4


def test_every_range_is_listed(cli: Cli, tmp_path: Path) -> None:
    """It stopped at 200 without a word."""
    from formats.core import CoreWriter
    from formats.core import records as r

    for name, byte in (("a.core", b"a"), ("b.core", b"b")):
        with CoreWriter(tmp_path / name) as writer:
            writer.note(r.DumpNote(target="trn2", generation="gen3"))
            writer.note(r.MapNote((r.Window("HBM", 0, "", 0, 1 << 20, 1, 1 << 20),)))
            for number in range(300):
                writer.segment(64 * number, byte * 8)
    ended = cli("core", "diff", tmp_path / "a.core", tmp_path / "b.core", "--json")
    assert len(checked_json(ended, "core diff")["memory"]) == 300
    text = cli("core", "diff", tmp_path / "a.core", tmp_path / "b.core").out
    assert "and 260 more; --json lists them" in text and "300 ranges of memory" in text


def test_a_byte_that_only_one_wrote_differs(cli: Cli, tmp_path: Path) -> None:
    from formats.core import CoreWriter
    from formats.core import records as r

    for name, plane in (("a.core", b"\x0f"), ("b.core", b"\x3f"), ("c.core", None)):
        with CoreWriter(tmp_path / name) as writer:
            writer.note(r.DumpNote(target="trn2", generation="gen3"))
            writer.note(r.MapNote((r.Window("HBM", 0, "", 0, 1 << 20, 1, 1 << 20),)))
            writer.segment(64, bytes(8), written=plane)
    a, b, c = (tmp_path / name for name in ("a.core", "b.core", "c.core"))
    (found,) = checked_json(cli("core", "diff", a, b, "--json"), "core diff")["memory"]
    assert (found["first"], found["last"], found["different"], found["written"]) == (68, 69, 0, 2)
    assert cli("core", "diff", a, a).status == 0
    assert checked_json(cli("core", "diff", b, c, "--json"), "core diff")["memory"][0]["written"] == 2
