"""runtime.run: what goes in is checked, what comes out is named, faults and hangs are values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from emulator.errors import InputError
from emulator.runtime import run
from formats import isa
from formats.errors import FormatError
from formats.nrt.status import NrtStatus
from tests.emulator.dma_programs import PARTITION, direct, gen3, load_and_store, wait

X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)


def test_file_path_and_bytes(tmp_path) -> None:
    neff = load_and_store()
    path = tmp_path / "copy.neff"
    neff.save(path)
    for source in (neff, path, str(path), neff.to_bytes()):
        result = run(source, {"x": X})
        assert result.ok and result.status is NrtStatus.NRT_SUCCESS
        assert (result.outputs["y"] == X).all()
        assert (result.outputs_by_core[0]["y"] == X).all()


def test_statistics_and_time() -> None:
    result = run(load_and_store(), {"x": X})
    assert result.stats.words[0, "SP"] == 4 and result.stats.instructions == 8
    assert (result.stats.transfers, result.stats.dma_bytes) == (2, 2 * X.nbytes)
    assert result.time_ps > 2_000_000
    assert run(load_and_store(), {"x": X}, timing=False).time_ps < 100


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, r"input 'x' is not given; the file takes x float32\[128, 64\]"),
        ({"x": X, "z": X}, r"no input 'z'; the file takes x float32\[128, 64\]"),
        ({"x": X.astype(np.float64)}, "input 'x' has element type float64, expected float32"),
        ({"x": X[:64]}, r"input 'x' has shape \[64, 64\], expected \[128, 64\]"),
        ({"x": X.astype(ml_dtypes.bfloat16)}, "element type bfloat16, expected float32"),
    ],
)
def test_wrong_inputs_are_refused(inputs: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(load_and_store(), inputs)


def test_lnc_is_asserted_and_unknown_checks_are_refused() -> None:
    with pytest.raises(InputError, match=r"file is for 1 core\(s\), not for 2"):
        run(load_and_store(), {"x": X}, lnc=2)
    with pytest.raises(InputError, match="no check 'nonsense'"):
        run(load_and_store(), {"x": X}, checks=["nonsense"])
    with pytest.raises(FormatError):
        run(b"not a NEFF" * 200, {})


def test_fault_and_hang_are_values() -> None:
    fault = run(
        gen3(
            {"SP": [direct(("table", 0, 4), ("variable", 0, 0x4000), 256, 128, 256, PARTITION)]},
            inputs={"x": ("float32", (128, 64))},
        ),
        {"x": X},
    )
    assert fault.fault is not None and fault.status is NrtStatus.NRT_EXEC_OOB and not fault.ok
    hang = run(gen3({"SP": [isa.Nop(**wait(8))]}), {})
    assert hang.hang is not None and hang.status is NrtStatus.NRT_TIMEOUT
    assert "S[8]>=16" in hang.hang.text()


def test_progress_and_observers() -> None:
    class Counter:
        def __init__(self) -> None:
            self.events = 0
            self.findings = ["seen"]

        def on_event(self, event: object) -> None:
            self.events += 1

    calls = []
    counter = Counter()
    result = run(load_and_store(), {"x": X}, progress=lambda device: calls.append(device.now_ps), observers=[counter])
    assert calls[-1] == result.time_ps
    assert counter.events == 10 and result.findings == ("seen",)
    assert (result.outputs["y"] == X).all()


def test_two_cores_share_one_output() -> None:
    half = {"x": ("float32", (128, 64))}

    def part(core: int) -> list[isa.Instruction]:
        offset = core * 64 * 256
        return [
            direct(("table", 0, offset), ("variable", 0, 0x4000), 256, 64, 256, PARTITION),
            direct(("variable", 0, 0x4000), ("table", 1, offset), 256, 64, PARTITION, 256, semaphore=9, **wait(8)),
            isa.Nop(**wait(9)),
        ]

    neff = gen3({"SP": part(0)}, more=[{"SP": part(1)}], lnc=2, inputs=half, outputs={"y": ("float32", (128, 64))})
    for seed in (None, 1, 2):
        result = run(neff, {"x": X}, seed=seed, lnc=2)
        assert result.ok and (result.outputs["y"] == X).all()
        assert len(result.outputs_by_core) == 2


def test_outputs_that_nothing_wrote_are_nan() -> None:
    result = run(gen3({}, outputs={"y": ("float32", (4, 4))}), {})
    assert result.ok and np.isnan(result.outputs["y"]).all()
