"""The machine that `mem` commands place models on: an instance with a ledger, and options that say which."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from formats.errors import NotFoundError, UnsupportedError
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.runtime.ledger import Ledger
    from emulator.runtime.ledger_plan import Scratchpad
    from emulator.runtime.memory import Stack

__all__ = [
    "Contiguous", "InstanceName", "MemoryMachine", "PageSize", "RuntimeVersion", "machine_of", "parse_bytes",
    "runtime_of", "scratchpad_text",
]  # fmt: skip

_UNITS = {"": 1, "B": 1, "KB": 1 << 10, "KIB": 1 << 10, "MB": 1 << 20, "MIB": 1 << 20, "GB": 1 << 30, "GIB": 1 << 30}
_SIZE = re.compile(r"(\d{1,15})(?:\.(\d{1,6}))?\s*([A-Za-z]{0,3})", re.ASCII)


def complete_instance(incomplete: str) -> list[str]:
    """Return the instance types that start with what was typed."""
    from emulator.machine.instances import INSTANCES  # deferred: start-up

    return [name for name in INSTANCES if name.startswith(incomplete)]


InstanceName = Annotated[
    str,
    typer.Option("--instance", metavar="TYPE", autocompletion=complete_instance, help="Instance type."),
]
RuntimeVersion = Annotated[
    str | None,
    typer.Option(
        "--runtime",
        metavar="VERSION",
        help="Version of aws-neuronx-runtime-lib, such as 2.31.24.0; the newest unless given.",
        show_default=False,
    ),
]
Contiguous = Annotated[
    bool | None,
    typer.Option(
        "--contiguous/--pages",
        help="Shared scratchpad in one region or in pages, as NEURON_RT_CONTIGUOUS_SCRATCHPAD; by chip, LNC and "
        "runtime unless given.",
        show_default=False,
    ),
]
PageSize = Annotated[
    int | None,
    typer.Option(
        "--page-size",
        metavar="MB",
        help="NEURON_SCRATCHPAD_PAGE_SIZE: 512 to 3584 in steps of 512; of pages only.",
        show_default=False,
    ),
]


class MemoryMachine(NamedTuple):
    """An instance as far as device memory goes."""

    name: str
    target: str
    lnc: int
    chips: int
    cores_per_chip: int
    ledger: Ledger

    @property
    def cores(self) -> int:
        """Return how many logical cores there are."""
        return self.chips * self.cores_per_chip // self.lnc

    def stacks(self, core: int) -> tuple[Stack, ...]:
        """Return the stack of each physical core of a logical one; NotFoundError for a core that is not there."""
        from emulator.addresses import address_map  # deferred: start-up
        from emulator.runtime.memory import Stack  # deferred: start-up

        if not 0 <= core < self.cores:
            raise NotFoundError(f"no core nc{core}: {self.name} with LNC {self.lnc} has nc0 to nc{self.cores - 1}")
        addresses = address_map(self.ledger.generation)
        device, first = divmod(core * self.lnc, self.cores_per_chip)
        return tuple(Stack(device, addresses.hbm_of(first + part)) for part in range(self.lnc))


def runtime_of(text: str | None) -> tuple[int, ...] | None:
    """Return a version of the runtime as numbers; BadParameter for what is none."""
    from formats.errors import FormatError  # deferred: start-up
    from neurontools.neff.load_checks import parse_version  # deferred: start-up

    try:
        return None if text is None else parse_version(text)
    except FormatError as error:
        raise typer.BadParameter(str(error), param_hint="--runtime") from None


def machine_of(
    instance: str, lnc: int | None, runtime: str | None, contiguous: bool | None, page_size: int | None
) -> MemoryMachine:
    """Return an instance with an empty ledger.

    Raises NotFoundError for an unknown instance, UnsupportedError for a chip that is not emulated or an LNC that it
    does not have, BadParameter for a page size that the runtime does not take.
    """
    from emulator.arch import arch_of  # deferred: start-up
    from emulator.machine.instances import instance_of  # deferred: start-up
    from emulator.runtime.ledger import Ledger  # deferred: start-up

    found = instance_of(instance)
    arch = arch_of(found.target)
    usual = arch.lnc.whole
    if lnc is not None and lnc > usual:
        raise UnsupportedError(f"{instance} has no LNC {lnc}; its cores are used one by one")
    version = runtime_of(runtime)
    pad = pad_of(arch.generation, lnc or usual, version, contiguous, page_size)
    ledger = Ledger(arch.generation, lnc=lnc or usual, runtime=version, scratchpad=pad)
    return MemoryMachine(found.name, found.target, lnc or usual, found.chips, arch.cores.whole, ledger)


def pad_of(
    generation: str, lnc: int, version: tuple[int, ...] | None, contiguous: bool | None, page_size: int | None
) -> Scratchpad:
    """Return how scratchpad is handed out; BadParameter for a page size that the runtime does not take."""
    from emulator.errors import InputError  # deferred: start-up
    from emulator.runtime.ledger_plan import scratchpad_of  # deferred: start-up

    try:
        return scratchpad_of(generation, lnc, version, contiguous, None if page_size is None else page_size << 20)
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="--page-size") from None


def scratchpad_text(pad: Scratchpad) -> str:
    """Return how scratchpad is handed out, in words."""
    how = "one region, in steps of" if pad.contiguous else "pages of"
    return f"{how} {pad.page >> 20} MiB"


def parse_bytes(text: str) -> int:
    """Return the bytes that "20GiB", "512 MB" or "4096" mean, units as powers of 1,024; BadParameter for others."""
    found = _SIZE.fullmatch(text.strip())
    scale = _UNITS.get(found[3].upper()) if found is not None else None
    if found is None or scale is None:
        raise typer.BadParameter(f"{text!r} is no size such as 4096, 512MB or 20GiB")
    digits = found[2] or ""
    return int(found[1] + digits) * scale // int("1" + "0" * len(digits))
