"""Sixteen threads on one ledger: nothing is given out twice, and it is at zero in the end."""

from __future__ import annotations

import random
import threading
from contextlib import suppress

from emulator.runtime.ledger import Ledger, NoRoomError
from emulator.runtime.ledger_plan import PartPlan, scratchpad_of
from emulator.runtime.memory import Category, Owner, Stack

THREADS, CALLS = 16, 250
MIB = 1 << 20


def test_threads() -> None:
    ledger = Ledger("gen3", lnc=2, scratchpad=scratchpad_of("gen3", 2))
    wrong: list[Exception] = []

    def work(number: int) -> None:
        rng = random.Random(number)
        stack, core = Stack(0, number % 2), number % 2
        held = []
        try:
            for call in range(CALLS):
                with suppress(NoRoomError):
                    if rng.random() < 0.5:
                        size = rng.randint(1, 600 * MIB)
                        held.append(ledger.allocate(Category.TENSORS, size, stack=stack, owner=Owner(core)))
                    else:
                        owner = Owner(core, number * CALLS + call)
                        part = PartPlan((("pe", "", rng.randint(1, MIB)),), rng.randint(0, 300 * MIB))
                        ledger.load_parts("m", [part, part], owner, [stack, stack])
                        ledger.unload(owner)
                if held and rng.random() < 0.6:
                    ledger.free(held.pop(rng.randrange(len(held))))
            for one in held:
                ledger.free(one)
        except Exception as error:  # noqa: BLE001  told by the test, not by the thread
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong and not any(thread.is_alive() for thread in threads)
    assert not ledger.entries and not ledger.models
    assert all(len(ledger.allocator(Stack(0, hbm)).gaps) == 1 for hbm in (0, 1))
    assert all(counter.total == 0 for counter in ledger.counters.values())
