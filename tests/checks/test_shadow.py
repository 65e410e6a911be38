"""Which earlier accesses a new one meets, against brute force."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emulator.checks.history import Clock, Unit
from emulator.checks.shadow import Record, Shadow
from formats.regions import Pattern, Region
from tests.checks.support import assembled, checked
from tests.formats.test_regions import bytes_of, patterns, size_of

accesses = st.lists(
    st.tuples(
        st.integers(0, 2),  # actor
        st.integers(0, 3),  # first partition
        st.integers(1, 3),  # partitions
        st.integers(0, 40),  # byte
        st.one_of(st.integers(1, 40), patterns),
        st.booleans(),
        st.lists(st.integers(0, 12), min_size=3, max_size=3),  # how much of the others' accesses it knows
    ),
    max_size=14,
)


@given(accesses)
def test_a_race_is_found_where_there_is_one(steps: list[tuple[int, int, int, int, object, bool, list[int]]]) -> None:
    """Knowledge only grows and is passed on whole, as with real clocks: then leaving records out hides no race."""
    counts = [0, 0, 0]
    known: list[Clock] = [(0, 0, 0)] * 3
    releases: list[list[Clock]] = [[(0, 0, 0)] for _ in range(3)]
    seen: list[tuple[Unit, int, int, set[int], bool]] = []
    expected = False
    found: list[Record] = []
    shadow = Shadow(4, lambda old, new: found.append(old), lambda: (0, 0, 0))
    for actor, p0, rows, low, shape, write, learns in steps:
        for other, upto in enumerate(learns):
            if other != actor:
                known[actor] = tuple(map(max, known[actor], releases[other][min(upto, counts[other])]))
        counts[actor] += 1
        unit = Unit(actor, counts[actor], known[actor], None, None, 0)
        releases[actor].append(unit.release)
        pattern: Pattern = shape if isinstance(shape, tuple) else ((), int(str(shape)))
        region = Region("SBUF", 0, p0, rows, low, size_of(pattern), pattern if isinstance(shape, tuple) else None)
        touched = bytes_of(low, pattern)
        expected |= any(
            (write or wrote)
            and not unit.knows(other.actor, other.number)
            and q0 < p0 + rows
            and p0 < q1
            and touched & had
            for other, q0, q1, had, wrote in seen
        )
        shadow.access(unit, region, write)
        seen.append((unit, p0, p0 + rows, touched, write))
    assert bool(found) == expected


def test_the_last_word_of_an_engine_races_with_what_others_know() -> None:
    """It is over to the clocks when it is told of, whatever it knew as it ran.

    It reads a region that shares bytes with so many others that what everybody knows is left out then.
    """
    pieces = "\n".join(
        f"COPY src=fp32@{0x4000 + 4 * number:#x}[1,1,1,1][1,1,1,1] dst=fp32@0x6000[1,1,1,1][1,1,1,1] channels=128"
        for number in range(40)
    )
    text = f"""
.target trn2
.name last
.engine pool
COPY S[40]++@complete src=fp32@0x5000[1,1,1,1][4,1,1,1] dst=fp32@0x4100[1,1,1,1][4,1,1,1] channels=128
.engine dve
{pieces}
COPY src=fp32@0x4000[1,1,1,1][68,1,1,1] dst=fp32@0x6000[1,1,1,1][68,1,1,1] channels=128
.engine act
NOP S[40]>=1 cycle=0
"""
    findings, device = checked(assembled(text), tools=("racecheck",))
    assert device.outcome == "finished"
    assert [finding.message for finding in findings] == [
        "nc0 DVE pc 40 reads what nc0 Pool pc 0 may still be writing: SBUF"
    ]
