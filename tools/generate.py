"""Bring generated files up to date, or say which are stale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["GENERATORS", "ROOT", "Change", "Generator", "apply", "changes"]

ROOT = Path(__file__).resolve().parents[1]


class Generator(NamedTuple):
    """A generator by its module; `usual` ones run when none is named."""

    module: str
    makes: str
    usual: bool = True


GENERATORS: Mapping[str, Generator] = {
    "commands": Generator("tools.command_table", "neurontools/command/table.py"),
    "manual": Generator("tools.manual_pages", "man/man1/neurontools*.1"),
    "dump-manual": Generator("tools.dump_manual", "man/man1/neuron-dump.1"),
    "core-manual": Generator("tools.core_manual", "man/man5/neuron-core.5"),
    "isa-manual": Generator("tools.isa_manual", "man/man7/neuron-isa.7"),
    "isa-provenance": Generator("tools.isa_provenance", "docs/isa-provenance.md"),
    "libnrt": Generator("tools.libnrt_page", "docs/libnrt.md"),
    "nki-support": Generator("tests.api_names.support", "docs/nki-support.md"),
    # Device times in them are those of the emulator that wrote, which may change without making them wrong.
    "neff-fixtures": Generator("tools.neff_fixtures", "fixtures/neff", usual=False),
    "ntff-fixtures": Generator("tools.ntff_fixtures", "fixtures/ntff", usual=False),
    "core-fixtures": Generator("tools.core_fixtures", "fixtures/core", usual=False),
    "fixture-list": Generator("tools.fixture_list", "checksums in fixtures/README.md", usual=False),
    "pictures": Generator("tools.pictures", "docs/pictures", usual=False),  # a test compares them
    "screens": Generator("tools.screens", "screens of README.md and docs"),  # they show the fixtures
}


class Change(NamedTuple):
    """A file that is not as its generator makes it; `data` is None for one that should not be there."""

    path: str
    data: bytes | None


def changes(names: Iterable[str], root: Path = ROOT) -> Iterator[Change]:
    """Yield what some generators would change below `root`, generator by generator, so that later ones see it."""
    for name in names:
        yield from _changes(import_module(GENERATORS[name].module), root)


def _changes(module: Any, root: Path) -> Iterator[Change]:
    made = {path: text if isinstance(text, bytes) else text.encode() for path, text in module.files().items()}
    owned = root.glob(module.OWNS) if hasattr(module, "OWNS") else ()
    for path in sorted(str(each.relative_to(root)) for each in owned):
        if path not in made:
            yield Change(path, None)
    same = getattr(module, "same", bytes.__eq__)
    for path, data in made.items():
        if not (root / path).is_file() or not same((root / path).read_bytes(), data):
            yield Change(path, data)


def apply(change: Change, root: Path = ROOT) -> None:
    """Write a file, or take it away."""
    path = root / change.path
    if change.data is None:
        path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(change.data)
