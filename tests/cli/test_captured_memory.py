"""What a capture says of the runtime that wrote it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from neurontools.neff.captured_memory import runtime_version


@pytest.mark.parametrize(
    ("text", "version"),
    [("2.31.24.0 (abc)", (2, 31, 24, 0)), ("", None), ("2.x", None), ("2." + "9" * 5000, None)],
)
def test_the_version_of_the_runtime(text: str, version: tuple[int, ...] | None) -> None:
    capture: Any = SimpleNamespace(metadata=SimpleNamespace(runtime=text))
    assert runtime_version(capture) == version
