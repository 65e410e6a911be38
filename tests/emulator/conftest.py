"""What tests of programs that run again share: workspaces that no other test has left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator import workspace
from neurontools import nki


@pytest.fixture
def fresh_workspaces() -> Iterator[None]:
    """Begin without workspaces of other tests, with the names of `nki` in place."""
    nki.install()
    workspace._waiting.clear()
    yield
    workspace._waiting.clear()
    nki.uninstall()
