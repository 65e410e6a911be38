"""`neurontools schema`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neurontools.command.catalog import leaf_summaries
from tests.cli.check import checked_json, schema_of_command
from tests.cli.conftest import Cli
from tests.cli.schema import problems


def result_of(schema: Any) -> Any:
    return schema["properties"]["result"]


def test_the_printed_schema_fits_what_the_command_prints(cli: Cli, program_file: Path) -> None:
    printed = cli("schema", "neff", "queues")
    assert printed.status == 0 and printed.json == schema_of_command("neff queues")
    document = cli("neff", "queues", program_file, "--json").json
    assert problems(document, printed.json) == []
    document["result"]["queues"][0].pop("name")
    assert problems(document, printed.json) == ["$.result.queues[0]: 'name' is missing"]
    assert problems(cli("neff", "queues", "missing.neff", "--json").json, printed.json) == []


def test_json_has_the_same_in_the_envelope(cli: Cli) -> None:
    result = checked_json(cli("schema", "asm", "--json"), "schema")
    assert result == {"command": "asm", "schema": cli("schema", "asm").json}
    own = cli("schema", "schema").json
    assert [set(kind["properties"]) for kind in result_of(own)["anyOf"]] == [{"commands"}, {"command", "schema"}]


def test_keys_that_may_be_absent_are_not_null(cli: Cli) -> None:
    word = result_of(cli("schema", "disasm").json)["properties"]["engines"]["additionalProperties"]["items"]
    assert set(word["properties"]) - set(word["required"]) == {"raw", "source", "chain"}
    assert word["properties"]["raw"] == {"type": "string", "description": "hexadecimal, with --raw"}
    assert word["properties"]["chain"]["type"] == "array" and word["properties"]["source"]["type"] == "object"


def test_every_command_is_listed(cli: Cli) -> None:
    rows = checked_json(cli("schema", "--json"), "schema")["commands"]
    assert {row["name"]: row["summary"] for row in rows} == leaf_summaries()
    lines = cli("schema").out.splitlines()
    assert lines[0].split() == ["command", "summary"] and len(lines) == 1 + len(rows)


def test_unknown_names(cli: Cli) -> None:
    ended = cli("schema", "neff", "inof")
    assert (ended.status, ended.out) == (4, "") and "did you mean neff info" in ended.error_line
    assert cli("schema", "neff", "inof", "--json").json["error"]["kind"] == "not-found"
    group = cli("schema", "ntff")
    names = "info, disasm, timeline, compare, export"
    assert group.status == 4 and group.error_line == f"'ntff' is a group of commands: {names}"
    assert cli("schema", "frobnicate").status == 4
