"""Devices that run instruction words given as text or as words, without a file around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emulator.device import Device
from emulator.events import Event
from emulator.loaded import LoadedWord
from formats import isa
from formats.neuron_core import WORD

Streams = Mapping[str, str | Sequence[isa.Instruction | str]]
WAIT, COUNT = isa.WaitMode, isa.UpdateMode


def words_of(stream: str | Sequence[isa.Instruction | str]) -> list[LoadedWord]:
    """Return loaded words of assembler lines, words, or both."""
    lines: Sequence[Any] = [line for line in stream.splitlines() if line.strip()] if isinstance(stream, str) else stream
    loaded, slot = [], 0
    for pc, line in enumerate(lines):
        word = isa.decode(isa.assemble(line)) if isinstance(line, str) else line
        loaded.append(LoadedWord(word, pc, slot))
        slot += len(word.raw) // WORD
    return loaded


def device_with(*cores: Streams, target: str = "trn2", **options: Any) -> Device:
    """Return a device with one core per mapping from engine names to streams."""
    device = Device(target, cores=len(cores), **options)
    for core, streams in zip(device.cores, cores, strict=True):
        core.load_words({name: words_of(stream) for name, stream in streams.items()})
    return device


def events_of(device: Device) -> list[Event]:
    """Step a device to its end and return the events."""
    found = []
    while (event := device.step()) is not None:
        found.append(event)
    return found


def order_of(device: Device) -> list[tuple[str, int]]:
    """Step a device to its end and return (engine, pc) of every completion."""
    return [(event.engine, event.pc) for event in events_of(device)]


def tile(address: int, *counts: int) -> isa.AccessPattern:
    """Return a packed pattern of three dimensions, innermost count first."""
    steps, step = [], 1
    for count in (*counts, *(1,) * (3 - len(counts))):
        steps.append(step)
        step *= count
    return isa.AccessPattern(address, tuple(steps), (*counts, *(1,) * (3 - len(counts))))


def row(address: int, count: int) -> isa.AccessPattern:
    """Return a packed pattern of four dimensions."""
    return isa.AccessPattern(address, (1, 1, 1, 1), (count, 1, 1, 1))


def add(src0: int, src1: int, dst: int, count: int = 8, **fields: Any) -> isa.TensorTensor:
    """Return an fp32 addition of packed tiles."""
    types = {"src0_dtype": 10, "src1_dtype": 10, "dst_dtype": 10}
    return isa.TensorTensor(
        **{
            "src0": tile(src0, count),
            "src1": tile(src1, count),
            "dst": tile(dst, count),
            "op": isa.AluOp.ADD,
            **types,
            **fields,
        }
    )


def fill(dst: int, count: int = 8, value: float = 0.0, **fields: Any) -> isa.Memset:
    """Return an fp32 fill."""
    return isa.Memset(**{"dst": row(dst, count), "count": count, "dtype": 10, "value": value, **fields})


def signal(semaphore: int) -> dict[str, int]:
    """Return the fields of `S[semaphore]++`."""
    return {"update_mode": int(COUNT.SEM_INC), "update_index": semaphore}


def after(semaphore: int, value: int) -> dict[str, int]:
    """Return the fields of `S[semaphore]>=value`."""
    return {"wait_mode": int(WAIT.SEM_GE), "wait_index": semaphore, "wait_value": value}
