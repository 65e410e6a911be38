"""What is installed, and how: the locked versions, their hashes, and the commands that messages recommend."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import neurontools.version as version

LOCKED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^ ;]+)(?: ; [^\\]+)? \\$")


def locked(root: Path) -> dict[str, tuple[str, int]]:
    """Return the version of each package in the lock file, and how many hashes it has."""
    found: dict[str, tuple[str, int]] = {}
    name = ""
    for line in (root / "requirements-dev.txt").read_text(encoding="utf-8").splitlines():
        if match := LOCKED.match(line):
            name = canonicalize_name(match[1])
            found[name] = match[2], 0
        elif re.match(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$", line):
            found[name] = found[name][0], found[name][1] + 1
        else:
            assert not line or line.startswith("#"), line
    return found


def declared(root: Path, *extras: str) -> dict[str, Requirement]:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    found: dict[str, Requirement] = {}
    for one in map(Requirement, wanted):
        if canonicalize_name(one.name) == version.DISTRIBUTION:
            found |= declared(root, *one.extras)
        else:
            found[canonicalize_name(one.name)] = one
    return found


def test_every_locked_package_has_hashes_and_what_is_declared_is_locked(root: Path) -> None:
    lock = locked(root)
    assert all(hashes for _, hashes in lock.values())
    for name, wanted in declared(root, "test", "fleet").items():
        assert name in lock and wanted.specifier.contains(lock[name][0]), f"{wanted}: make requirements-dev.txt anew"
    assert version.DISTRIBUTION not in lock


def test_dependencies_have_both_bounds(root: Path) -> None:
    for name, wanted in declared(root, "test", "fleet").items():
        signs = {each.operator for each in wanted.specifier}
        # fsspec and distributed are numbered by the year: there is no version to stop at.
        assert ">=" in signs and ("<" in signs or name in ("fsspec", "distributed")), wanted


def test_only_one_place_says_how_to_install(root: Path) -> None:
    for package in ("neurontools", "emulator", "formats"):
        for path in (root / package).rglob("*.py"):
            if path.name != "version.py":
                assert "pip install" not in path.read_text(encoding="utf-8"), path


def test_a_checkout_recommends_itself(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert version.install_with("web") == f"pip install '{root}[web]'"
    monkeypatch.setattr(version, "__file__", str(tmp_path / "site-packages" / "neurontools" / "version.py"))
    assert version.install_with("web") == f"pip install '{version.DISTRIBUTION}[web]'"


def test_the_release_publishes_what_was_checked(root: Path) -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((root / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))["jobs"]
    steps = [str(step.get("run", "")) for step in jobs["build"]["steps"]]
    assert ".ci/run" in steps and any("--require-hashes" in step for step in steps)
    assert steps.index(".ci/run") < next(at for at, step in enumerate(steps) if "python -m build" in step)
    assert any("cyclonedx" in step for step in steps)
    assert jobs["publish"]["permissions"] == {"id-token": "write"} and jobs["publish"]["needs"] == "build"
