"""Findings of initcheck: reads of bytes that nothing wrote, by what comes of them, and outputs left unwritten."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from emulator.checks.finding import Finding, Site
from emulator.checks.origins import Origin, Origins
from emulator.checks.place import Names, site_of_event
from emulator.device import Device
from emulator.events import Event
from emulator.notes import MOVED, Notes
from formats.regions import Region

__all__ = ["UndefinedFindings"]

_NOTES = 50
_WRITE_FIRST = "write the tile before this word, or leave out of the access what is not written"


class UndefinedFindings:
    """What there is to say of a run that has ended."""

    def __init__(self, device: Device, names: Names, origins: Origins) -> None:
        self.device, self._names, self._origins = device, names, origins

    def of_reads(self, reached: Mapping[int, int]) -> list[Finding]:
        """Return the findings of reads of unwritten bytes, by how many bytes of outputs each made undefined."""
        findings: list[Finding] = []
        notes = 0
        for origin in self._origins:
            first = self._origins.within(origin, reached)
            if origin.number in reached:
                findings.append(self._finding(origin, reached[origin.number]))
            elif first is not None:
                if not _same_bytes(origin, first):
                    findings.append(self._mixed(origin, first))
            elif self._faults(origin.event):
                findings.append(self._faulting(origin))
            elif notes < _NOTES:
                notes += 1
                findings.append(self._note(origin))
        return findings

    def _site(self, event: Event, access: str, operand: str) -> Site:
        return site_of_event(self.device, event, access, operand)

    def _finding(self, origin: Origin, count: int) -> Finding:
        event, store = origin.event, origin.store
        site = self._site(event, "reads", origin.name)
        others = (self._site(store, "stores", "dst"),) if store is not None and store is not event else ()
        name = self._name(origin)
        message = (
            f"{site.engine} pc {site.pc} reads {origin.missing} bytes of {name or 'memory'} that nothing wrote, and "
            f"{count} bytes of output {origin.tensor} come from them"
        )
        return Finding(
            "initcheck",
            "undefined-output",
            "error",
            message,
            site,
            others,
            origin.region,
            name,
            _WRITE_FIRST,
            details={"output": origin.tensor, "bytes": count},
        )

    def _mixed(self, origin: Origin, first: Origin) -> Finding:
        """Return the finding of a read whose bytes are mixed with others that nothing wrote either."""
        site, other = self._site(origin.event, "reads", origin.name), self._site(first.event, "reads", first.name)
        name = self._name(origin)
        return Finding(
            "initcheck",
            "undefined-output",
            "error",
            f"{site.engine} pc {site.pc} reads {origin.missing} bytes of {name or 'memory'} that nothing wrote, and "
            f"output {first.tensor} comes from them together with those of {other.engine} pc {other.pc}",
            site,
            (other,),
            origin.region,
            name,
            _WRITE_FIRST,
            details={"output": first.tensor, "bytes": 0},
        )

    def _faults(self, event: Event) -> bool:
        """Return whether a word is the one whose values, or whose transfer, ended the run in a fault."""
        fault = self.device.fault
        place = event.core, event.engine, event.pc
        return event.kind == "instruction" and fault is not None and place == (fault.core, fault.engine, fault.pc)

    def _faulting(self, origin: Origin) -> Finding:
        fault = self.device.fault
        assert fault is not None
        site, name = self._site(origin.event, "reads", origin.name), self._name(origin)
        return Finding(
            "initcheck",
            "undefined-fault",
            "error",
            f"{site.engine} pc {site.pc} reads {origin.missing} bytes of {name or 'memory'} that nothing wrote, and "
            f"faults: {fault.message}",
            site,
            (),
            origin.region,
            name,
            _WRITE_FIRST,
        )

    def _note(self, origin: Origin) -> Finding:
        site = self._site(origin.event, "reads", origin.name)
        name = self._name(origin)
        message = (
            f"{site.engine} pc {site.pc} reads {origin.missing} bytes of {name or 'memory'} that nothing wrote; no "
            "output depends on them"
        )
        return Finding(
            "initcheck",
            "unwritten-read",
            "note",
            message,
            site,
            (),
            origin.region,
            name,
            "nothing, where it is the tail of a ragged tile; else write the tile before this word",
        )

    def _name(self, origin: Origin) -> str:
        event = origin.event
        owner = getattr(event.instruction, "engine", event.engine)
        return "" if origin.region is None else self._names.name(origin.region, owner, event.pc)

    def of_outputs(self, results: Mapping[int, str], stores: Mapping[int, Event], followed: Notes) -> list[Finding]:
        """Return a finding for each output, by address, of which bytes are left that nothing wrote.

        `stores` are the last transfers into them that were watched, `followed` what happened before.
        """
        findings: list[Finding] = []
        for address, tensor in results.items():
            allocation = self.device.hbm.allocations[address]
            missing = allocation.nbytes - allocation.written_bytes
            if not missing:
                continue
            first = int(np.argmin(allocation.written))
            region = Region("HBM", 0, 0, 1, address + first, allocation.nbytes - first)
            message = (
                f"{missing} of {allocation.nbytes} bytes of output {tensor} are never written, the first at {first:#x}"
                + self._element(tensor, first, allocation.nbytes)
            )
            store = stores.get(address) or self._last_store(address, followed)
            others = () if store is None else (self._site(store, "stores", "dst"),)
            findings.append(
                Finding(
                    "initcheck",
                    "output-unwritten",
                    "warning",
                    message,
                    Site(0, "host", "host", -1, "", access="reads"),
                    others,
                    region,
                    tensor,
                    "store every part of the output; check the tail of ragged loops",
                )
            )
        return findings

    def _last_store(self, address: int, followed: Notes) -> Event | None:
        """Return the last transfer into an output that was told of afterwards."""
        for note in reversed(followed):
            if note[0] != MOVED or note[3] is None:
                continue
            _, transfer, now, changes, touches = note
            for part in transfer.parts:
                target = part.copies[0][1]
                found = self.device.hbm.find(target.span[0]) if target.space == "HBM" else None
                if found is not None and found.address == address:
                    return Event(0, now, transfer.triggered_ps, transfer.core, transfer.queue, transfer.pc, transfer,
                                 "dma", changes, touches)  # fmt: skip
        return None

    def _element(self, tensor: str, byte: int, nbytes: int) -> str:
        """Return which element of an output a byte belongs to, as ", NAME[ROW, COLUMN]"."""
        assert self.device.model is not None
        shape = next(one.shape for one in self.device.model.outputs if one.name == tensor)
        elements = prod(shape)
        if not shape or not elements or nbytes % elements:
            return ""
        place = np.unravel_index(byte * elements // nbytes, shape)
        return f", {tensor}[{', '.join(map(str, place))}]"


def _same_bytes(one: Origin, other: Origin) -> bool:
    """Return whether two reads miss bytes of one place: the later one then says nothing new."""
    return one.region is None or other.region is None or one.region.overlaps(other.region)
