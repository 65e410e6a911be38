"""The screen as text and as SVG."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from formats.whole_files import write_whole
from neurontools.tui.picture import picture_of

if TYPE_CHECKING:
    from textual.app import App

__all__ = ["save_screen", "screen_text"]


def screen_text(app: App[Any]) -> str:
    """Return what is on the screen, without colours, a line each, without blanks at the ends of lines."""
    width, height = app.size
    console = Console(width=width, height=height, file=StringIO(), force_terminal=True, record=True,
                      legacy_windows=False)  # fmt: skip
    # The one private name of Textual: `App.export_screenshot` makes its SVG by the same call.
    console.print(app.screen._compositor.render_update(full=True))
    lines = console.export_text(styles=False).split("\n")
    return "\n".join(line.rstrip() for line in lines[:height]) + "\n"


def save_screen(app: App[Any], folder: Path) -> tuple[Path, Path]:
    """Save the screen under names that are free; return the text's and the SVG's. Raises OSError."""
    number = 1
    while any((folder / f"neurontools-{number}{end}").exists() for end in (".txt", ".svg")):
        number += 1
    text, picture = folder / f"neurontools-{number}.txt", folder / f"neurontools-{number}.svg"
    contents = ((text, screen_text(app)), (picture, picture_of(app, "neurontools debug")))
    for place, content in contents:
        with write_whole(place) as beside:
            beside.write_text(content, encoding="utf-8")
    return text, picture
