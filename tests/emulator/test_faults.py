"""Faults: which word, which operand, which range, which status."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.faults import FAULT_STATUS, Fault
from formats import isa
from formats.neuron_core import PSUM_BASE
from formats.nrt.status import NrtStatus
from tests.emulator.streams import add, device_with, events_of, row, tile

END = 224 * 1024


def fault_of(engine: str, *words: isa.Instruction | str, target: str = "trn2") -> Fault:
    device = device_with({engine: list(words)}, target=target)
    assert device.run() == "fault" and device.fault is not None
    return device.fault


@pytest.mark.parametrize("operand", ["src0", "src1", "dst"])
def test_every_operand_is_checked_against_the_end_of_sbuf(operand: str) -> None:
    good = add(0x4000, 0x5000, 0x6000, 16)
    assert device_with({"DVE": [good.replace(**{operand: tile(END - 64, 16)})]}).run() == "finished"
    fault = fault_of("DVE", "NOP cycle=0", good.replace(**{operand: tile(END - 60, 16)}))
    assert (fault.kind, fault.status) == ("oob", NrtStatus.NRT_EXEC_OOB)
    assert (fault.engine, fault.pc, fault.operand) == ("DVE", 1, operand)
    assert fault.address == (END - 60, END + 4) and fault.space == "SBUF"
    assert fault.instruction_text.startswith("TENSOR_TENSOR ")


def _bad(**changed: Any) -> list[tuple[str, isa.Instruction, str]]:
    past = END - 4
    three, four = tile(past, 16), row(past, 16)
    return [
        (
            "Activation",
            isa.Activate(src=three, dst=tile(0, 16), src_dtype=10, dst_dtype=10, function=1, no_bias=1),
            "src",
        ),
        (
            "Activation",
            isa.Activate(src=tile(0, 16), dst=three, src_dtype=10, dst_dtype=10, function=1, no_bias=1),
            "dst",
        ),
        (
            "Activation",
            isa.Activate(src=tile(0, 16), dst=tile(0, 16), src_dtype=10, dst_dtype=10, function=1, bias_pointer=END),
            "bias_pointer",
        ),
        (
            "DVE",
            isa.TensorScalar(src=tile(0, 16), dst=tile(0, 16), src_dtype=10, dst_dtype=10, immediate0_pointer=END),
            "immediate0_pointer",
        ),
        ("DVE", isa.TensorReduce(src=four, dst=row(0, 1), src_dtype=10, dst_dtype=10, op=4), "src"),
        ("DVE", isa.Copy(src=row(0, 16), dst=four, src_dtype=10, dst_dtype=10), "dst"),
        ("DVE", isa.Memset(dst=four, count=16, dtype=10), "dst"),
        ("PE", isa.LoadWeights(src=tile(past, 128), dtype=10), "src"),
        ("PE", isa.MatMul(src=tile(past, 8), dst=tile(PSUM_BASE, 8), dtype=10, acc_flags=3), "src"),
        ("PE", isa.MatMul(src=tile(0, 8), dst=tile(PSUM_BASE + 0x3FF0, 8), dtype=10, acc_flags=3), "dst"),
    ]


@pytest.mark.parametrize(("engine", "word", "operand"), _bad())
def test_every_kind_of_operand_is_checked(engine: str, word: isa.Instruction, operand: str) -> None:
    fault = fault_of(engine, word)
    assert (fault.kind, int(fault.status), fault.operand, fault.pc, fault.core) == ("oob", 1006, operand, 0, 0)


def test_partitions_are_bounds_too() -> None:
    fault = fault_of("DVE", add(64 * 0x40000, 64 * 0x40000, 0, 4, channels=128))
    assert (fault.kind, fault.status) == ("partitions", NrtStatus.NRT_EXEC_OOB)


def test_a_smaller_chip_has_smaller_partitions() -> None:
    word = add(0, 0, 200 * 1024, 16)
    assert device_with({"DVE": [word]}).run() == "finished"
    assert fault_of("DVE", word, target="trn1").kind == "oob"


def test_the_text_names_everything() -> None:
    fault = fault_of("DVE", "NOP cycle=0", add(0, 0, END - 8, 4, channels=64))
    assert (
        fault.text()
        == """\
fault: dst: SBUF bytes 0x37ff8 to 0x38007 out of bounds [NRT_EXEC_OOB 1006]
  at nc0 DVE pc 1
  TENSOR_TENSOR op=ADD src0=fp32@0x0[1,4,4][4,1,1] src1=fp32@0x0[1,4,4][4,1,1] \
dst=fp32@0x37ff8[1,4,4][4,1,1] channels=64
  allowed: partitions 0 to 127, bytes 0x0 to 0x37fff of each
  found: partitions 0 to 63, bytes 0x37ff8 to 0x38007"""
    )


def test_a_word_on_the_wrong_engine_is_a_fault() -> None:
    fault = fault_of("PE", add(0, 0, 0, 4))
    assert (fault.kind, fault.expected, fault.got) == ("operand", "DVE or Pool", "PE")


def test_contradicting_operands_are_a_fault() -> None:
    fault = fault_of("DVE", add(0, 0, 64, 4).replace(src1=tile(0, 5)))
    assert (fault.kind, fault.status) == ("operand", NrtStatus.NRT_EXEC_BAD_INPUT)


def test_a_word_without_a_known_meaning_is_unsupported_not_skipped() -> None:
    fault = fault_of("SP", isa.Unknown.from_raw(bytes((0x77, 0x10)) + bytes(62)))
    assert fault.kind == "unsupported" and "OPCODE_77" in fault.message


def test_device_addresses_where_nothing_stands_are_out_of_bounds() -> None:
    fault = fault_of("SP", isa.Write(address0=0x123456789, data0=1))
    assert (fault.kind, fault.address) == ("oob", (0x123456789, 0x12345678D))


def test_a_fault_stops_everything_and_is_the_last_event() -> None:
    device = device_with({"DVE": [add(0, 0, END, 4)], "SP": ["NOP cycle=0"] * 50})
    events = events_of(device)
    assert events[-1].kind == "fault" and events[-1].instruction is device.fault and device.step() is None
    assert device.cores[0].engines["SP"].completed < 50 and device.outcome == "fault"


def test_a_word_faults_only_once_its_wait_holds() -> None:
    device = device_with({"DVE": [add(0, 0, END, 4, wait_mode=5, wait_index=9, wait_value=1)], "SP": ["NOP cycle=0"]})
    assert device.run() == "hang"


def test_every_kind_has_a_status() -> None:
    assert all(status != NrtStatus.NRT_SUCCESS for status in FAULT_STATUS.values())
    assert Fault("something else", "x").status is NrtStatus.NRT_EXEC_COMPLETED_WITH_ERR
