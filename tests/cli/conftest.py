"""A command line inside the test process: arguments in; status, output and notes out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from neurontools.cli import main


class Ended(NamedTuple):
    """How a command line ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return the one JSON document on standard output."""
        return json.loads(self.out)

    @property
    def error_line(self) -> str:
        """Return the one line a failed command says."""
        lines = [line for line in self.err.splitlines() if not line.startswith("Try '")]
        assert len(lines) == 1, f"one line expected, got: {self.err!r}"
        assert lines[0].startswith("neurontools: ")
        return lines[0].removeprefix("neurontools: ")


Cli = Callable[..., Ended]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Return a function that runs one command line."""

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Ended(int(status), out, err)

    return run


@pytest.fixture(scope="session")
def hang_core(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """Return a light dump of two engines that wait for each other."""
    from tests.cli.dumps import dump

    return dump(root, "deadlock", tmp_path_factory.mktemp("dumps") / "deadlock.core", "light")


@pytest.fixture(scope="session")
def fault_core(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """Return a full dump of a read past the end of a partition."""
    from tests.cli.dumps import dump

    return dump(root, "out_of_bounds", tmp_path_factory.mktemp("dumps") / "out_of_bounds.core")


@pytest.fixture
def kept(cli: Cli, tmp_path: Path) -> Path:
    """Return the only entry of a new compile cache."""
    from formats.hlo import save_hlo
    from tests.compiler.support import adder

    save_hlo(tmp_path / "adder.hlo.pb", adder())
    ended = cli("compile", tmp_path / "adder.hlo.pb", "-o", tmp_path / "a.neff", "--logfile", tmp_path / "log",
                "--cache_dir", tmp_path / "cache")  # fmt: skip
    assert ended.status == 0
    (entry,) = (tmp_path / "cache").glob("*/MODULE_*")
    return entry
