"""Findings whose words are made when somebody reads them are the findings that they would have been at once."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any
from weakref import ref

import pytest

from emulator.checks import Finding, Site, again
from emulator.checks.finding import Words, amend, finding_later
from emulator.device import Device
from formats.regions import Region
from neurontools.check.rows import finding_row
from tests.checks.support import assembled

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SITE = Site(0, "DVE", "DVE", 3, "COPY", None, "reads", "src", 17)
OTHER = Site(0, "qIn", "SP", 1, "DMA", None, "writes", "dst", 5)
REGION = Region("SBUF", 0, 0, 128, 64, 256)
WORDS = Words("it is wrong", SITE, (OTHER,), "x", "make it right")


class Asked:
    """Words, and how often somebody asked for them."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Words:
        self.times += 1
        return WORDS


def plain() -> Finding:
    return Finding(
        "racecheck", "write-read", "error", "it is wrong", SITE, (OTHER,), REGION, "x", "make it right",
        details={"n": 1},
    )  # fmt: skip


def unread() -> tuple[Finding, Asked]:
    asked = Asked()
    return finding_later("racecheck", "write-read", asked, REGION, {"n": 1}), asked


READERS: dict[str, Callable[[Finding], Any]] = {
    "message": lambda one: one.message,
    "site": lambda one: one.site,
    "id": lambda one: one.id,
    "other": lambda one: one.other,
    "place": lambda one: one.place,
    "waits": lambda one: one.waits,
    "text": lambda one: one.text(),
    "repr": repr,
    "asdict": asdict,
    "vars": lambda one: sorted(vars(one)),
    "replace": lambda one: replace(one, count=3),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
    "row": finding_row,
    "class": lambda one: one.__class__,
    "equal": lambda one: one == plain(),
    "equal to it": lambda one: plain() == one,
    "not equal": lambda one: one == replace(plain(), count=2),
}


@pytest.mark.parametrize("reader", READERS)
def test_it_reads_as_one_made_at_once(reader: str) -> None:
    made, asked = unread()
    read = READERS[reader]
    assert read(made) == read(plain())
    assert asked.times == 1
    assert type(made) is Finding and made == plain()
    assert made.text() == plain().text() and asked.times == 1


def test_what_is_known_at_once_asks_for_no_words() -> None:
    made, asked = unread()
    made.count += 1
    made.regions = (REGION,)
    made.open = True
    assert isinstance(made, Finding) and made.serious
    known = made.tool, made.kind, made.severity, made.region, made.count, made.details, made.open, made.regions
    assert known == ("racecheck", "write-read", "error", REGION, 2, {"n": 1}, True, (REGION,))
    assert sorted([made, unread()[0]], key=lambda one: one.count)[1] is made
    assert not asked.times
    assert made == replace(plain(), count=2, regions=(REGION,), open=True)


def test_what_was_set_before_it_was_read_stays() -> None:
    made, asked = unread()
    made.hint = "something else"
    assert not asked.times
    assert made == replace(plain(), hint="something else")


def test_words_are_amended_in_order_whether_read_before_or_not() -> None:
    early, _ = unread()
    late, asked = unread()
    assert early.message
    for one in (early, late):
        for more in ("; first", "; second"):
            amend(one, lambda it, more=more: setattr(it, "message", it.message + more))  # type: ignore[misc]
    assert not asked.times
    assert early == late == replace(plain(), message="it is wrong; first; second")


def test_words_that_could_not_be_made_are_asked_for_again() -> None:
    turns = iter([ValueError("not yet"), None])

    def words() -> Words:
        error = next(turns)
        if error is not None:
            raise error
        return WORDS

    made = finding_later("racecheck", "write-read", words, REGION, {"n": 1})
    with pytest.raises(ValueError, match="not yet"):
        made.text()
    assert made == plain()


def test_threads_that_read_one_finding_ask_once() -> None:
    made, asked = unread()
    amend(made, lambda it: setattr(it, "message", it.message + "!"))
    gate, found = Barrier(4), []

    def read() -> None:
        gate.wait()
        found.append(made.text())

    threads = [Thread(target=read) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert asked.times == 1 and set(found) == {replace(plain(), message="it is wrong!").text()}


def test_a_kind_that_is_not_listed_is_refused() -> None:
    with pytest.raises(ValueError, match="racecheck has no 'weather'"):
        finding_later("racecheck", "weather", lambda: WORDS)


def looked_at(name: str, read: bool) -> tuple[list[Finding], Device]:
    """Return what the checks find in an example, read at once or not, and its device."""
    neff = assembled((EXAMPLES / name).read_text(), name)
    device = Device(neff.target, len(neff.subgraphs))
    device.load(neff)
    device.set_inputs({})
    checks = again.Again("all")
    checks.attach(device)
    device.run()
    checks.finish()
    if read:
        assert all(repr(one) for one in checks.findings)
    return checks.findings, device


@pytest.mark.parametrize("name", ["race.s", "out_of_bounds.s", "deadlock.s", "livelock.s"])
def test_findings_say_the_same_whenever_they_are_read(name: str) -> None:
    expected, _ = looked_at(name, read=True)
    found, device = looked_at(name, read=False)
    gone = ref(device)
    assert found and any(type(one) is not Finding for one in found)
    # Its memories are another program's, and then it is not there at all.
    device.release()
    looked_at("race.s", read=True)
    del device
    gc.collect()
    assert gone() is None
    assert found == expected
    assert [one.text() for one in found] == [one.text() for one in expected]
