"""Every page of the documentation: links, commands, paths and modules that it names are there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tools.generate import GENERATORS, ROOT
from tools.manual_pages import commands

PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "fixtures/*.md", "examples/*.md")
    for path in ROOT.glob(pattern)
)
FOLDERS = ("formats", "emulator", "neurontools", "tests", "tools", "docs", "man", "fixtures", "examples", "benchmarks")
DEFAULTS = {"profile": "run"}  # what a group does with a file
# Paths of other repositories, which reference pages and tables of facts name.
OTHERS = re.compile(r"^docs/reference/|^CHANGELOG.md$")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_MANUAL = re.compile(r"\b(neuron(?:tools)?(?:-[a-z]+)*)\((\d)\)")


def _text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@cache
def _anchors(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for link in _LINK.findall(_CODE.sub("", _text(page))):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        assert target.exists(), f"{page}: {link}"
        assert not anchor or anchor in _anchors(target), f"{page}: no heading {link}"


@cache
def _tree() -> dict[str, Any]:
    return dict(commands())


def _lines(page: str) -> Iterator[str]:
    """Yield what a page shows as command lines of neurontools, without the program's name."""
    text = _text(page)
    for line in re.findall(r"^(?:    |\$ )neurontools (.*)$", text, re.MULTILINE):
        yield line.split("  #")[0]
    for code in _CODE.findall(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)):
        if code.startswith("neurontools ") and "<" not in code:
            yield code.removeprefix("neurontools ")


def _spelled_out(words: list[str]) -> Iterator[list[str]]:
    """Yield a command line once for each of `info|ls|vars`."""
    for place, word in enumerate(words[:2]):
        if "|" in word:
            for one in word.split("|"):
                yield from _spelled_out([*words[:place], one, *words[place + 1 :]])
            return
    yield words


def _wrong(words: list[str]) -> str | None:
    """Return what of a command line does not exist."""
    name = ""
    while words and hasattr(_tree()[name], "list_commands"):
        if words[0].startswith("-") or words[0] in ("…", "..."):
            break
        nearer = f"{name} {words[0]}".strip()
        if nearer not in _tree() and f"{name} {DEFAULTS.get(name)}" in _tree():
            nearer, words = f"{name} {DEFAULTS[name]}", ["", *words]
        if nearer not in _tree():
            return f"no command {nearer!r}"
        name, words = nearer, words[1:]
    known = {flag for each in _tree()[name].params for flag in [*each.opts, *each.secondary_opts]} | {"--help"}
    for word in words[: words.index("--") if "--" in words else None]:
        flag = word.split("=")[0]
        if re.fullmatch(r"--[a-z][a-z-]*", flag) and flag not in known:
            return f"{name!r} has no {flag}"
    return None


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_shown_exist(page: str) -> None:
    for line in _lines(page):
        for words in _spelled_out(shlex.split(line.rstrip("\\")) if line.count("'") % 2 == 0 else line.split()):
            assert not (wrong := _wrong(words)), f"{page}: `neurontools {line}`: {wrong}"


@pytest.mark.parametrize("page", [page for page in PAGES if not OTHERS.match(page)])
def test_paths_and_modules_that_are_named_exist(page: str) -> None:
    for code in _CODE.findall(_text(page)):
        for word in code.replace(",", " ").split():
            path = word.rstrip(".:/").split(":")[0]
            if path.split("/")[0] in FOLDERS and "/" in path and not re.search(r"[A-Z]{3,}|[<>…]|\.\.\.", path):
                options = [re.sub(r"\{[^}]*\}", "*", path)]
                assert any(list(ROOT.glob(each)) for each in options), f"{page}: {path}"
        if module := re.match(r"(?:python|\.venv/bin/python) -m (tools|tests)(?:\.(\w+))?((?: [\w-]+)*)", code):
            folder = ROOT / module[1]
            assert (folder / f"{module[2] or '__main__'}.py").exists(), f"{page}: {code}"
            if not module[2]:
                assert {*module[3].split()} <= {*GENERATORS, "all", "--check"}, f"{page}: {code}"
        if re.fullmatch(r"(formats|emulator|neurontools|tools)(\.[a-z_]+)+", code):
            path = code.replace(".", "/")
            near = [f"{each}{end}" for each in (path, path.rpartition("/")[0]) for end in ("", ".py")]
            assert any((ROOT / each).exists() for each in near), f"{page}: {code}"


@pytest.mark.parametrize("page", PAGES)
def test_manual_pages_that_are_named_exist(page: str) -> None:
    for name, section in _MANUAL.findall(_text(page)):
        assert (ROOT / "man" / f"man{section}" / f"{name}.{section}").exists(), f"{page}: {name}({section})"


def test_the_map_for_newcomers_is_short_and_whole() -> None:
    """CONTRIBUTING: to change X, open Y, which is one file or two."""
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", _text("CONTRIBUTING.md").split("## Layers")[0], re.MULTILINE)[1:]
    assert len(rows) >= 26  # the line below the heading is one
    for change, places in rows[1:]:
        assert 1 <= len(_CODE.findall(places)) <= 2, change
