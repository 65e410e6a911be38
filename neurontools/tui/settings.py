"""What is remembered, the layout, and what a person may set, keys in a file of their own."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from neurontools.text.terminal import kept_file

__all__ = [
    "Layout",
    "first_theme",
    "first_time",
    "keymap_file",
    "load_keymap",
    "load_layout",
    "other_theme",
    "save_layout",
]

_LAYOUT = "screen.json"
DARK, LIGHT, PLAIN = "textual-dark", "textual-light", "ansi-dark"


class Layout(NamedTuple):
    """The theme ("" for the default), the open tab, and the share of the left column in percent."""

    theme: str = ""
    tab: str = ""
    left: int = 60


def keymap_file() -> Path:
    """Return where a person's keys are: lines like `step = "f7"`, by the names in the help."""
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(folder) / "neurontools" / "keys.toml"


def load_keymap(names: Sequence[str]) -> dict[str, str]:
    """Return keys by action name; empty without a file. Raises FormatError for what does not belong in the file."""
    path = keymap_file()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FormatError(f"{path}: {error}") from None
    for name, keys in data.items():
        if name not in names:
            raise FormatError(f"{path}: {name!r} is no action; they are {', '.join(names)}")
        if not isinstance(keys, str) or not keys:
            raise FormatError(f'{path}: {name} needs keys in quotes, such as {name} = "f7"')
    return data


def first_time() -> bool:
    """Return whether the screen has never been left here: it then says how to begin."""
    return not kept_file(_LAYOUT).exists()


def load_layout() -> Layout:
    """Return the layout of the last time; the default where there is none that can be read."""
    try:
        data = json.loads(kept_file(_LAYOUT).read_text(encoding="utf-8"))
        return Layout(str(data["theme"]), str(data["tab"]), max(20, min(80, int(data["left"]))))
    except (OSError, ValueError, LookupError, ArithmeticError, TypeError, RecursionError):
        return Layout()


def save_layout(layout: Layout) -> None:
    """Remember a layout; where it cannot be written, it is forgotten."""
    path = kept_file(_LAYOUT)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(layout._asdict()) + "\n", encoding="utf-8")
    except OSError:
        return


def first_theme(wanted: str, colours: str | None, known: Iterable[str]) -> str:
    """Return the theme to begin with: the remembered one; on a terminal of 16 colours the terminal's own colours."""
    names = set(known)
    if colours == "standard" and PLAIN in names:
        return wanted if wanted.startswith("ansi") and wanted in names else PLAIN
    return wanted if wanted in names else DARK


def other_theme(theme: str) -> str:
    """Return the light theme for a dark one and the dark one for a light one."""
    pairs = {DARK: LIGHT, LIGHT: DARK, "ansi-dark": "ansi-light", "ansi-light": "ansi-dark"}
    return pairs.get(theme, DARK)
