"""A dump of an injected fault: `core why` names what was injected, and the collector is called as documented."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from emulator.dump import write_core
from emulator.runtime.errors import StatusError
from emulator.runtime.injection import INJECTIONS
from emulator.runtime.session import Failure, Runtime
from emulator.runtime.tensor import Placement, TensorSet
from formats.core import open_core
from neurontools.libnrt.collecting import collector
from tests.cli.conftest import Cli, cli  # noqa: F401  a fixture
from tests.runtime.support import X, copying


def _fails(runtime: Runtime) -> StatusError:
    model = runtime.load(copying(), 0)
    inputs, outputs = TensorSet(), TensorSet()
    for name, tensors in (("x", inputs), ("y", outputs)):
        tensors.add(name, runtime.allocate(Placement.DEVICE, 0, X.nbytes))
    with pytest.raises(StatusError) as caught:
        runtime.execute(model, inputs, outputs)
    return caught.value


@pytest.mark.parametrize("kind", [kind for kind, each in INJECTIONS.items() if each.fault])
def test_core_why_names_what_was_injected(kind: str, cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    path = tmp_path / "core"

    def write(failure: Failure) -> None:
        write_core(failure.device, path, journal=failure.events, log_tail=failure.log, error_location=failure.call)

    runtime = Runtime({"NEURONTOOLS_INJECT": f"{kind}:2"}, collector=write)
    _fails(runtime)
    ended = cli("core", "why", path)
    assert INJECTIONS[kind].message in ended.out


_SCRIPT = """#!/bin/sh
printf '%s\\n' "$@" > "{folder}/flags"
cp "$NEURONTOOLS_CORE_FILE" "{folder}/core"
"""


def test_a_collector_of_the_users_gets_the_documented_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "neuron-dump"
    script.write_text(_SCRIPT.format(folder=tmp_path))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    environ = {
        "NEURONTOOLS_INJECT": "sram-ue",
        "NEURONTOOLS_NEURON_DUMP": str(script),
        "NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY": str(tmp_path / "dt-%d-%p"),
        "NEURON_RT_S3_CORE_DUMP_PREFIX": "s3://bucket/%i",
        "NEURON_RT_VISIBLE_CORES": "5",
        "PATH": os.environ["PATH"],
    }
    runtime = Runtime(environ, collector=collector(environ))
    _fails(runtime)
    words = (tmp_path / "flags").read_text().split("\n")[:-1]
    flags = dict(zip(words[::2], words[1::2], strict=True))
    assert flags["--error-code"] == "1202" and flags["--error-location"] == "nrt_execute"
    assert flags["--neff-name"] == "test.neff" and flags["--pid"] == str(os.getpid())
    assert flags["--s3-output-prefix"] == "s3://bucket/i-emulated" and flags["--cluster-id"] == "0" * 16
    assert open_core(tmp_path / "core").dump.cores == 1


def test_files_have_the_numbers_of_their_device_and_cores(tmp_path: Path) -> None:
    environ = {
        "NEURONTOOLS_INJECT": "dma-abort",
        "NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY": str(tmp_path / "dump"),
        "NEURON_RT_VISIBLE_CORES": "5",
        "PATH": os.environ["PATH"],
    }
    _fails(Runtime(environ, collector=collector(environ)))
    (core,) = [each.name for each in (tmp_path / "dump").iterdir() if "-nc" in each.name]
    assert core.startswith("i-emulated-nd1-nc2-pid-")  # logical core 5 of two physical ones, eight a device


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY": "", "NEURON_RT_S3_CORE_DUMP_PREFIX": ""}, False),
        ({"NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY": "/x"}, True),
        ({"NEURON_RT_S3_CORE_DUMP_PREFIX": "s3://x"}, True),
    ],
)
def test_when_dumps_are_collected(variables: dict[str, str], wanted: bool) -> None:
    assert (collector(variables) is not None) is wanted
