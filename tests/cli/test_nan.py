"""NaN where an option takes a number: it is within every range, and no difference is beyond it as a tolerance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Cli

_KERNEL = """\
import numpy as np
import nki
import nki.language as nl


@nki.jit
def double(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(a) * 2)
    return out


double(np.arange(8, dtype=np.float32).reshape(2, 4))
"""


@pytest.mark.parametrize("option", ["--rtol", "--atol"])
def test_a_tolerance_of_nan_is_refused(cli: Cli, tmp_path: Path, option: str) -> None:
    """Whatever differed was said to be as it should be."""
    script, golden = tmp_path / "double.py", tmp_path / "golden.npz"
    script.write_text(_KERNEL)
    np.savez(golden, out=np.arange(8, dtype=np.float32).reshape(2, 4) * 2 + 100)
    ended = cli("run", script, "--against", golden)
    assert ended.status == 1
    ended = cli("run", script, "--against", golden, option, "nan")
    assert ended.status == 2 and option in ended.err and "nan is no number" in ended.err


def test_a_number_of_nan_is_refused_everywhere(cli: Cli) -> None:
    ended = cli("doctor", "pipeline", "--before-us", "nan", "--device-us", "1")
    assert ended.status == 2 and "nan is no number" in ended.err
