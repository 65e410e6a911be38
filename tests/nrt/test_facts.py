"""What is known of errors is complete: every status, every family, names that can be asked for, patterns that match."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from formats.errors import NotFoundError
from formats.nrt.compiler_facts import COMPILER_FACTS
from formats.nrt.driver_facts import DRIVER_FACTS, KERNEL_FACTS
from formats.nrt.lookup import all_facts, fact_of, mentions, status_of
from formats.nrt.messages import MESSAGES, match_message
from formats.nrt.status import NrtStatus
from formats.nrt.status_facts import STATUS_FACTS
from neurontools.command.exits import ExitStatus
from neurontools.dump.program import main as neuron_dump
from tests.cli.conftest import Cli, cli

__all__ = ["cli"]

FACTS = list(all_facts())


def test_every_status_is_explained() -> None:
    assert set(STATUS_FACTS) == set(NrtStatus)
    assert [int(fact.code) for fact in STATUS_FACTS.values()] == [int(status) for status in STATUS_FACTS]


def test_statuses_agree_with_the_reference(reference_data: Path) -> None:
    expected = json.loads((reference_data / "nrt_status.json").read_text())
    assert {status.name: int(status) for status in NrtStatus} == expected


def test_every_family_of_the_driver_is_explained() -> None:
    families = """generic numerical model transient hw runtime resource resource_nc invalid unsupported_neff_version oob
        hw_collectives hbm_ue nc_ue dma_abort sw_nq_overflow sw_semaphore_error sw_event_error sw_psum_collision
        sw_sequencer_fatal repairable_hbm_ue"""
    assert set(DRIVER_FACTS) == set(families.split())


def test_compiler_codes() -> None:
    documented = [code for code in COMPILER_FACTS if COMPILER_FACTS[code].cite != "AWS Neuron release notes"]
    assert len(documented) == 60
    assert all(re.fullmatch(r"[A-Z]{3,4}\d{3}", code) for code in COMPILER_FACTS)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact.family}-{fact.name}")
def test_a_fact_is_whole(fact) -> None:  # type: ignore[no-untyped-def]
    assert fact.meaning.endswith(".") and fact.cite
    assert fact.provenance in ("documented", "observed", "inferred", "ours")
    assert not fact.code or fact.family == "compiler" or int(fact.code) in NrtStatus._value2member_map_
    if fact.family in ("status", "hardware") and fact.fatal:
        assert fact.next_steps and fact.command


def test_every_command_that_is_recommended_runs(cli: Cli, root: Path, tmp_path: Path) -> None:
    texts = [text for fact in FACTS for text in (*fact.causes, *fact.next_steps, f"`{fact.command}`")]
    recommended = {line for text in texts for line in re.findall(r"`(neuron(?:tools|-dump) [^`]+)`", text)}
    assert len(recommended) > 12
    neff, core = root / "fixtures" / "neff" / "add_exp.neff", root / "fixtures" / "core" / "hang.core"
    runnable = root / "examples" / "race.s"  # it has no inputs
    for line in sorted(recommended):
        program, *words = shlex.split(line)
        file = core if program == "neuron-dump" else runnable if words[0] in ("check", "debug", "run") else neff
        places = {"FILE": file, "NEFF": runnable, "DIR": core.parent, "DIRECTORY": tmp_path}
        words = [str(places.get(word, word)) for word in words]
        status = cli(*words).status if program == "neurontools" else neuron_dump(words)
        assert status not in (ExitStatus.USAGE, ExitStatus.BUG), line


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact.family}-{fact.name}")
def test_every_fact_can_be_asked_for_by_name(fact) -> None:  # type: ignore[no-untyped-def]
    assert fact_of(fact.name).name.lower() == fact.name.lower()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1006", "NRT_EXEC_OOB"),
        ("nrt_exec_oob", "NRT_EXEC_OOB"),
        ("timeout", "NRT_TIMEOUT"),
        ("NRT_OOB", "NRT_EXEC_OOB"),  # the documentation's short form
        ("NRT_EXEC_UNIT_DISABLED", "NRT_EXEC_UNIT_UNRECOVERABLE"),  # an older header's name
        ("NCC_EVRF036", "NCC_EVRF036"),
        ("evrf036", "NCC_EVRF036"),
        ("SRAM_UNCORRECTABLE_ERROR", "SRAM_UNCORRECTABLE_ERROR"),
        ("nq-overflow", None),
        ("8", None),  # a number that no status has
        ("12", None),
    ],
)
def test_names_and_numbers(text: str, name: str | None) -> None:
    if name is None:
        with pytest.raises(NotFoundError):
            fact_of(text)
    else:
        assert fact_of(text).name == name


def test_a_near_name_is_offered() -> None:
    with pytest.raises(NotFoundError, match="did you mean NRT_EXEC_OOB"):
        fact_of("NRT_EXEC_OOBB")
    assert status_of("no") is None


# A documented line, the message it is, the status, and a value in it.
LINES = [
    ("failed to run embedding table update, due to out-of-bound access.", "oob-instruction", 1006, None),
    ("[ND 0][NC 3] Out of bounds access on model file.neff", "oob-model", 1006, ("core", "3")),
    ("(FATAL-RT-UNDEFINED-STATE) [ND 0][NC 0] Uncorrectable memory error is detected, metadata: 0x16. Please terminate",
     "sram-error", 1202, None),
    ("(FATAL-RT-UNDEFINED-STATE) Uncorrectable HBM memory error is detected. Execution results may be invalid. Please "
     "terminate this instance", "hbm-error", 1201, None),
    ("Uncorrectable HBM memory error is detected. Execution results may be invalid. Please reload the neuron driver or "
     "reboot", "hbm-repairable", 1205, None),
    ("[MLA 0][NC 0] DMA TX engine 5 is in an abort state", "dma-engine-abort", 1203, ("engine", "5")),
    ("missing collectives status on Neuron Device 0 NC 1, model 0 - suspected hang in collectives operation 7 out of "
     "100", "collectives-hang", 1200, ("operation", "7")),
    ("execution timeout (30000 ms) on Neuron Device 0 NC 0, model x.neff, waiting for execution completion "
     "notification", "execution-timeout", 5, ("milliseconds", "30000")),
    ("execution timeout (30000 ms) on model m.neff, potentially caused by DGE notifications enabled. Please disable it",
     "dge-notifications", 1204, None),
    ("Missing infer_status notification: (end:3)", "missing-infer-status", 5, ("engine", "3")),
    ("NeuronCore(s) not available - Requested:nc1-nc1 Available:0", "cores-not-available", 9, ("available", "0")),
    ("NEFF version mismatch supported: 1.1 received: 2.0", "neff-version", 10, ("received", "2.0")),
    ("neuron:mc_alloc: device mempool [0:0] total 1073741568 occupied 960539030 needed 1272 available 768",
     "device-memory", 4, ("needed", "1272")),
    ("Error notifications found on NC 0 INFER_ERROR_SUBTYPE_NUMERICAL", "numerical-error", 1003, None),
    ("15 input tensors were dumped successfully to directory /d/input_dump_4_h_nn_1. Model name is m", "inputs-dumped",
     None, ("directory", "/d/input_dump_4_h_nn_1")),
    ("Timeout waiting for RX (waited 120 sec) - retrying", "rank-late", None, ("seconds", "120")),
    ("RX, connection closed by remote peer", "peer-closed", 1206, None),
]  # fmt: skip


@pytest.mark.parametrize(("line", "name", "status", "value"), LINES, ids=[row[1] for row in LINES])
def test_documented_messages(line: str, name: str, status: int | None, value: tuple[str, str] | None) -> None:
    found = match_message(line)
    assert found is not None and found.fact.name == name
    assert found.fact.code == ("" if status is None else str(status))
    if value is not None:
        assert found.values[value[0]] == value[1]


def test_kernel_log() -> None:
    line = ("NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-05924 hostname=ip-1 nd-id=0 nc-id=3 serial-num=19f "
            "action=TERMINATE_INSTANCE")  # fmt: skip
    (found,) = mentions(line)
    assert found.fact is KERNEL_FACTS["SRAM_UNCORRECTABLE_ERROR"]
    assert found.values["nc-id"] == "3" and found.values["action"] == "TERMINATE_INSTANCE"
    (other,) = mentions("NEURON_HW_ERR=NEW_KIND action=REBOOT")
    assert other.fact.name == "NEW_KIND" and "REBOOT" in other.fact.next_steps[0]


def test_numbers_are_read_only_where_a_status_is_meant() -> None:
    assert mentions("line 1006 of 2000") == []
    assert [each.fact.code for each in mentions("Failed to execute model file.neff with status 1006")] == ["1006"]
    assert mentions("completed with status 0") == []
    assert len({fact.name for _pattern, fact in MESSAGES}) == len(MESSAGES)
