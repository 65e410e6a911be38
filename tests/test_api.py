"""The Python interface: every name is there, is lazy, and does what docs/api.md says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import neurontools
from formats.errors import FormatError, NeuronError
from formats.targets import resolve_target


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        neurontools.nothing  # noqa: B018
    assert set(neurontools.__all__) <= set(dir(neurontools))


def test_decode_and_assemble_are_inverse() -> None:
    raw = neurontools.assemble("NOP S[3]>=2 cycle=7\nDRAIN\n")
    word = neurontools.decode(raw[:64])
    assert isinstance(word, neurontools.Instruction)
    assert (word.text, word.encode(), word.wait.value) == ("NOP S[3]>=2 cycle=7", raw[:64], 2)
    assert neurontools.decode(b"\x7f" + bytes(63), target="trn1").encode()[0] == 0x7F
    with pytest.raises(FormatError):
        neurontools.decode(raw)
    with pytest.raises(FormatError, match="FLY"):
        neurontools.assemble("FLY")


def test_files_open_lazily_and_run(program_file: Path) -> None:
    neff = neurontools.open_neff(program_file)
    assert isinstance(neff, neurontools.Neff)
    x = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
    by_object, by_path = neurontools.run(neff, {"x": x}), neurontools.run(program_file, {"x": x}, seed=3)
    assert isinstance(by_object, neurontools.Result)
    assert (by_object.outputs["y"] == 2 * x).all() and (by_path.outputs["y"] == 2 * x).all()
    assert by_object.ok and by_object.time_ps > 0 and by_object.stats.transfers == 2


def test_a_single_check_is_a_name(root: Path) -> None:
    from neurontools.program.configuration import RunConfiguration
    from neurontools.program.opening import open_program

    race = open_program(root / "examples" / "race.s", RunConfiguration()).neff
    for checks in ("all", "racecheck", ["race"], ("memcheck", "racecheck")):
        assert [finding.tool for finding in neurontools.run(race, checks=checks).findings] == ["racecheck"]
    assert neurontools.run(race, checks="memcheck").findings == neurontools.run(race).findings == ()
    with pytest.raises(NeuronError, match="no check 'a'"):
        neurontools.run(race, checks=["a"])


def test_bad_inputs_of_a_run(program_file: Path) -> None:
    with pytest.raises(NeuronError, match="x"):
        neurontools.run(program_file, {"z": np.ones(3)})
    with pytest.raises(NeuronError, match="x"):
        neurontools.run(program_file)


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_kernels_are_built_for_their_target(target: str, tmp_path: Path) -> None:
    nl, nisa = neurontools.nki.language, neurontools.nki.isa

    def negate(x):  # type: ignore[no-untyped-def]
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=-1.0)
        nisa.dma_copy(dst=out, src=tile)
        return out

    x = np.arange(64 * 8, dtype=np.float32).reshape(64, 8)
    neff = neurontools.build(negate, x, target=target)
    assert neff.target.generation == resolve_target(target).generation and neff.verify() == []
    neff.save(tmp_path / "negate.neff")
    result = neurontools.run(tmp_path / "negate.neff", {neff.inputs[0].name: x})
    assert (next(iter(result.outputs.values())) == -x).all()


def test_build_takes_the_keywords_of_the_kernel() -> None:
    import neurontools.nki.isa as nisa
    import neurontools.nki.language as nl

    def scaled(x: nl.NkiTensor, *, factor: float, times: int = 1) -> nl.NkiTensor:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        tile = nl.ndarray(x.shape, x.dtype, nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        for _ in range(times):
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
        nisa.dma_copy(dst=out, src=tile)
        return out

    x = np.ones((128, 8), np.float32)
    neff = neurontools.build(scaled, x, factor=3.0, times=2, target="trn2")
    assert (neurontools.run(neff, {"x": x}).outputs["out"] == 9).all() and neff.target.name == "trn2"
    with pytest.raises(TypeError, match="targt"):
        neurontools.build(scaled, x, factor=3.0, targt="trn2")
