"""What transfers have in common is kept by all that it hangs on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator.cost.dma import MAKERS, UNIT, dma_costs
from emulator.device import Device
from emulator.dma.binding import bind
from emulator.dma.course import Course
from emulator.dma.transfer import Facts, Part, Request, Side, Transfer
from formats.dtypes import Dtype
from formats.neuron_core import SBUF_PARTITION_STRIDE

FACTS = Facts(nbytes=128 * 512, pieces=128, hbm_bytes=128 * 512, writes_hbm=False, op="copy")
KEY: dict[str, Any] = {
    "facts": FACTS, "num_queues": 16, "maker": "prebuilt", "packet_bytes": 4096, "costs": dma_costs("trn2"),
}  # fmt: skip
OTHERS: dict[str, list[Any]] = {
    "facts": [
        FACTS._replace(nbytes=128 * 64), FACTS._replace(pieces=100), FACTS._replace(hbm_bytes=128 * 1024),
        FACTS._replace(writes_hbm=True), FACTS._replace(op="transpose"), FACTS._replace(op="add"),
    ],
    "num_queues": [4],
    "maker": ["hardware", "software"],
    "packet_bytes": [256],
    "costs": [dma_costs("trn1"), UNIT],
}  # fmt: skip


def facts_of(course: Course) -> tuple[Any, ...]:
    return tuple(getattr(course, name) for name in course.__slots__)


@pytest.mark.parametrize(("what", "value"), [(what, value) for what, values in OTHERS.items() for value in values])
def test_each_part_of_the_key_makes_another_course(what: str, value: Any) -> None:
    assert facts_of(Course(**{**KEY, what: value})) != facts_of(Course(**KEY))
    device = Device("trn2")
    device.costs.dma = device.dma.costs = KEY["costs"]
    for given in (KEY, {**KEY, what: value}, KEY):
        # As a device finds it: transfers of one queue after the other, while costs and options change.
        device.dma.costs, device.dma.packet_bytes = given["costs"], given["packet_bytes"]
        name = f"q{len(device.dma.queues)}"
        queue = device.dma.add_queue(0, name, "SP", given["num_queues"])
        request = Request(
            queue=name, core=0, engine="Pool" if given["maker"] == "software" else "SP", pc=0, parts=(),
            prebuilt=given["maker"] == "prebuilt", facts=given["facts"],
        )  # fmt: skip
        transfer = Transfer(request)
        assert facts_of(device.dma._course_of(transfer, queue)) == facts_of(Course(**given))


def test_costs_of_a_what_if_are_asked_for_each_transfer() -> None:
    device = Device("trn2")
    queue = device.dma.add_queue(0, "q", "SP")
    transfers = [Transfer(Request(queue="q", core=0, engine="SP", pc=pc, parts=(), facts=FACTS)) for pc in range(2)]
    before = [facts_of(device.dma._course_of(one, queue)) for one in transfers]
    device.dma.reprice = lambda one: device.dma.costs._replace(signal_ps=10_000 * (one.pc + 1))
    after = [facts_of(device.dma._course_of(one, queue)) for one in transfers]
    device.dma.reprice = None
    assert len({*before, *after}) == 3
    assert [facts_of(device.dma._course_of(one, queue)) for one in transfers] == before


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_nothing_is_ready_before_what_is_soonest(target: str) -> None:
    """Engines forget what is over by then when something is triggered."""
    costs = dma_costs(target)
    courses = [Course(FACTS._replace(writes_hbm=writes), 16, maker, 4096, costs)
               for writes in (False, True) for maker in MAKERS]  # fmt: skip
    assert min(course.start_ps for course in courses) == courses[0].soonest_ps > 0
    assert len({course.soonest_ps for course in courses}) == 1 and all(course.stagger_ps >= 0 for course in courses)


SIDE = Side("SBUF", 0, 64, ((SBUF_PARTITION_STRIDE, 8),), 16, Dtype.FLOAT32)
SIDES = [
    SIDE, SIDE._replace(address=128), SIDE._replace(address=SBUF_PARTITION_STRIDE + 64), SIDE._replace(run=32),
    SIDE._replace(dims=((SBUF_PARTITION_STRIDE, 4),)), SIDE._replace(dims=((2 * SBUF_PARTITION_STRIDE, 8),)),
    SIDE._replace(dtype=Dtype.FLOAT16), SIDE._replace(dims=((SBUF_PARTITION_STRIDE, 8), (64, 2))),
    SIDE._replace(core=1),
]  # fmt: skip


def test_tiles_that_differ_in_anything_are_other_bytes() -> None:
    """Each is moved to a place of its own, all of them twice: what is remembered of one must not serve another."""
    device = Device("trn2", 2)
    for core in device.cores:
        rows, width = core.sbuf.shape
        core.sbuf[...] = np.arange(width) * (3 + core.index) % 251 + np.arange(rows)[:, None] * 5 % 4
    for _ in range(2):
        for number, side in enumerate(SIDES):
            target = side._replace(core=0, address=0x1000 + 0x400 * number)
            transfer = Transfer(Request(queue="q", core=0, engine="SP", pc=0, parts=(Part("copy", ((side, target),)),)))
            bind(device, transfer)()
            steps = [(0, 0)]
            for step, count in side.dims:
                over, inside = divmod(step, SBUF_PARTITION_STRIDE)
                steps = [(p + over * at, b + inside * at) for p, b in steps for at in range(count)]
            first, byte = divmod(side.address, SBUF_PARTITION_STRIDE)
            for p, b in steps:
                want = device.cores[side.core].sbuf[first + p, byte + b : byte + b + side.run].tolist()
                at = target.address + b
                assert device.cores[0].sbuf[p, at : at + side.run].tolist() == want, side
                assert device.cores[0].sbuf_written[p, at : at + side.run].all()
