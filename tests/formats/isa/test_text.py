"""The grammar: what is tolerated, and that everything else is one error that names the operand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import isa
from formats.errors import FormatError

MATMUL = "acc_flags=3 src=fp16@0x37b00[1,0,0][128,1,1] dst=0x2000800[1,0,0][128,1,1] 128*128"
COPY = "src=fp32@0x4000[1,1,1,1][8,1,1,1] dst=fp32@0x5000[1,1,1,1][8,1,1,1] channels=128"
SCALAR = "src=fp32@0x4000[1,1,1][8,1,1] dst=fp32@0x5000[1,1,1][8,1,1] channels=128"


@pytest.mark.parametrize(
    "line",
    [
        f"MATMUL S[8]>=16 S[5]++@complete {MATMUL}",
        f"MATMUL $S[8]>=16 $S[5]++@complete {MATMUL}",
        f"MATMUL   S[8] (qSyncDynamicHW)>=16  S[5] (Tensor)++@complete {MATMUL}  ",
        f"  matmul S[8]>=16 S[5]++@complete {MATMUL}   # comment",
        "MATMUL 128*128 dst=0x2000800[1,0,0][128,1,1] S[5]++@complete src=fp16@0x37b00[1,0,0][128,1,1] acc_flags=3 "
        "S[8]>=16",
        f"MATMUL S[8]>=16 S[5]++@complete {MATMUL} {{transpose_mode=DISABLED}}",
    ],
)
def test_one_word_in_many_spellings(line: str) -> None:
    word = isa.decode(isa.assemble(line))
    assert isinstance(word, isa.MatMul)
    assert word.wait == (isa.WaitMode.SEM_GE, 8, 16) and word.update[:2] == (isa.UpdateMode.SEM_INC, 5)
    assert (
        word.raw
        == isa.MatMul(
            acc_flags=3,
            src=isa.AccessPattern(0x37B00, (1, 0, 0), (128, 1, 1)),
            dtype=7,
            dst=isa.AccessPattern(0x2000800, (1, 0, 0), (128, 1, 1)),
            wait_mode=5,
            wait_index=8,
            wait_value=16,
            update_mode=0x13,
            update_index=5,
        ).raw
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("FROBNICATE x=1", "unknown instruction"),
        ("OPCODE_zz bytes=00", "unknown instruction"),
        ("OPCODE_77", "bytes: operand is missing"),
        ("OPCODE_77 bytes=00", "bytes: wrong length"),
        ("OPCODE_77 bytes=0g", "bytes: not hexadecimal"),
        ("OPCODE_77 {raw=7711}", "not the bytes of OPCODE_77"),
        ("OPCODE_77 {raw=" + "78" * 64 + "}", "not the bytes of OPCODE_77"),
        (f"MATMUL {MATMUL} junk=1", "no such operand, found junk"),
        (f"MATMUL {MATMUL} junk", "no such operand, found junk"),
        (f"MATMUL S[1]>=1 S[2]>=2 {MATMUL}", "no such operand, found a second wait"),
        (f"MATMUL S[1]++@complete S[2]++@complete {MATMUL}", "a second update"),
        (f"MATMUL S[1]+=5@complete {MATMUL}", "no place for an update's value"),
        (f"MATMUL S[300]>=1 {MATMUL}", "wait_index: value does not fit"),
        (f"MATMUL S[3]>=4294967296 {MATMUL}", "wait_value: value does not fit"),
        ("MATMUL acc_flags=3", "src: operand is missing"),
        (f"MATMUL {MATMUL.replace('128*128', '300*128')}", "rows: value does not fit"),
        (f"MATMUL {MATMUL.replace('fp16@', 'fp17@')}", "unknown element type"),
        (f"MATMUL {MATMUL.replace('fp16@', '')}", "src: not an access pattern"),
        (f"MATMUL {MATMUL.replace('[1,0,0]', '[1,0]')}", "src: value does not fit"),
        (f"MATMUL {MATMUL.replace('[1,0,0]', '[40000,0,0]')}", "src: value does not fit"),
        (f"MATMUL {MATMUL} acc_flags=3", "acc_flags: given twice"),
        (f"MATMUL {MATMUL} {{row_groups=0x100}}", "row_groups: value does not fit"),
        (f"MATMUL {MATMUL} {{opcode=1}}", "opcode: MATMUL has no such field"),
        (f"MATMUL {MATMUL} {{nonsense=1}}", "nonsense: MATMUL has no such field"),
        (f"MATMUL {MATMUL} {{row_groups}}", "braces hold field=value only"),
        (f"MATMUL {MATMUL} {{raw=02}}", "not the bytes of MATMUL alone"),
        (f"MATMUL {MATMUL} {{raw=" + "0210" + "00" * 62 + "}", "text and raw bytes disagree"),
        (f"COPY {COPY} {{raw=" + "02" * 64 + "}", "not the bytes of COPY alone"),
        (f"TENSOR_SCALAR ops=ADD {SCALAR} imm=1,0 imm_src=PTR,INSTRUCTION", "ops: wrong number of names"),
        (f"TENSOR_SCALAR ops=ADD,FLY {SCALAR} imm=1,0 imm_src=PTR,INSTRUCTION", "op1: value does not fit"),
        (f"TENSOR_SCALAR ops=ADD,ADD {SCALAR} imm=1 imm_src=PTR", "imm: wrong number of immediates"),
        (f"TENSOR_SCALAR ops=ADD,ADD {SCALAR} imm=1,0 imm_src=PTR,STACK", "imm_src: not a source"),
        (f"TENSOR_SCALAR ops=ADD,ADD {SCALAR} imm=i4294967296,0 imm_src=INSTRUCTION,INSTRUCTION", "32 bits"),
        (f"TENSOR_SCALAR ops=ADD,ADD {SCALAR} imm=1e40,0 imm_src=INSTRUCTION,INSTRUCTION", "single precision"),
        ("EVENT_SEMAPHORE S[1]>=1", "setter: operand is missing"),
        ("EVENT_SEMAPHORE setter=0 S[1]>=1 S[2]>=1", "two waits and two updates at most"),
        ("EVENT_SEMAPHORE S[1]>=1 S[2]>=1 S[3]>=1 setter=0", "two waits"),
        ("NOTIFY hint=1 notification=IMPLICIT trace=START", "notification: has one form only"),
        ("NOP cycle=many", "cycle: not a number"),
        ("WRITE data=0x1,0x2 size=4 dst=0x8", "one value each, or two each"),
        ("WRITE data=1,2,3 size=4,4,4 dst=1,2,3", "one value each, or two each"),
        ("COMPARE_BRANCH cmp_op=EQ dtype=int32 cmp0=R0 cmp1=0 label_id=0", "cmp0: not a register"),
        ("COMPARE_BRANCH cmp_op=EQ label_id=4294967296", "target: value does not fit"),
        ("TENSOR_LOAD addr=uint32@0x1000[1,0][2,1] data=$R[1]", "data: not one register for each element"),
        ("TENSOR_LOAD addr=0x1000 data=$R[1]", "addr: not an address"),
        (f"TENSOR_LOAD addr=uint32@0x0[0,0][1,1] data=$R[{'9' * 5000}]", "data: not one register for each element"),
        (f"TENSOR_LOAD addr=uint32@0x0[0,{'9' * 5000}][1,1] data=$R[1]", "addr: not an address"),
        (f"COMPARE_BRANCH cmp_op=EQ cmp0=$R[{'9' * 5000}] label_id=0", "cmp0: not a register"),
        (f"MATMUL {MATMUL.replace('128*128', '9' * 5000 + '*1')}", "rows*cols: operand is missing"),
        (f"MATMUL {MATMUL.replace('[1,0,0]', '[' + '9' * 5000 + ',0,0]')}", "src: not an access pattern"),
        (f"MATMUL {MATMUL.replace('0x37b00', '0x100000000')}", "an address of 32 bits"),
        (
            "DMA_DIRECT2D semaphore=1 sem_increment=16 src_elem_size=4 dst_elem_size=4 "
            f"src_pattern=[1,1][1,{'9' * 5000}]",
            "src_pattern: not a DMA pattern",
        ),
        ("PSEUDO_DMA_TRIGGER queue_name_that_is_far_too_long_for_the_word block_id=1", "queue: value does not fit"),
    ],
)
def test_a_bad_line_is_one_error_that_says_where(line: str, said: str) -> None:
    with pytest.raises(FormatError) as caught:
        isa.assemble(line)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_slots_of_event_semaphore() -> None:
    both = isa.parse_instruction("EVENT_SEMAPHORE S[1]>=1 setter=0 S[2]==2 S[3]+=4@complete")
    assert (both.wait, both.wait2, both.update2) == ((5, 1, 1), (1, 2, 2), (0x15, 3, 4)) and not both.update
    assert (
        isa.parse_instruction(
            "EVENT_SEMAPHORE S[1]>=1 S[2]==2 S[3]+=4@complete setter=0 ".replace(
                "S[3]+=4@complete setter=0", "setter=0 S[3]+=4@complete"
            )
        )
        == both
    )
    second = isa.parse_instruction("EVENT_SEMAPHORE setter=0 S[2]==2")
    assert not second.wait and second.wait2 == (1, 2, 2)
    counted = isa.EventSemaphore(update2_mode=0x13, update2_index=2, update2_value=1)
    assert counted.asm == "EVENT_SEMAPHORE setter=0 S[2]++@complete {update2_value=0x1}"
    assert isa.parse_instruction(counted.asm) == counted


def test_dma_lines_refuse_what_the_word_cannot_hold() -> None:
    line = isa.PseudoDmaDirect2d(src=isa.DmaAddress("table", 3, 64), dst=isa.DmaAddress("variable", 0, 128)).text
    assert isa.decode(isa.assemble(line)).src == ("table", 3, 64)
    for old, new, said in [
        ("src_table_index=3 ", "", "operand is missing"),
        ("src_shape_reg=0", "src_shape_reg=4", "shape registers"),
        ("dst_var_id=0", "dst_var_id=268435456", "does not fit"),
        ("src_pattern=[0,0]", "src_pattern=[0]", "not a DMA pattern"),
        ("dst_var_id=0 dst_var_offset=128", "dst_addr_imm=0x1000000000000000", "does not fit"),
    ]:
        assert old in line
        with pytest.raises(FormatError, match=said):
            isa.assemble(line.replace(old, new))


def test_errors_in_programs_name_the_line() -> None:
    with pytest.raises(FormatError, match="line 3: cycle: not a number"):
        isa.assemble("# a program\nNOP cycle=1\nNOP cycle=x\n")
    assert isa.assemble("\n# nothing\n") == b""


def test_shared_element_type_must_agree() -> None:
    line = isa.SendReceive(dtype=10).text
    with pytest.raises(FormatError, match="share one element type"):
        isa.assemble(line.replace("peer_pattern=fp32", "peer_pattern=bfloat16"))


def test_unused_operands_are_not_printed() -> None:
    on = isa.Activate(function="EXP", bias_pointer=0x4810)
    off = isa.Activate(function="EXP", no_bias=1)
    assert "bias_ptr=fp32@0x4810" in on.text and "bias_ptr" not in off.text
    assert isa.parse_instruction(off.text) == off
    assert [a.operand for a in on.reads] == [a.operand for a in isa.Activate(src=(0, (1, 1, 1), (4, 1, 1))).reads][-1:]
    assert off.reads == ()


@given(
    line=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60),
    name=st.sampled_from(sorted(isa.BY_NAME)),
)
def test_any_line_is_a_word_or_a_format_error(line: str, name: str) -> None:
    for text in (line, f"{name} {line}", f"OPCODE_4F {line}"):
        try:
            assert len(isa.assemble(text)) % 64 == 0
        except FormatError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("token", ["wait09[1]:1", "wait٣[1]:1", "S[²]>=1", f"S[1]>={'9' * 5000}", "wait0x[1]:1"])
def test_odd_numbers_of_a_wait_are_refused(token: str) -> None:
    """`NOP wait09[1]:1` was a traceback."""
    with pytest.raises(FormatError):
        isa.assemble(f"NOP {token}")
