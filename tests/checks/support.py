"""Programs with one thing wrong, and the same programs without."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from emulator.checks import Finding, WaitPlace, make_checks
from emulator.device import Device
from emulator.loaded import LoadedModel
from formats import isa
from formats.neff import Neff, open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from tests.counting import counted

__all__ = ["Edit", "assembled", "calls_of", "checked", "drop_wait", "serious", "waits_of", "worked_out"]

Edit = Callable[[Device], object]
_EVENT_SEMAPHORE = isa.EventSemaphore.OPCODE


def assembled(text: str, path: str = "program.s") -> Neff:
    """Return the NEFF of a .s program."""
    return open_neff(to_neff(parse_program(text, path)))


def checked(
    neff: Neff,
    inputs: Mapping[str, Any] | None = None,
    tools: tuple[str, ...] = ("all",),
    *,
    edit: Edit | None = None,
    ignored: tuple[WaitPlace, ...] = (),
    seed: int | None = None,
) -> tuple[list[Finding], Device]:
    """Run a file under checks, after a change to the loaded program, and return findings and the device."""
    device = Device(neff.target, len(neff.subgraphs), seed=seed)
    device.load(neff)
    device.set_inputs(dict(inputs or {}))
    if edit is not None:
        edit(device)
    observers = make_checks(tools, ignored)
    device.observers.extend(observers)
    for observer in observers:
        observer.attach(device)
    device.run()
    for observer in observers:
        if hasattr(observer, "finish"):
            observer.finish()
    return [finding for observer in observers for finding in getattr(observer, "findings", ())], device


def calls_of(function: Callable[[], object]) -> int:
    """Return how many functions of Python and C a function calls."""
    calls, _ = counted(function, builtins=True)
    return calls


@contextmanager
def worked_out() -> Iterator[None]:
    """Have every program that is loaded run as if none had run before."""
    load = Device.load

    def loading(device: Device, neff: Neff) -> LoadedModel:
        device.replays = False
        return load(device, neff)

    with patch.object(Device, "load", loading):
        yield


def serious(findings: list[Finding]) -> list[Finding]:
    """Return the findings that are more than notes."""
    return [finding for finding in findings if finding.serious]


def waits_of(device: Device) -> Iterator[WaitPlace]:
    """Yield every semaphore or event wait of a loaded program."""
    for core in device.cores:
        for name, engine in core.engines.items():
            for loaded in engine.words:
                raw = loaded.word.raw
                if raw[4]:
                    yield WaitPlace(core.index, name, loaded.pc, 0)
                if raw[0] == _EVENT_SEMAPHORE and raw[32]:
                    yield WaitPlace(core.index, name, loaded.pc, 1)


def drop_wait(place: WaitPlace) -> Edit:
    """Return an edit that takes one wait out of a loaded program."""

    def edit(device: Device) -> None:
        words = device.cores[place.core].engines[place.engine].words
        assert isinstance(words, list)
        at = next(index for index, loaded in enumerate(words) if loaded.pc == place.pc)
        raw = bytearray(words[at].word.raw)
        raw[32 if place.slot else 4] = 0
        words[at] = words[at].with_word(type(words[at].word).from_raw(bytes(raw)))

    return edit
