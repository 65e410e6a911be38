"""NKI_ARTIFACTS_DIR keeps the file of each launch, also of one that fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.language as nl
from emulator.runtime import run
from formats.errors import FormatError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@nki.jit
def copying(x: Any) -> Any:
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


def test_the_file_is_kept_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKI_ARTIFACTS_DIR", str(tmp_path / "new" / "folder"))
    for _ in range(2):  # the second launch builds nothing
        assert (copying(X) == X).all()
        kept = tmp_path / "new" / "folder" / "kernel.neff"
        (output,) = run(kept, {"x": X}).outputs.values()
        assert (output == X).all()
        kept.unlink()


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NKI_ARTIFACTS_DIR", str(tmp_path / "file" / "below"))
    with pytest.raises(FormatError, match="NKI_ARTIFACTS_DIR"):
        copying(X)
