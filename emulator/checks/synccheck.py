"""synccheck: waits that are never met, or met by luck; counts that do not fit; events set twice; what is left over."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from emulator.checks.clocks import Clocks, Key, Raise, Unit
from emulator.checks.finding import Finding, Site
from emulator.checks.place import condition, site_of, unit_site
from emulator.events import Event
from formats import isa
from formats.errors import NeuronError
from formats.isa import UpdateMode, WaitMode

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.hang import Hang, Wait
    from emulator.loader import LoadedWord

__all__ = ["Synccheck"]

_LIMIT = 200
_SHOWN = 4          # signals named as other sides of one wait
_COUNTED = (int(WaitMode.SEM_EQ), int(WaitMode.SEM_GT), int(WaitMode.SEM_GE))
_GT = int(WaitMode.SEM_GT)
_EVENT_SEMAPHORE = isa.EventSemaphore.OPCODE


class Synccheck:
    """Judge the waits and signals of one run. Needs `Clocks` to run before it."""

    name = "synccheck"

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.findings: list[Finding] = []
        self._setters: dict[Key, Unit] = {}
        self._seen: dict[tuple[Any, ...], Finding] = {}
        self._needs: dict[Key, int] = {}
        clocks.raised.append(self._raised)
        clocks.unordered.append(self._unordered)

    def attach(self, device: Device) -> None:
        """Compare what is awaited with what can be signalled, before anything moves."""
        self.device = device
        raises: dict[Key, set[int]] = defaultdict(set)      # amounts; 0 for whatever is no transfer
        waits: list[tuple[Key, int, int, str, LoadedWord]] = []
        for core in device.cores:
            for name, engine in core.engines.items():
                for loaded in engine.words:
                    self._collect(core.index, name, loaded, raises, waits)
        for key, need, mode, name, loaded in waits:
            self._needs[key] = max(need, self._needs.get(key, 0))
            amounts = raises.get(key, set())
            step = min(amounts, default=0)
            if len(amounts) == 1 and step > 1 and need % step and mode != _GT:
                site = site_of(device, key[0], name, loaded.pc, loaded.word, access="waits")
                near = (need // step + 1) * step
                self._add("count-mismatch", "error", f"{name} waits for {condition(key, need)}, and each transfer "
                          f"raises it by {step}: on a device that holds when part of a transfer has arrived", site,
                          hint=f"wait for {near - step} or {near}" if near > step else f"wait for {near}")

    @staticmethod
    def _collect(core: int, name: str, loaded: LoadedWord, raises: dict[Key, set[int]],
                 waits: list[tuple[Key, int, int, str, LoadedWord]]) -> None:
        raw = loaded.word.raw
        if raw[4] in _COUNTED:
            need = int.from_bytes(raw[8:12], "little", signed=True)
            waits.append(((core, "semaphore", raw[5]), need, raw[4], name, loaded))
        if raw[6] and raw[6] != UpdateMode.EVENT_SET:
            raises[core, "semaphore", raw[7]].add(0)
        if raw[0] == _EVENT_SEMAPHORE:
            if raw[32] in _COUNTED:
                need = int.from_bytes(raw[36:40], "little", signed=True)
                waits.append(((core, "semaphore", raw[33]), need, raw[32], name, loaded))
            if raw[34] and raw[34] != UpdateMode.EVENT_SET:
                raises[core, "semaphore", raw[35]].add(0)
        if isinstance(loaded.word, isa.DmaIndirect):
            raises[core, "semaphore", loaded.word.semaphore].add(loaded.word.semaphore_increment)
        elif loaded.transfer is not None:
            try:
                transfer = loaded.transfer()
            except NeuronError:
                return      # a fault of the word when it runs
            if transfer.semaphore is not None:
                raises[core, "semaphore", transfer.semaphore].add(transfer.increment)
            if transfer.remote is not None:
                other, semaphore, increment = transfer.remote
                raises[other, "semaphore", semaphore].add(increment)

    def on_event(self, event: Event) -> None:
        """Nothing to do: the clocks tell what matters."""

    def _add(self, kind: str, severity: str, message: str, site: Site, *others: Site, hint: str = "",
             key: Key | None = None) -> None:
        place = (kind, site.core, site.owner, site.pc, others[0][:4] if others else None, key)
        known = self._seen.get(place)
        if known is not None:
            known.count += 1
            return
        if len(self._seen) >= _LIMIT:
            return
        details = {} if key is None else {"core": key[0], key[1]: key[2]}
        finding = self._seen[place] = Finding("synccheck", kind, severity, message, site, others, hint=hint,
                                              details=details)
        self.findings.append(finding)

    def _site(self, unit: Unit, access: str) -> Site:
        return unit_site(self.device, self.clocks.names, unit, access=access)

    def _raised(self, change: Raise) -> None:
        if change.key[1] != "event" or not change.new:
            return
        before = self._setters.get(change.key)
        if change.old and before is not None:
            site = self._site(change.unit, "sets")
            self._add("double-set", "error", f"{site.engine} sets E[{change.key[2]}], which is set already: one of the "
                      "two is lost", site, self._site(before, "set"), key=change.key,
                      hint="let the setter wait until the first one is consumed, or count with a semaphore")
        self._setters[change.key] = change.unit

    def _unordered(self, wait: Unit, key: Key, need: int, exact: bool, change: Raise) -> None:
        site, other = self._site(wait, "waits"), self._site(change.unit, "raises")
        if exact:
            self._add("overshoot", "error", f"{site.engine} waits for S[{key[2]}]=={need}, and nothing keeps "
                      f"{other.engine} pc {other.pc} from raising it to {change.new} before", site, other, key=key,
                      hint=f"wait for S[{key[2]}]>={need}, or let {other.owner} wait until the first wait is over")
        else:
            self._add("ambiguous", "error", f"{site.engine} waits for {condition(key, need)}, which {other.engine} pc "
                      f"{other.pc} can bring about instead of the raises that came first here", site, other, key=key,
                      hint="give each producer its own semaphore, or wait for all they raise together")

    # --- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Explain a hang; without one, say what is left over."""
        hang = self.device.hang
        if hang is not None:
            if hang.reason == "deadlock":
                self._stuck(hang)
        elif self.device.outcome == "finished":
            self._left()

    def _stuck(self, hang: Hang) -> None:
        circular = {node for cycle in hang.cycles for node in cycle}
        for wait in hang.waits:
            key = (wait.core, wait.kind, wait.number)
            loaded = self.device.cores[wait.core].engines[wait.engine].next_loaded
            word = None if loaded is None else loaded.word
            site = site_of(self.device, wait.core, wait.engine, wait.pc, wait, access="waits", time_ps=wait.since_ps)
            others = tuple(site_of(self.device, s.core, s.engine, s.pc, s, owner=s.owner, access=s.state)
                           for s in (wait.pending or wait.could_signal)[:_SHOWN])
            if isinstance(word, isa.CoreBarrier):
                others = (self._peer(1 - wait.core, wait.engine),)
            kind, severity, message, hint = self._verdict(wait, word, (wait.core, wait.engine) in circular)
            self._add(kind, severity, message, site, *others, hint=hint, key=key)

    def _peer(self, core: int, name: str) -> Site:
        """Return where an engine stands that does not come to a barrier: at what it waits for, or behind its end."""
        engine = self.device.cores[core].engines[name]
        loaded = engine.next_loaded or (engine.words[-1] if engine.words else None)
        if loaded is None:
            return Site(core, name, name, -1, "", access="has no words")
        return site_of(self.device, core, name, loaded.pc, loaded.word, access="ended" if engine.done else "stands")

    @staticmethod
    def _verdict(wait: Wait, word: Any, circular: bool) -> tuple[str, str, str, str]:
        name = f"{'E' if wait.kind == 'event' else 'S'}[{wait.number}]"
        head = f"nc{wait.core} {wait.engine} waits for {wait.condition} for ever: {name} is {wait.present}"
        if isinstance(word, isa.CoreBarrier):
            return ("barrier", "error", f"nc{wait.core} {wait.engine} stands at a core barrier that nc{1 - wait.core} "
                    "does not reach", "both cores have to meet the same barriers in the same order")
        if wait.overshoot:
            return "overshoot", "error", f"{head}, past {wait.need}", f"wait for {name}>={wait.need}"
        if not wait.could_signal:
            return ("never-signalled", "error", f"{head} and nothing in the program signals it",
                    "signal it, or drop the wait")
        if not wait.pending:
            return ("never-met", "error", f"{head}, and all of {len(wait.could_signal)} that signal it are done",
                    f"wait for what is signalled ({wait.present}), or signal it more often")
        if circular:
            return ("deadlock", "error", f"{head}, and who would signal it waits for this engine in turn",
                    "break the circle: signal before waiting, on one of the engines in it")
        return ("blocked", "note", f"{head}, and who would signal it is stuck itself",
                "look at the engine that would signal it: that one is the cause")

    def _left(self) -> None:
        for core in self.device.cores:
            for number, value in enumerate(core.events.values):
                setter = self._setters.get((core.index, "event", number))
                if value and setter is not None:
                    self._add("event-left", "warning", f"E[{number}] of nc{core.index} is still set at the end: "
                              "nothing consumed it", self._site(setter, "set"), key=(core.index, "event", number),
                              hint="wait for it, or do not set it: the next execution starts with it set")
        for actor, last in enumerate(self.clocks.last_signals):
            for key, value in last.items():
                if key[1] != "semaphore":
                    continue
                need = self._needs.get(key)
                if need is not None and value == self.device.cores[key[0]].semaphores[key[2]] > need:
                    engine = self.clocks.names[actor][1]
                    site = Site(self.clocks.names[actor][0], engine, engine, -1, "")
                    self._add("leftover", "note", f"S[{key[2]}] of nc{key[0]} ends at {value}; no wait asks for more "
                              f"than {need}", site, key=key, hint="the last signals have nobody who waits for them")
