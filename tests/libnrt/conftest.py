"""The library, built once where cffi, a compiler and Python's headers are there."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.libnrt.client import Client


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("cffi", reason="libnrt.so.1 is made with cffi")
    from formats.errors import UnsupportedError
    from neurontools.libnrt.build import build, need_compiler, need_headers

    try:
        need_compiler()
        need_headers()
    except UnsupportedError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("libnrt")
    build(folder)
    return folder / "libnrt.so.1"


@pytest.fixture
def client(library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client in this process, before nrt_init."""
    for name in [name for name in os.environ if name.startswith(("NEURON_", "NEURONTOOLS_I"))]:
        monkeypatch.delenv(name)
    client = Client(ctypes.CDLL(str(library)))
    yield client
    client.end()
