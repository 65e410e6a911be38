"""Which checks have something to say of a run in which all is in order: most have not, and are not made then."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from emulator.checks.in_place import rereads_of
from emulator.checks.kept import kept_of, traits_of, words_of
from emulator.checks.orderly import Order
from emulator.checks.place import Names
from emulator.checks.synccheck import leftovers, needs_of, overfull, untriggered
from emulator.device import Device
from formats.isa import are_all_sound

__all__ = ["speaking"]


def speaking(
    device: Device, tools: Sequence[str], order: Order, is_watching: bool, ran: Collection[Any] = ()
) -> tuple[str, ...]:
    """Return those of some tools that may have something to say of a run to its end or to a hang.

    `is_watching` tells that initcheck has met bytes that nothing wrote, `ran` are the words, each with its engine, that
    a program with branches came to: operands of others may leave their memories.
    """
    hangs = device.outcome == "hang"
    found = []
    for tool in tools:
        if tool == "memcheck":
            is_silent = not hangs and _has_run(device, ran) and kept_of(device, "sound", lambda: _is_sound(device))
        elif tool == "initcheck":
            is_silent = not is_watching and not traits_of(device).loads and (hangs or _is_all_written(device))
        elif tool == "synccheck":
            is_silent = not hangs and _is_even(device, order)
        else:
            is_silent = order.rest is None and not rereads_of(device)
        if not is_silent:
            found.append(tool)
    return tuple(found)


def _has_run(device: Device, ran: Collection[Any]) -> bool:
    """Return whether each word of a program that has come to its end came to its own."""
    if not traits_of(device).branches:
        return True
    return len(ran) == sum([len(engine.words) for core in device.cores for engine in core.engines.values()])


def _is_sound(device: Device) -> bool:
    """Return whether no word breaks a rule, and no tile is read once it is overwritten."""
    if not are_all_sound(words_of(device), device.target.generation):
        return False
    names = Names(device)
    return not [tile for core in device.cores for tile in names.tiles(core.index) if tile.lost]


def _is_all_written(device: Device) -> bool:
    """Return whether all bytes of outputs were written."""
    model = device.model
    for tensor in () if model is None else model.outputs:
        assert model is not None
        allocation = device.hbm.allocations[model.tensors[tensor.name].address]
        if allocation.written_bytes < allocation.nbytes:
            return False
    return True


def _is_even(device: Device, order: Order) -> bool:
    """Return whether all that is signalled is awaited, all that is declared is triggered, and no ring is overfull."""
    if not order.is_used_up:
        # Of a program with branches words that did not run count, too.
        foreseen = needs_of(device) if traits_of(device).branches else (order.needs, ())
        needs, parts = foreseen
        if needs is None or parts or any(leftovers(device, order.last_signals, needs)):
            return False
    return not any(overfull(device)) and not untriggered(device)
