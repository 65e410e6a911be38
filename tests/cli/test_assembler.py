"""The text of programs: words, labels, references, directives, and errors that name file and line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.engines import ENGINE_ALIASES
from formats.errors import FormatError
from formats.isa import BY_NAME, decode_stream
from neurontools.assembly import assembler
from neurontools.assembly.assembler import End, engine_name, parse_program
from tests.counting import counted

COPY = """
.target trn2
.name copy                            # a comment
.input  x float32 [128, 64]
.output y float32 [128, 64]
.queue qIn sp
.queue qOut act 40
.dma qIn 0 8 x+0[1,256][256,128] -> SB+0x4000[1,262144][256,128]
.dma qOut 7 41 fp32@SB+0x4000[1, 262144][256, 128] -> bfloat16@y+16[1,256][128,128]
.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
.engine act
start:
    PSEUDO_DMA_TRIGGER S[%qIn]>=16 qOut block_id=7
    COMPARE_BRANCH cmp_op=ALWAYS label_id=%start
"""


def test_a_program_is_read_whole() -> None:
    program = parse_program(COPY, "copy.s")
    assert (program.name, program.target.name, program.dialect) == ("copy", "trn2", "neuron")
    assert [(t.name, t.kind, t.dtype, t.shape, t.size) for t in program.tensors] == [
        ("x", "input", "float32", (128, 64), 32768),
        ("y", "output", "float32", (128, 64), 32768),
    ]
    assert program.variable_ids == {"SB": 0, "x": 1, "y": 2}
    assert [(q.name, q.owner, q.semaphore) for q in program.queues] == [("qIn", "SP", 8), ("qOut", "Activation", 40)]
    first, second = program.copies
    assert (first.queue, first.block, first.semaphore) == ("qIn", 0, 8)
    assert first.source == End("x", 0, (1, 256), (256, 128), "uint8")
    assert (second.source.dtype, second.target.dtype, second.target.offset) == ("float32", "bfloat16", 16)
    assert {engine: len(words) for engine, words in program.words.items()} == {"SP": 1, "Activation": 2}


def test_a_tab_separates_words_too() -> None:
    plain, tabbed = parse_program(COPY), parse_program(COPY.replace(".input ", ".input\t").replace(".name ", ".name\t"))
    assert (tabbed.name, tabbed.tensors, tabbed.words) == (plain.name, plain.tensors, plain.words)


def test_references_become_numbers() -> None:
    trigger, branch = decode_stream(parse_program(COPY).stream("Activation"), "gen3")
    assert (trigger.wait.index, trigger.wait.value) == (8, 16)
    assert branch.target & 0xFFFFFFFF == -64 & 0xFFFFFFFF


def test_labels_reach_forward_over_long_words() -> None:
    assert BY_NAME["TENSOR_TENSOR_SCAN"].SIZE > 64
    scan = BY_NAME["TENSOR_TENSOR_SCAN"]().asm
    text = f".dialect extended\n.engine dve\nCOMPARE_BRANCH cmp_op=ALWAYS label_id=%end\n{scan}\nend:\nNOP cycle=0\n"
    stream = decode_stream(parse_program(text).stream("DVE"), "gen3", "extended")
    assert stream[0].target == stream.offsets[2]


def test_words_of_ours_need_the_dialect() -> None:
    scan = BY_NAME["TENSOR_TENSOR_SCAN"]().asm
    for _ in range(2):  # the word is remembered, its refusal is the program's
        with pytest.raises(FormatError, match=r"<text>:2: .*extension of ours"):
            parse_program(f".engine dve\n{scan}\n")
        assert parse_program(f".dialect extended\n.engine dve\n{scan}\n").stream("DVE")


def test_lines_are_parsed_once() -> None:
    assembler._word.cache_clear()
    lines = "".join(f"NOP cycle={number % 3}\n" for number in range(30))
    whole = f".target trn2\n.engine dve\nstart:\n{lines}COMPARE_BRANCH cmp_op=ALWAYS label_id=%start\n"
    first = parse_program(whole).words
    # the branch with 0 for its label and with the offset; the others once each
    assert assembler._word.cache_info().misses == 3 + 2
    calls, again = counted(lambda: parse_program(whole).words)
    assembler._word.cache_clear()
    fresh, _ = counted(lambda: parse_program(whole).words)
    assert again == first and 2 * calls < 3 * fresh


def test_what_is_remembered_of_lines_depends_on_the_chip_and_is_bounded() -> None:
    assembler._word.cache_clear()
    gather = next(cls().asm for cls in BY_NAME.values() if "gen2" not in cls.GENERATIONS and cls.CODE < 0)
    assert parse_program(f".target trn2\n.engine pool\n{gather}\n").stream("Pool")
    with pytest.raises(FormatError, match="does not exist"):
        parse_program(f".target trn1\n.engine pool\n{gather}\n")
    parse_program(".engine dve\n" + "".join(f"NOP cycle={number}\n" for number in range(2 * assembler._KEPT)))
    assert assembler._word.cache_info().currsize == assembler._KEPT


def test_constants_repeat_their_last_value() -> None:
    tensor = parse_program(".constant c float32 [2, 2] 1.5 -2\n").tensors[0]
    assert tensor.data == bytes.fromhex("0000c03f 000000c0 000000c0 000000c0")
    tensor = parse_program(".constant c bfloat16 [3] 1.0 nan\n").tensors[0]
    assert tensor.data[:2] == b"\x80\x3f" and len(tensor.data) == 6


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("NOP cycle=0", "before any .engine"),
        (".engine vpu", "no engine 'vpu'"),
        (".engine sp\nNOP cycle=x", "not a number"),
        (".engine sp\nFLY me=1", "unknown instruction"),
        (".engine sp\nNOP", "cycle"),
        (".engine sp\nCOMPARE_BRANCH cmp_op=ALWAYS label_id=%nowhere", "no label, variable or queue 'nowhere'"),
        (".engine sp\na:\n.engine pe\nCOMPARE_BRANCH cmp_op=ALWAYS label_id=%a", "its own stream only"),
        (".engine sp\na:\na:", "defined twice"),
        (".input x float32 [2]\n.output x float32 [2]", "defined twice"),
        (".input SB float32 [2]", "defined twice"),
        (".input x float99 [2]", "float99"),
        (".input x float32", "[SHAPE]"),
        (".input x float32 [0]", "extent of zero"),
        (".input x float32 [2] 1", "too many words"),
        (".constant c float32 [2]", "wrong number of values"),
        (".constant c float32 [2] 1 2 3", "wrong number of values"),
        (".constant c float32 [2] one", "not a number"),
        (".constant c int8 [2] 300", "does not fit"),
        (".var s -1", "negative"),
        (".queue q sp 250", "semaphores"),
        (".queue q sp 8\n.queue r sp 16", "semaphores"),
        (".queue q sp\n.queue q sp", "defined twice"),
        (".dma q 0 8 x+0[1][4] -> y+0[1][4]", "no queue 'q'"),
        (".queue q sp\n.dma q 0 30 SB+0[1][4] -> SB+0[1][4]", "not a semaphore of the queue"),
        (".queue q sp\n.dma q 0 8 x+0[1][4] -> SB+0[1][4]", "no variable 'x'"),
        (".queue q sp\n.dma q 0 8 SB+0[1][4,2] -> SB+0[1][4]", "as many sizes"),
        (".queue q sp\n.dma q 0 8 SB[1][4] -> SB+0[1][4]", "VARIABLE+OFFSET"),
        (".queue q sp\n.dma q 0 8 SB+0[1][4]", "FROM -> TO"),
        (".target trn9", "trn9"),
        (".engine sp\nNOP cycle=0\n.target trn2", ".target stands first"),
        (".dialect latin", "latin"),
        (".colour red", "unknown directive"),
    ],
)
def test_errors_name_the_line(line: str, says: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_program(line, "bad.s")
    assert says in str(caught.value)
    assert re.match(rf"bad\.s:{line.count(chr(10)) + 1}: ", str(caught.value))


def test_the_command_line_target_must_agree() -> None:
    assert parse_program("# nothing", target="gen4").target.name == "trn3"
    assert parse_program(".target trn1", target="inf2").target.name == "inf2"
    with pytest.raises(FormatError, match="another target"):
        parse_program(".target trn2", target="trn1")


@pytest.mark.parametrize("name", sorted(ENGINE_ALIASES))
def test_engines_have_their_names_and_nicknames(name: str) -> None:
    assert engine_name(name.upper()) in ("PE", "Activation", "Pool", "DVE", "SP")


@given(st.text(alphabet=".%[]+->,:#= \nabnqxSB0189engidmaputr", max_size=120))
def test_any_text_is_a_program_or_a_format_error(text: str) -> None:
    try:
        parse_program(text)
    except FormatError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (".constant c float32 [2] 1_0.5", "not a number"),
        (".constant c float32 [2] \u0661.5", "not a number"),
        (".constant c float32 [2] 1e999", "does not fit float32"),
        (".constant c float8_e4m3 [2] 1e9", "does not fit float8_e4m3"),
        (".constant c float8_e5m2 [2] -1e9", "does not fit float8_e5m2"),
        (".constant c float8_e4m3 [2] inf nan 1e9", "wrong number of values"),
        (".var v 64 0", "power of two"),
        (".var v 64 3", "power of two"),
    ],
)
def test_numbers_that_are_none_or_too_large(line: str, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        parse_program(f".target trn2\n{line}\n", "p.s")
    assert "p.s:2" in str(caught.value)


def test_infinities_that_are_spelled_out() -> None:
    (given,) = parse_program(".target trn2\n.constant c float32 [3] inf -Infinity NaN\n").tensors
    assert given.data.hex() == "0000807f" + "000080ff" + "0000c07f"
