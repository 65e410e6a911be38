"""Writers that are killed, that find the disk full, or that write the same place at once: whole, old, or nothing.

`python -m tests.fuzz.interruptions --kills 1000 --disks 100 --at-once 50` is the long form of the tests beside it.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fuzz.writers import WRITERS, Writer, prepare, whole

__all__ = ["Stage", "disk_full", "killed", "many_at_once", "mounted"]

ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 600  # for one command, on a machine that does other things besides
# Counts what a program does to files and kills it at one such moment: between any two of them nothing may be half.
_CHILD = """
import os, signal, sys
left = int(sys.argv.pop(1))
if left >= 0:
    def look(event, arguments):
        global left
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & 3): return
        if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.link"):
            left -= 1
            if left < 0: os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(look)
from neurontools.cli import main
sys.exit(main())
"""
_OLD = b"what stood here before\n"


class Stage:
    """What all writers need, made once: inputs, and what a run that nothing disturbs leaves."""

    def __init__(self, folder: Path) -> None:
        self.made = folder / "made"
        self.temporary = folder / "tmp"
        for each in (self.made, self.temporary):
            each.mkdir()
        prepare(self.made)
        self._whole: dict[str, dict[str, bytes]] = {}

    def start(self, writer: Writer, folder: Path, kill_at: int = -1) -> subprocess.Popen[bytes]:
        """Start a writer in a folder; it kills itself after so many operations on files, unless below 0."""
        words = [word.format(root=ROOT, made=self.made) for word in writer.arguments.split()]
        command = [sys.executable, "-c", _CHILD, str(kill_at), *words]
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.temporary),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=folder, env=environment, **streams)  # type: ignore[call-overload, no-any-return]

    def run(self, writer: Writer, folder: Path, kill_at: int = -1) -> tuple[int, str]:
        """Run a writer to its end; return the status and what it says on standard error."""
        process = self.start(writer, folder, kill_at)
        try:
            said = process.communicate(timeout=_SECONDS)[1]
        finally:
            process.kill()
        return process.returncode, said.decode("utf-8", "replace")

    def undisturbed(self, writer: Writer) -> dict[str, bytes]:
        """Return the files that a writer leaves when nothing disturbs it."""
        if writer.option not in self._whole:
            with tempfile.TemporaryDirectory(dir=self.made) as folder:
                status, said = self.run(writer, Path(folder))
                assert status == writer.status, f"{writer.option}: status {status}: {said}"
                self._whole[writer.option] = _files(Path(folder))
            assert self._whole[writer.option], f"{writer.option} wrote nothing"
        return self._whole[writer.option]

    def wrong(self, writer: Writer, folder: Path) -> list[str]:
        """Return what is half written in a folder, or left behind; empty where each file is whole, old or absent."""
        expected = self.undisturbed(writer)
        found = _files(folder)
        wrong = [f"{name} is left behind" for name in found if name.split("/")[0] not in _tops(expected)]
        place = folder / writer.out
        inside = {name: data for name, data in found.items() if name.split("/")[0] == writer.out}
        if writer.same and place.is_dir() and any(place.iterdir()):
            wrong += [] if inside == _below(expected, writer.out) else [f"{writer.out} is not whole"]
        for name, data in inside.items():
            if data != _OLD and not (data == expected.get(name) if writer.same else whole(folder / name)):
                wrong.append(f"{name} is half written: {len(data):,} bytes")
        return wrong


def _below(files: dict[str, bytes], top: str) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if name.split("/")[0] == top}


def _tops(files: dict[str, bytes]) -> set[str]:
    return {name.split("/")[0] for name in files}


def _files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


def _hidden(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".")]


def killed(stage: Stage, writer: Writer, chance: random.Random, times: int) -> list[str]:
    """Kill a writer at random operations on files, over an old file or none; return what was wrong afterwards."""
    wrong: list[str] = []
    folder = Path(tempfile.mkdtemp(dir=stage.made))
    expected, reach = stage.undisturbed(writer), 24
    try:
        for _ in range(times):
            old = writer.out in expected and chance.random() < 0.5
            if old:
                (folder / writer.out).write_bytes(_OLD)
            status, said = stage.run(writer, folder, chance.randrange(reach))
            if status == writer.status:
                reach = max(4, reach - 2)  # it had ended before: aim earlier
            elif status != -9:
                wrong.append(f"status {status}: {said}")
            wrong += [text for text in stage.wrong(writer, folder) if not text.startswith(".")]
            if old and not (folder / writer.out).exists():
                wrong.append(f"{writer.out} was there and is lost")
            _remove(folder / writer.out)
        # The next one cleans up what killed ones left.
        status, said = stage.run(writer, folder)
        wrong += [] if status == writer.status else [f"afterwards: status {status}: {said}"]
        wrong += stage.wrong(writer, folder)
        wrong += [f"{name} is left behind" for name in _hidden(folder)]
    finally:
        shutil.rmtree(folder)
    return wrong


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


@contextmanager
def mounted(folder: Path, pages: int) -> Iterator[Path | None]:
    """Give a file system of so many pages, or None where this machine does not let us mount one."""
    folder.mkdir(exist_ok=True)
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", f"size={pages * os.sysconf('SC_PAGE_SIZE')}", "none", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], capture_output=True, check=True)


def disk_full(stage: Stage, writer: Writer, disk: Path, free: int) -> list[str]:
    """Run a writer on a disk that has room for less than it writes; return what was wrong afterwards."""
    with mounted(disk, free + 1) as folder:
        if folder is None:
            return ["no file system can be mounted here"]
        old = writer.out in stage.undisturbed(writer)
        if old:
            (folder / writer.out).write_bytes(_OLD)  # takes the one page more
        status, said = stage.run(writer, folder)
        if status == writer.status:  # it fitted
            return stage.wrong(writer, folder)
        wrong = stage.wrong(writer, folder) + [f"{name} is left behind" for name in _hidden(folder)]
        if old and not (folder / writer.out).exists():
            wrong.append(f"{writer.out} was there and is lost")
        if "no space left on device" not in said.lower() or "Traceback" in said or said.count("neurontools:") != 1:
            wrong.append(f"status {status}: {said}")
        return wrong


def many_at_once(stage: Stage, writer: Writer, count: int) -> list[str]:
    """Let many processes write the same place; return what was wrong afterwards."""
    stage.undisturbed(writer)
    folder = Path(tempfile.mkdtemp(dir=stage.made))
    try:
        running = [stage.start(writer, folder) for _ in range(count)]
        ended = [(process.communicate(timeout=_SECONDS * 5)[1].decode(), process.returncode) for process in running]
        wrong = [
            f"status {status}: {said}"
            for said, status in ended
            if status != writer.status and "exists already" not in said
        ]
        wrong += [] if any(status == writer.status for _, status in ended) else ["none of them wrote"]
        return wrong + stage.wrong(writer, folder) + [f"{name} is left behind" for name in _hidden(folder)]
    finally:
        shutil.rmtree(folder)


def main() -> int:
    """Disturb every writer in turn, tell what went wrong, and return 1 where that is anything."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.interruptions", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="over all writers")
    parser.add_argument("--disks", type=int, default=100, help="full disks over all writers")
    parser.add_argument("--at-once", type=int, default=50, help="processes that write one place")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="options whose name holds this")
    given = parser.parse_args()
    chance = random.Random(given.seed)
    writers = [writer for writer in WRITERS if given.only is None or given.only in writer.option]
    bad = 0
    with tempfile.TemporaryDirectory(prefix="neurontools-interrupted-") as name:
        stage = Stage(Path(name))
        for number, writer in enumerate(writers):
            pages = sum(-(-len(data) // 4096) for data in stage.undisturbed(writer).values())
            disks = _share(given.disks, len(writers), number)
            told = killed(stage, writer, chance, _share(given.kills, len(writers), number))
            for _ in range(disks):
                told += disk_full(stage, writer, Path(name) / "disk", chance.randrange(pages))
            told += many_at_once(stage, writer, given.at_once) if given.at_once else []
            print(f"{writer.option:<34}{'nothing wrong' if not told else f'{len(told)} wrong'}", flush=True)
            for text in sorted(set(told)):
                print(f"    {text}", flush=True)
            bad += len(told)
        left = os.listdir(stage.temporary)
        print(f"left in the folder of temporary files: {left or 'nothing'}")
    return 1 if bad or left else 0


def _share(total: int, parts: int, number: int) -> int:
    return total // parts + (number < total % parts)


if __name__ == "__main__":
    sys.exit(main())
