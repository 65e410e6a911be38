"""`neurontools hbm trace`: the placement rule as a truth table, bytes and times, files that are wrong."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from neurontools.hbm.chain import Chain, Step, read_chain
from neurontools.hbm.trace import trace
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


@pytest.mark.parametrize("places", list(itertools.product(("cpu", "device"), repeat=3)))
def test_all_or_nothing(places: tuple[str, ...]) -> None:
    names = ("a", "b", "c")
    chain = Chain({**dict.fromkeys(names, 100), "y": 7, "z": 9}, dict(zip(names, places, strict=True)),
                  (Step("m", names, ("y", "z")),))  # fmt: skip
    found = trace(chain, 1.0)
    here = all(place == "device" for place in places)
    assert (found.places["y"], found.places["z"]) == (("device", "device") if here else ("cpu", "cpu"))
    assert found.to_device == 100 * places.count("cpu") and found.to_host == (0 if here else 16)
    assert found.steps[0].because == (None if here else names[places.index("cpu")])
    assert not found.bounces and found.best_to_host == 0


def test_the_example(cli: Cli, root: Path) -> None:
    ended = cli("hbm", "trace", root / "examples" / "chain.toml", "--json")
    result = checked_json(ended, "hbm trace")
    mib = 1 << 20
    assert ended.status == 1 and result["first_break"] == "mask"
    assert result["bounces"] == [{"tensor": "hidden", "made_by": "encoder", "used_by": "decoder", "bytes": 16 * mib}]
    assert (result["to_device"], result["to_host"]) == (17 * mib, 20 * mib)
    assert result["microseconds"] == pytest.approx(37 * mib / 16e9 * 1e6)
    assert (result["best_to_device"], result["best_to_host"]) == (mib, 4 * mib)
    half = checked_json(
        cli("hbm", "trace", root / "examples" / "chain.toml", "--pcie-gbps", "8", "--json"), "hbm trace"
    )
    assert half["microseconds"] == pytest.approx(2 * result["microseconds"])


def test_what_the_host_reads_twice_crosses_once() -> None:
    chain = Chain(
        {"x": 5, "y": 8}, {"x": "device"}, (Step("m", ("x",), ("y",)), Step("", ("y",), ()), Step("", ("y",), ()))
    )
    found = trace(chain, 1.0)
    assert [one.to_host for one in found.steps] == [0, 8, 0] and not found.bounces


def test_sizes_of_a_file(cli: Cli, root: Path, tmp_path: Path) -> None:
    neff = root / "fixtures" / "neff" / "add_exp.neff"
    path = tmp_path / "chain.json"
    path.write_text(f'{{"tensor": [{{"name": "x", "size": 10, "place": "device"}}], "step": [{{"neff": "{neff}", '
                    '"inputs": ["x"], "outputs": ["y"]}]}')  # fmt: skip
    assert read_chain(path).sizes["y"] > 0
    assert cli("hbm", "trace", path).status == 0


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", 3), ("[[step]\n", 3), ("[[step]]\nmodel = 5\n", 3), ("[[step]]\nmodel = 'm'\ninputs = ['x']\n", 4),
        ("[[tensor]]\nname='x'\nsize='big'\n", 3), ("[[tensor]]\nname='x'\nsize=-1\n", 3),
        ("[[tensor]]\nname='x'\nsize=1\nplace='disk'\n", 3),
        ("[[tensor]]\nname='x'\nsize=1\n[[tensor]]\nname='x'\nsize=1\n", 3),
        ("[other]\nx=1\n", 3), ("[[step]]\nmodel='m'\noutputs=[{name='y'}]\n", 3), ("step = 5\n", 3),
        ("[[step]]\nneff='missing.neff'\noutputs=['y']\n", 4),
        ("[[step]]\nmodel='m'\nneff=5\n", 3), ("[[step]]\nmodel='m'\nneff=''\n", 3),
        ("[[tensor]]\nname='x'\nsize=1\n[[step]]\nmodel='m'\nhost=['x']\n", 3),
    ],
)  # fmt: skip
def test_bad_files(cli: Cli, tmp_path: Path, text: str, status: int) -> None:
    path = tmp_path / "chain.toml"
    path.write_text(text)
    ended = cli("hbm", "trace", path)
    assert ended.status == status, ended
    assert cli("hbm", "trace", tmp_path / "missing.toml").status == 4
