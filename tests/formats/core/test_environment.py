"""The environment of a dump: what helps, never a secret."""

from __future__ import annotations

import sys
from pathlib import Path

from formats.core import environment


def test_secrets_stay_out() -> None:
    found = environment.public_variables(
        {
            "NEURON_RT_NUM_CORES": "2",
            "NEURON_RT_AUTH_TOKEN": "t0ps3cret",
            "NEURON_API_KEY": "k",
            "AWS_SECRET_ACCESS_KEY": "w",
            "HOME": "/home/x",
            "NCCL_DEBUG": "INFO",
            "NEURON_RT_S3_CORE_DUMP_PREFIX": "https://user:pass@bucket/AKIAABCDEFGHIJKLMNOP/x",
        }
    )
    assert found == {
        "NCCL_DEBUG": "INFO",
        "NEURON_RT_NUM_CORES": "2",
        "NEURON_RT_S3_CORE_DUMP_PREFIX": "https://***bucket/***/x",
    }


def test_half_a_secret_stays_out() -> None:
    """What is too long is cut; a password at the end of what is kept lost the @ by which it is found."""
    value = "x" * 4070 + " https://user:t0ps3cret" + "y" * 100 + "@bucket"
    found = environment.public_variables({"NEURON_RT_S3_CORE_DUMP_PREFIX": value})["NEURON_RT_S3_CORE_DUMP_PREFIX"]
    assert "t0p" not in found and found.endswith("https://***bucket")


def test_packages_by_their_folders(tmp_path: Path) -> None:
    for name in ("Big_Thing-1.2.3.dist-info", "old-0.1.egg-info", "plain", "big_thing-0.0.1.dist-info"):
        (tmp_path / name).mkdir()
    later = tmp_path / "later"
    later.mkdir()
    (later / "old-9.dist-info").mkdir()
    found = environment.packages([str(tmp_path), str(later), str(tmp_path / "missing")])
    assert found["old"] == "0.1" and set(found) == {"big-thing", "old"}


def test_this_process() -> None:
    found = environment.collect({"NKI_SIMULATOR": "1"}, ["neurontools", "run"])
    assert found.python == sys.version.split()[0] and found.packages["numpy"]
    assert found.variables == {"NKI_SIMULATOR": "1"} and found.arguments == ("neurontools", "run")
