"""Commands that messages, help texts and pages recommend exist, take the options named there, and are quoted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from neurontools.cli import app
from neurontools.command.lazy import LazyGroup
from neurontools.program.configuration import RunConfiguration
from tests.cli.conftest import Cli

ROOT = Path(__file__).resolve().parents[2]
_QUOTED = re.compile(r"`(neurontools(?: [^`]*)?)`", re.DOTALL)
# Lines of pages that show a command, and of messages that spell one out.
_SHOWN = re.compile(r"^(?:    |\$ )(neurontools .*)$", re.MULTILINE)


def recommended() -> Iterator[tuple[str, str]]:
    """Yield every recommended command line of product code and pages, with its file."""
    sources = [path for part in ("neurontools", "formats", "emulator") for path in sorted((ROOT / part).rglob("*.py"))]
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found: set[str] = set()
    for path in (*sources, *pages):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            text = re.sub(r'"\s*\n\s*f?"', "", text)  # strings that go on in the next line
        lines = [*_QUOTED.findall(text), *(_SHOWN.findall(text) if path.suffix == ".md" else ())]
        for line in (" ".join(each.split()) for each in lines):
            if line not in found:
                found.add(line)
                yield str(path.relative_to(ROOT)), line


CASES = list(recommended())


def test_there_are_some() -> None:
    assert len(CASES) > 60 and any("core dump" not in line and place.startswith("formats/nrt") for place, line in CASES)


@pytest.mark.parametrize(("place", "line"), CASES, ids=[line for _, line in CASES])
def test_the_command_exists(place: str, line: str) -> None:
    for part in re.split(r" (?:&&|\|\||[|>]) ?", line):
        if part.startswith("neurontools"):
            parse(place, shlex.split(part, comments=True)[1:])


def parse(place: str, words: list[str]) -> None:
    """Check the words of a command line: names and options at least, and all of it where arguments are given."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("neurontools", [], resilient_parsing=True)
    while isinstance(command, LazyGroup) and words and not words[0].startswith("-"):
        if words[0] == "COMMAND":
            return  # stands for all of them
        default = [name for name, entry in command.rows.items() if entry.default]
        words = words if words[0] in command.rows else [*default, *words]
        assert words[0] in command.rows, f"{place}: no command {words[0]!r}"
        command = command.get_command(context, words[0])
        words = words[1:]
    known = {spelled for each in command.params for spelled in (*each.opts, *each.secondary_opts)} | {"--help"}
    options = [word for word in words[: words.index("--") if "--" in words else None] if re.match(r"--?[a-z]", word)]
    assert [word for word in options if word not in known] == [], f"{place}: {words}"
    if any(not word.startswith("-") for word in words) and not isinstance(command, LazyGroup):
        command.make_context(command.name, list(words), parent=context)


def test_commands_for_the_prompt_work(cli: Cli, root: Path) -> None:
    """What `debug --commands` is recommended with is understood by the debugger."""
    tried = 0
    for place, line in CASES:
        words = shlex.split(line.split(" | ")[0], comments=True)
        for option in ("--commands", "-c"):
            if place.startswith(("formats", "neurontools", "emulator")) and option in words:
                ended = cli("debug", root / "examples" / "race.s", "-c", words[words.index(option) + 1])
                assert ended.status == 0, (place, line, ended)
                tried += 1
    assert tried or not any("--commands" in line for place, line in CASES if place.startswith("formats"))


def test_lines_to_repeat_a_run_are_quoted_and_work(cli: Cli, root: Path, tmp_path: Path) -> None:
    odd = tmp_path / "it's a race;.s"
    odd.write_text((root / "examples" / "race.s").read_text())
    (finding,) = cli("check", odd, "--json", "--seed", "3", "--hang-timeout", "2ms").json["result"]["findings"]
    words = shlex.split(finding["reproduce"])
    assert str(odd) in words and words[:2] == ["neurontools", "check"]
    (again,) = cli(*words[1:], "--json").json["result"]["findings"]
    assert again["id"] == finding["id"] and again["reproduce"] == finding["reproduce"]


def test_a_configuration_comes_back_from_its_command_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every option of a configuration is in the line that repeats it, and is read from there again."""
    import neurontools.debugger.opening as opening
    from neurontools.debugger.errors import UsageError

    wanted = RunConfiguration(
        ("a b", "--c"), 2, "trn2", 2, "random:7", Path("d d"), 5, False, "table", 1_500_000, 7, 2_000_000, 3.0,
        nki="installed",
    )  # fmt: skip
    seen: list[RunConfiguration] = []

    def caught(file: Path, configuration: RunConfiguration, **options: Any) -> None:
        seen.append(configuration)
        raise UsageError("seen")

    monkeypatch.setattr(opening, "open_session", caught)
    cli(*shlex.split(wanted.command_line("debug", Path("k k.py"), "--cli"))[1:])
    assert seen == [wanted]
