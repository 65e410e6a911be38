"""`neurontools dbgstream tail`: events of a file that grows."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from formats.debug_stream_files import write_events
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.test_dbgstream_decode import made


def test_a_file_that_grows(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "events"
    data = b"".join(write_events(made()))
    path.write_bytes(data[:100])

    def write() -> None:
        for at in range(100, len(data), 1500):
            time.sleep(0.1)
            with path.open("ab") as file:
                file.write(data[at : at + 1500])

    writer = threading.Thread(target=write)
    writer.start()
    result = checked_json(cli("dbgstream", "tail", path, "--period", "0.05", "--for", "2", "--json"), "dbgstream tail")
    writer.join()
    assert [row["prefix"] for row in result["events"]] == [one.prefix for one in made()] and result["waiting"] == 0
    path.write_bytes(data[:-3])
    ended = cli("dbgstream", "tail", path, "--for", "0.1")
    assert ended.status == 0 and len(ended.out.splitlines()) == len(made()) - 1


def test_bad_files_and_options(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(b"\xff" * 100)
    assert cli("dbgstream", "tail", path, "--for", "0.1").status == 3
    assert cli("dbgstream", "tail", path, "--json").status == 2
    assert cli("dbgstream", "tail", tmp_path / "missing", "--for", "0.1").status == 4
