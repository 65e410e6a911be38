"""The instance that a session of the runtime runs on: devices, cores, logical cores, numbers of the public header."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from emulator.addresses import address_map
from emulator.arch import ARCHS, arch_of
from emulator.machine import instances as machines
from emulator.runtime.memory import Stack
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.targets import Target, resolve_target

__all__ = ["INSTANCES", "INSTANCE_VARIABLE", "Instance", "configured", "instance_of", "instance_with"]

INSTANCE_VARIABLE = "NEURONTOOLS_INSTANCE_TYPE"  # ours: there is no instance to ask
TARGET_VARIABLE = "NEURON_PLATFORM_TARGET_OVERRIDE"
_DEFAULT = "trn2.48xlarge"


class Instance(NamedTuple):
    """One instance type; `family` and `size` are the numbers of nrt.h."""

    name: str
    chip: str
    devices: int
    family: int
    size: int
    provenance: str = "documented"
    cite: str = "runtime.md 1.1"

    @property
    def target(self) -> Target:
        """Return the chip."""
        return resolve_target(self.chip)

    @property
    def default_lnc(self) -> int:
        """Return the physical cores of a logical core where no variable says."""
        return arch_of(self.target).lnc.whole

    def cores(self, lnc: int) -> int:
        """Return how many logical cores there are."""
        return self.devices * arch_of(self.target).cores.whole // lnc

    def place(self, core: int, lnc: int) -> tuple[int, tuple[int, ...]]:
        """Return the device of a logical core, and its physical cores there."""
        each = arch_of(self.target).cores.whole
        device, first = divmod(core * lnc, each)
        return device, tuple(range(first, first + lnc))

    def stacks(self, core: int, lnc: int) -> tuple[Stack, ...]:
        """Return the HBM stack of each physical core of a logical core."""
        device, physical = self.place(core, lnc)
        addresses = address_map(self.target.generation)
        return tuple(Stack(device, addresses.hbm_of(each)) for each in physical)


# Sizes that the public header numbers, and no page describes.
_IN_THE_HEADER = (
    Instance("trn2.3xlarge", "trn2", 1, 5, 8, "inferred"),
    Instance("trn3.48xlarge", "trn3", 16, 14, 7, "inferred"),
)


def _emulated() -> Iterator[Instance]:
    """Yield the instances of one server whose chips are emulated; their shapes are facts of `emulator.machine`."""
    for each in machines.INSTANCES.values():
        if each.servers == 1 and each.family is not None and each.size is not None and each.target in ARCHS:
            yield Instance(each.name, each.target, each.chips, each.family, each.size, "documented", "machine.md 1")
    yield from _IN_THE_HEADER


INSTANCES: Mapping[str, Instance] = {instance.name: instance for instance in _emulated()}


def instance_of(name: str) -> Instance:
    """Return an instance type by name; NotFoundError for one that is not emulated."""
    found = INSTANCES.get(name.strip().lower())
    if found is None:
        raise NotFoundError(f"no instance type {name!r}; there are {', '.join(INSTANCES)}")
    return found


def instance_with(chip: str) -> Instance:
    """Return the largest instance of a chip; NotFoundError for one that is not emulated."""
    found = [each for each in INSTANCES.values() if each.chip == chip]
    if not found:
        raise NotFoundError(f"no instance with {chip!r}; there are {', '.join(INSTANCES)}")
    return max(found, key=lambda each: (each.devices, -each.family))


def configured(environ: Mapping[str, str]) -> Instance:
    """Return the instance that variables name: one by its type, or one of the chip that kernels are built for."""
    name, chip = environ.get(INSTANCE_VARIABLE), environ.get(TARGET_VARIABLE, "").strip().lower()
    if name:
        return instance_of(name)
    known = {each.chip for each in INSTANCES.values()}
    return instance_with(chip) if chip in known else INSTANCES[_DEFAULT]
