"""Profiles by way of the C interface: files that `neurontools ntff` reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.nrt.status import NrtStatus as S
from formats.ntff import open_ntff
from tests.libnrt.client import Client
from tests.runtime.support import X, copying


def _sets(client: Client) -> tuple[object, object]:
    return client.set_of(x=client.tensor(X.tobytes())), client.set_of(y=client.tensor(size=X.nbytes))


def test_a_profile_of_one_model(client: Client, tmp_path: Path) -> None:
    client.init()
    model, before = client.load(copying()), client.used()
    inputs, outputs = _sets(client)
    path = str(tmp_path / "profile.ntff").encode()
    assert client.call("nrt_profile_stop", path) is S.NRT_INVALID
    client.good("nrt_profile_start", model, path)
    assert client.used() > before + (1 << 30)
    client.good("nrt_execute_repeat", model, inputs, outputs, 2)
    client.good("nrt_profile_stop", path)
    assert client.used() < before + (1 << 20)
    ntff = open_ntff(tmp_path / "profile.ntff")
    assert len(ntff.executed(0)) == 16 and "neurontools" in ntff.metadata.runtime
    client.good("nrt_profile_start", model, b"/no/such/folder/x.ntff")
    assert client.call("nrt_profile_stop", b"/no/such/folder/x.ntff") is S.NRT_FAILURE


def test_continuous_profiles(client: Client, tmp_path: Path) -> None:
    client.init()
    model = client.load(copying())
    inputs, outputs = _sets(client)
    options = client.handle("nrt_profile_continuous_options_allocate")
    client.good("nrt_profile_continuous_options_set_output_dir", options, str(tmp_path / "out").encode())
    client.good("nrt_profile_continuous_start", options)
    assert client.call("nrt_profile_continuous_start", options) is S.NRT_INVALID
    assert client.call("nrt_profile_continuous_save", 0, options) is S.NRT_INVALID
    for _ in range(2):
        client.good("nrt_execute", model, inputs, outputs)
        client.good("nrt_profile_continuous_save", 0, options)
    client.good("nrt_profile_continuous_stop")
    client.good("nrt_profile_continuous_options_free", options)
    files = sorted((tmp_path / "out").iterdir())
    assert [len(open_ntff(path).executed(0)) for path in files] == [8, 8]


@pytest.mark.parametrize("variables", [False, True])
def test_inspections(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: bool) -> None:
    if variables:
        monkeypatch.setenv("NEURON_RT_INSPECT_ENABLE", "1")
        monkeypatch.setenv("NEURON_RT_INSPECT_OUTPUT_DIR", str(tmp_path))
    client.init()
    model = client.load(copying())
    inputs, outputs = _sets(client)
    if variables:
        client.good("nrt_inspect_begin")
    else:
        config = client.handle("nrt_inspect_config_allocate")
        client.good("nrt_inspect_config_set_output_dir", config, str(tmp_path).encode())
        client.good("nrt_inspect_config_set_enable_inspect", config, True)
        client.good("nrt_inspect_config_set_activity", config, b"cpu_util", False)
        client.good("nrt_inspect_begin_with_options", config)
        client.good("nrt_inspect_config_free", config)
    assert client.call("nrt_inspect_begin") is S.NRT_INVALID
    client.good("nrt_execute", model, inputs, outputs)
    client.good("nrt_inspect_stop")
    assert client.call("nrt_inspect_stop") is S.NRT_INVALID
    (ntff,) = tmp_path.glob("i-*_pid_*/*/profile_nc_0_session_1.ntff")
    assert len(open_ntff(ntff).executed(0)) == 8
    assert sorted(path.suffix for path in ntff.parent.iterdir()) == [".json", ".neff", ".ntff"]
