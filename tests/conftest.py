"""Settings for every test: one BLAS thread, repeatable hypothesis runs, where fetched and shared files are."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported: spinning threads cost 100 times as much

import pytest
from hypothesis import HealthCheck, settings

from tests.racefree import pytest_terminal_summary, race_free  # noqa: F401 (a hook and a fixture)

ROOT = Path(__file__).resolve().parents[1]

settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the top of the source tree."""
    return ROOT


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the folder of fetched checkouts; skip where there is none."""
    folder = os.environ.get("NEURONTOOLS_CORPUS")
    if not folder:
        pytest.skip("NEURONTOOLS_CORPUS names no folder of fetched checkouts")
    return Path(folder)


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """Return the project's shared reference data; skip outside the project's own machines."""
    folder = ROOT.parent / "shared" / "reference" / "data"
    if not folder.is_dir():
        pytest.skip("no ../shared/reference/data beside this checkout")
    return folder


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the caller's settings of the tools away from the tests."""
    for name in (
        "NEURON_PLATFORM_TARGET_OVERRIDE",
        "NKI_PRECISE_FP",
        "NKI_SIMULATOR",
        "NKI_NC_VERSION",
        "NEURONTOOLS_DEBUG",
        "CI",  # which gives every run a budget: tests of that set it themselves
        "NEURONTOOLS_SAFE_PATH",
    ):
        monkeypatch.delenv(name, raising=False)


PROGRAM = """
.target trn2
.name double
.input  x float32 [128, 64]
.output y float32 [128, 64]
.constant two float32 [128] 2.0
.queue qIn sp 8
.queue qOut act 24
.dma qIn 0 8 x+0[1,256][256,128] -> SB+0x4000[1,262144][256,128]
.dma qOut 0 24 SB+0x5000[1,262144][256,128] -> y+0[1,256][256,128]
.engine sp
    SET_ORDERING_MODE ordering_mode=relaxed
    PSEUDO_DMA_TRIGGER qIn block_id=0
.engine dve
    SET_ORDERING_MODE ordering_mode=relaxed
    EVENT_SEMAPHORE S[8]>=16 setter=0
    TENSOR_TENSOR S[6]++@complete op=ADD src0=fp32@0x4000[1,1,1][64,1,1] src1=fp32@0x4000[1,1,1][64,1,1] \
dst=fp32@0x5000[1,1,1][64,1,1] channels=128
.engine act
    SET_ORDERING_MODE ordering_mode=relaxed
    PSEUDO_DMA_TRIGGER S[6]>=1 qOut block_id=0
    NOP S[24]>=16 cycle=0
"""


@pytest.fixture(scope="session")
def program_text() -> str:
    """Return a small program that doubles its input."""
    return PROGRAM


@pytest.fixture(scope="session")
def program_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the NEFF of that program, written by this toolkit; tests must not change it."""
    from neurontools.assembly.assemble_neff import to_neff
    from neurontools.assembly.assembler import parse_program

    path = tmp_path_factory.mktemp("program") / "double.neff"
    path.write_bytes(to_neff(parse_program(PROGRAM, "double.s")))
    return path
