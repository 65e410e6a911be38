"""Pictures and captures in the documentation are real runs, and a newcomer sees the cause in them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tools.pictures import SCENES, made

_NAMED = {scene.name: scene for scene in SCENES}


@pytest.mark.parametrize("name", _NAMED)
def test_pictures_are_those_of_todays_program(name: str, root: Path) -> None:
    text, picture = made(_NAMED[name])
    folder = root / "docs" / "pictures"
    assert text == (folder / f"{name}.txt").read_text(encoding="utf-8"), "python -m tools pictures"
    assert picture == (folder / f"{name}.svg").read_text(encoding="utf-8"), "python -m tools pictures"


@pytest.mark.parametrize("name", _NAMED)
def test_a_picture_shows_the_text_and_asks_for_nothing_from_elsewhere(name: str, root: Path) -> None:
    folder = root / "docs" / "pictures"
    svg = (folder / f"{name}.svg").read_text(encoding="utf-8")
    shown = "".join("".join(each.itertext()) for each in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"))
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\(|@import|<script|<image", svg)
    words = re.findall(r"[A-Za-z_]{4,}", (folder / f"{name}.txt").read_text(encoding="utf-8"))
    assert words and all(word in shown for word in words)


@pytest.mark.parametrize(("name", "cause"), [
    ("deadlock-80x24", ("✗ hang · ACT pc 1 · deadlock.s:27",
                        "cycle: nc0 Activation waits for nc0 DVE waits for nc0 Activation",
                        "hint: break the circle", "pc 1 waits S[6]>=1, is 0  ← DVE pc 2")),
    ("out-of-bounds-80x24", ("✗ core dump, fault · DVE pc 1 · oob.s:17", "SBUF bytes 0x37ff0 to 0x3800f out of bounds",
                             "source   fixtures/core/oob.s:17")),
    ("ranks-80x24", ("✗ hang · cycle · ranks 0 → 1 → 2 → 0", "RANKS 3 · 3 hang", "0 ✗ hang", "← rank 1",
                     "deadlock.py")),
    ("nan-80x24", ("✗ nancheck · ACT pc 3 · wrong.py:37", "makes infinite values of finite operands",
                   "8 elements of output out are NaN")),
])  # fmt: skip
def test_a_newcomer_finds_the_cause_on_the_first_screen(name: str, cause: tuple[str, ...], root: Path) -> None:
    text = (root / "docs" / "pictures" / f"{name}.txt").read_text(encoding="utf-8")
    lines = text.rstrip("\n").split("\n")
    assert len(lines) == 24 and max(map(len, lines)) <= 80 and "[1 Run]" in lines[1]
    joined = re.sub(r"\s+", " ", text)
    for words in cause:
        assert re.sub(r"\s+", " ", words) in joined
    keys = _NAMED[name].keys
    assert keys in ((), ("c",)), "without help"
    page = (root / "docs" / "tui.md").read_text(encoding="utf-8")
    assert f"pictures/{name}.svg" in page and f"<!-- capture: {name} -->\n```text\n{text}```" in page


def test_pages_show_every_picture_and_the_readme_opens_with_one(root: Path) -> None:
    page = (root / "docs" / "tui.md").read_text(encoding="utf-8")
    assert {scene.size for scene in SCENES} == {(80, 24), (120, 40), (200, 50)}
    for scene in SCENES:
        assert f"![{scene.about}](pictures/{scene.name}.svg)" in page
    readme = (root / "README.md").read_text(encoding="utf-8")
    first = readme.index("](docs/pictures/attention-200x50.svg)")
    assert "\n## " not in readme[:first] and "```" not in readme[:first]


@pytest.mark.parametrize("sign", ["▀", "▄", "█", "▁", "▌", "─", "│", "░", "┄", "▊"])
def test_blocks_and_lines_are_drawn(sign: str) -> None:
    from rich.segment import Segment
    from rich.style import Style

    from neurontools.tui.picture import _svg

    plain = Style.parse("#ffffff on #000000")
    svg = _svg([[Segment(f"a{sign}b", Style(color="#123456"))]], 3, plain, "title")
    ET.fromstring(svg)
    assert sign not in svg and ">a<" in svg and ">b<" in svg and 'fill="#123456"' in svg
