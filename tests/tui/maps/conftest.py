"""Sessions for panes of memory and time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neurontools.debugger.opening import open_session
from neurontools.program.configuration import RunConfiguration


@pytest.fixture
def attention(root: Path) -> Any:
    """Return a session in the middle of the attention example; its order depends on no cost of the model."""
    session = open_session(root / "examples" / "attention.py", RunConfiguration(timing=False))
    session.goto("#40")
    return session
