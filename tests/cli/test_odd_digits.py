"""Digits of other scripts, or far too many, where text becomes a number: refused or passed over, never a traceback."""

from __future__ import annotations

import pytest

from emulator.checks.synccheck import _declared
from emulator.errors import InputError
from emulator.runtime.injection import read_plan
from emulator.runtime.session import Runtime
from emulator.runtime.variables import Options
from formats.errors import NeuronError
from formats.nrt.lookup import status_of
from formats.nrt.status import NrtStatus
from tests.cli.conftest import Cli

MANY, SQUARED, ARABIC = "9" * 5000, "²", "٣"


@pytest.mark.parametrize("text", [MANY, SQUARED, ARABIC])
def test_variables_of_a_process(text: str) -> None:
    with pytest.raises(NeuronError, match="NEURON_RT_NUM_CORES"):
        Options.of({"NEURON_RT_NUM_CORES": text})


def test_more_cores_than_memory_has_room_for() -> None:
    options = Options.of({"NEURON_RT_NUM_CORES": "2147483647"})
    assert len(options.visible) == 2147483647
    with pytest.raises(NeuronError, match="2147483646"):
        Runtime({"NEURON_RT_NUM_CORES": "2147483647"})


@pytest.mark.parametrize("text", [f"nan@{MANY}", f"nan:{SQUARED}", f"nan@{ARABIC}:1", "nan@"])
def test_faults_to_inject(text: str) -> None:
    with pytest.raises(InputError):
        read_plan(text)


def test_the_line_of_a_comment() -> None:
    assert _declared("kernel.py:12") is not None
    assert [_declared(f"kernel.py:{text}") for text in (MANY, SQUARED, ARABIC)] == [None] * 3


def test_statuses_by_number() -> None:
    assert status_of("1006") is NrtStatus(1006)
    assert [status_of(text) for text in (MANY, SQUARED, "1006000000", "0000000001")] == [None] * 4


@pytest.mark.parametrize("name", ["NEURON_RT_NUM_CORES", "NEURON_SCRATCHPAD_PAGE_SIZE"])
@pytest.mark.parametrize("text", [MANY, SQUARED, ARABIC])
def test_doctor_calls_them_wrong_values(cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)
    ended = cli("doctor", "env", "--json")
    assert [one["kind"] for one in ended.json["result"]["findings"] if one["variable"] == name] == ["value"]
