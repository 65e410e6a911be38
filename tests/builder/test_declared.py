"""What files of the same tensors share: each says what it would say with no other before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.neff import NeffWriter, SubgraphWriter, writer_kept
from formats.neff.made import MadeNeff
from neurontools.builder import build, variables
from neurontools.builder.trace import Allocation, Trace
from tests.builder.maker import Maker
from tests.builder.test_made import PLAIN, need_agreement, parts
from tests.builder.test_order import random_trace
from tests.counting import counted

F32, F16 = Dtype.FLOAT32, Dtype.FLOAT16


def forget() -> None:
    variables._declared.clear()
    writer_kept._definitions.clear()
    writer_kept._sound.clear()


@pytest.fixture(autouse=True)
def _nothing_before() -> Iterator[None]:
    forget()
    yield
    forget()


def program(change: Callable[[Maker], object] = lambda m: None, *, target: str = "trn2", x: str = "x",
            shape: tuple[int, int] = (128, 64), dtype: Dtype = F32, kind: str = "private", loads: int = 1,
            extended: bool = False, given_back: bool = False, untouched: bool = False) -> Trace:  # fmt: skip
    """Return a small program of an input, an output and two tensors of its own."""
    m = Maker(target)
    one, y = m.input(x, shape, dtype), m.output("y", shape, dtype)
    own, other = m.hbm("own", shape, dtype, kind), m.hbm("other", shape, dtype)
    tile = m.sbuf(shape, dtype)
    for _ in range(loads):
        m.dma(tile, one)
    if extended:
        m.memset(tile, 1.0, "DVE")
    m.dma(own, tile)
    if not untouched:
        m.dma(other, own)
    m.dma(y, tile, "Activation" if loads > 1 else None)
    if given_back:
        m.trace.outputs.append(own)
    change(m)
    return m.trace


# One for each thing that variables, queues, definition or rules go by.
OTHERS: dict[str, Trace] = {
    "target": program(target="trn3"),
    "another generation": program(target="trn1"),
    "name": program(x="x2"),
    "type": program(dtype=F16),
    "shape": program(shape=(64, 128)),
    "size": program(shape=(128, 32)),
    "kind": program(kind="shared"),
    "given back": program(given_back=True),
    "not touched": program(untouched=True),
    "queues": program(loads=2),
    "another input": program(lambda m: m.input("z", (4, 4))),
    "another output": program(lambda m: m.output("z", (4, 4))),
    "constant": program(lambda m: m.dma(m.sbuf((4, 4)), m.constant("c", np.ones((4, 4), np.float32)))),
    "words": program(extended=True),
}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("name", OTHERS)
def test_files_that_differ_in_one_thing_are_not_mixed_up(name: str, order: int) -> None:
    alone = []
    both = [program(), OTHERS[name]][::order]
    for trace in both:
        forget()
        neff = build([trace], "one").open()
        alone.append((parts(neff), neff.to_bytes()))
    forget()
    for _ in range(2):
        for trace, wanted in zip(both, alone, strict=True):
            made = build([trace], "one").open()
            assert (parts(made), made.to_bytes()) == wanted
            need_agreement(made)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_random_programs_behind_each_other(data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(["trn1", "trn2", "trn3"]))
    trace = random_trace(data, target, addresses=data.draw(st.booleans())).trace
    again = build([trace], "random").open()
    with_tables = parts(again), again.to_bytes()
    forget()
    fresh = build([trace], "random").open()
    assert (parts(fresh), fresh.to_bytes()) == with_tables


def test_two_cores_declare_the_same() -> None:
    def pair() -> list[Trace]:
        made = []
        for number in range(2):
            m = Maker("trn2", number, 2)
            x, y = m.input("x", (128, 64)), m.output("y", (128, 64))
            t = m.sbuf((128, 64))
            m.dma(t, x)
            m.dma(m.view(y, slice(64 * number, 64 * number + 64)), m.view(t, slice(0, 64)))
            made.append(m.trace)
        return made

    first, alone = build(pair(), "two").open(), build([pair()[0]], "two").open()
    forget()
    assert build([pair()[0]], "two").to_bytes() == alone.to_bytes()
    second = build(pair(), "two").open()
    assert second.to_bytes() == first.to_bytes()
    need_agreement(second)


def test_a_declaration_is_not_what_a_writer_goes_on_with() -> None:
    """What one file adds behind what it shares is its own."""
    one, other = (NeffWriter("trn2", compression="none") for _ in range(2))
    core = one.subgraph()
    core.variable("SB", "state-buffer")
    core.tensor("t", "float32", (2, 3), "")
    shared = core.declaration()
    assert core.tables() is not None
    core.variable("mine", "virtual", 8, backing_offset=0)
    assert core.tables() is None
    theirs = other.subgraph()
    theirs.adopt(shared)
    assert theirs.tables() is not None
    assert theirs.variable("theirs", "virtual", 4, backing_offset=0) == 1
    assert theirs.tables() is None
    theirs.tensor("u", "float32", (2,), "")
    for made, name in ((one, "mine"), (other, "theirs")):
        made_neff = made.hand_over()
        assert list(made_neff.subgraphs[0].variables) == ["SB", name]
        need_agreement(made_neff, understood=False)
    assert list(shared.variables) == ["SB"] and list(shared.tensors) == ["t"]
    with pytest.raises(FormatError, match="adopted behind others"):
        theirs.adopt(shared)


AS_WELL: dict[str, Callable[[SubgraphWriter], object]] = {
    "queue": lambda core: core.queue("q", "data", "sp", 1, (9,)),
    "feature": lambda core: core.feature("f"),
    "reservation": lambda core: core.reserve("t", 0, 64),
    "debug information": lambda core: core.debug("SP", lambda: [("a", "f", 1)] * 2),
}


@pytest.mark.parametrize("name", AS_WELL)
def test_tables_are_all_that_a_definition_is_made_of(name: str) -> None:
    core = NeffWriter("trn2", compression="none").subgraph()
    core.variable("SB", "state-buffer")
    shared = core.declaration()
    found = []
    for changes in (False, True, False, True):
        made = NeffWriter("trn2", compression="none")
        made.subgraph().adopt(shared)
        if changes:
            AS_WELL[name](made.subgraph())
        found.append((made.subgraph().tables(), repr(made.hand_over().subgraphs[0].definition[:-1])))
    assert found[:2] == found[2:] and found[0][0] != found[1][0] and found[0][1] != found[1][1]


def test_rules_are_asked_of_what_was_not_in_order() -> None:
    """An input of another size than its variable is refused as often as it is handed over."""
    core = NeffWriter("trn2", compression="none").subgraph()
    core.variable("SB", "state-buffer")
    core.variable("x", "input", 8)
    core.variable("y", "output", 8)
    shared = core.declaration()

    def made(x: int = 2, y: int = 2, semaphore: int = 9, block: str = "") -> NeffWriter:
        one = NeffWriter("trn2", compression="none")
        one.subgraph().adopt(shared)
        one.subgraph().queue("q", "data", "sp", 1, (semaphore,))
        if block:
            one.subgraph().dma_block(block, 0, "SP", [PLAIN._replace(source="x", target="y")])
        one.input("x", "float32", (x,))
        one.output("y", "float32", (y,))
        return one

    for _ in range(2):
        assert isinstance(made().hand_over(), MadeNeff)
        assert isinstance(made(block="q").hand_over(), MadeNeff)
        for wrong, text in (
            (made(x=3), "input x takes 12 bytes"),
            (made(y=3), "output y takes 12 bytes"),
            (made(semaphore=1), "belongs to the runtime"),
            (made(block="none"), "queue none does not exist"),
        ):
            with pytest.raises(FormatError, match=text):
                wrong.hand_over()
    assert len(writer_kept._sound) == 1


def test_constants_are_not_declared_for_others() -> None:
    core = NeffWriter("trn2", compression="none").subgraph()
    core.constant("c", np.ones(3, np.float32))
    with pytest.raises(FormatError, match="each file's own"):
        core.declaration()


def test_tables_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_kept, "_MOST", 3)
    monkeypatch.setattr("neurontools.builder.templates._MOST", 3)
    for columns in range(1, 9):
        build([program(shape=(128, columns))], "one")
        assert 1 <= len(variables._declared) <= 3
        assert 1 <= len(writer_kept._definitions) <= 3
        assert 1 <= len(writer_kept._sound) <= 3


def test_a_shape_that_is_a_list_is_declared_anew() -> None:
    def change(m: Maker) -> None:
        own: Allocation = m.hbm("listed", (4, 4))
        own.shape = [4, 4]  # type: ignore[assignment]
        m.dma(m.sbuf((4, 4)), m.view(own))

    first = build([program(change)], "one").to_bytes()
    assert not variables._declared
    assert build([program(change)], "one").to_bytes() == first


def test_what_is_declared_once_is_not_declared_again() -> None:
    trace = program()
    calls = [counted(lambda: build([trace], "one"), builtins=True)[0] for _ in range(3)]
    forget()
    plain = counted(lambda: build([trace], "one"), builtins=True)[0]
    assert calls[1] == calls[2] < plain - 120
