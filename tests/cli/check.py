"""What every test of a command asks: the JSON fits its schema, and damage is one line with status 3."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from neurontools.command.catalog import result_type
from neurontools.command.results import document_schema
from tests.cli.conftest import Cli, Ended
from tests.cli.schema import problems

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schemas"


@cache
def schema_of_command(command: str) -> Any:
    """Return the schema of a command's documents, derived from the type of its result."""
    by_hand = SCHEMAS / f"{command.replace(' ', '.')}.json"  # of commands whose results have no type yet
    return json.loads(by_hand.read_text()) if by_hand.exists() else document_schema(command, result_type(command))


def checked_json(ended: Ended, command: str) -> Any:
    """Return the result of a command run with --json, its document checked against the schema."""
    document = ended.json
    schema = schema_of_command(command)
    assert problems(document, schema) == []
    assert document["exit"] == ended.status
    return document.get("result")


def refuses_bad_files(cli: Cli, command: str, folder: Path, *more: object) -> None:
    """Check a reading command against files that are missing, folders, empty, or no NEFF."""
    words = command.split()
    missing = cli(*words, folder / "missing.neff", *more)
    assert missing.status == 4 and "missing.neff: no such file" in missing.error_line
    assert cli(*words, folder, *more).status == 3
    for name, content in (("empty", b""), ("noise", b"\x5a" * 5000), ("cut", bytes(1024))):
        path = folder / f"{name}.neff"
        path.write_bytes(content)
        ended = cli(*words, path, *more)
        assert ended.status == 3, ended
        assert f"{name}.neff" in ended.error_line and ended.out == ""
        failed = cli(*words, path, *more, "--json")
        assert failed.status == 3 and failed.err == ""
        assert failed.json["error"]["kind"] == "format"
        checked_json(failed, command)


def refuses_bad_caches(cli: Cli, command: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Check a command on compile caches against folders that are missing, files, empty, or in S3."""
    words = ("compile", "cache", command)
    missing = cli(*words, "--cache_dir", folder / "missing")
    assert missing.status == 4 and "no such cache" in missing.error_line
    (folder / "file").touch()
    assert cli(*words, "--cache_dir", folder / "file").status == 3
    assert cli(*words, "--cache_dir", folder).status == 0
    patch.setenv("NEURON_COMPILE_CACHE_URL", "s3://bucket/cache")
    assert cli(*words).status == 6
