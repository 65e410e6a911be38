"""The debugger's session: a program, and the parts that move it, stop it and look at it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np

from emulator.dtypes import numpy_dtype
from emulator.errors import InputError
from emulator.journal import BUDGET
from emulator.runtime import check_inputs
from formats.dtypes import Dtype
from formats.named_tuple import NamedTuple
from formats.neff import Neff, open_neff
from formats.targets import Target, resolve_target
from neurontools.debugger.among import Among
from neurontools.debugger.breakpoints import Breakpoints
from neurontools.debugger.checking import Checking
from neurontools.debugger.editing import Editor
from neurontools.debugger.errors import UsageError
from neurontools.debugger.event_log import EventLog
from neurontools.debugger.execution import Execution, LiveExecution, Options
from neurontools.debugger.frames import bound
from neurontools.debugger.history import History
from neurontools.debugger.inspector import Inspector
from neurontools.debugger.names import parse_core
from neurontools.debugger.navigator import Navigator
from neurontools.debugger.program import Program
from neurontools.debugger.results import Lines, State, Why
from neurontools.debugger.scripting import Scripting, read_lines
from neurontools.debugger.source_view import SourceView
from neurontools.debugger.stops import Stops
from neurontools.debugger.tensors import Tensors
from neurontools.debugger.writing import ANYWHERE, Writing

if TYPE_CHECKING:
    from emulator.checks import Finding
    from emulator.device import Device

__all__ = ["NOT_LIVE", "Session"]

NOT_LIVE = "a core dump does not move: it is one moment of a run; look at it, or run the program again"
Part = TypeVar("Part")
Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class Controls(NamedTuple):
    """What moves and stops a program that runs; a core dump has none."""

    checking: Checking
    navigator: Navigator
    history: History
    editor: Editor


def _by(
    part: str, method: Callable[Concatenate[Part, Given], Answer], live: bool = False
) -> Callable[Concatenate[Session, Given], Answer]:
    """Return a session's method that one of its parts carries out; a `live` one is refused on a core dump."""

    @wraps(method)
    def call(session: Session, /, *given: Given.args, **named: Given.kwargs) -> Answer:
        if live and session.post_mortem:
            raise UsageError(NOT_LIVE)
        # By name: the part may be of a subclass.
        answer: Answer = getattr(getattr(session, part), method.__name__)(*given, **named)
        return answer

    return call


class Session:
    """A program on a device, stepped by commands.

    `neff` is an open file, a path or its bytes; missing inputs are zeros, and `notes` says so. `target` picks
    a chip of the file's generation, `seed` shakes the schedule, `timing=False` gives every step the same time. Faults
    and hangs are values. Commands raise NotFoundError for names that do not exist, UsageError for arguments that make
    no sense; opening raises as `emulator.runtime.run` does. `folders` is where source files are looked for.
    `journal_bytes` bounds what going back takes; 0 keeps no journal. An engine that waits
    longer than `hang_timeout_ps` is a hang, though others still move; `max_steps`, `limit_ps` and `max_seconds` end the
    program as `emulator.settings.Settings` says.

    The work is done by parts: `inspector` looks, `navigator` goes forward, `history` goes back, `breakpoints` and
    `checking` say where to stop. `post_mortem` sessions, of core dumps, only look.  One of several ranks stands `among`
    them: moving it moves the others along.
    """

    post_mortem = False
    among: Among | None = None  # the ranks that this is one of
    writing: Writing = ANYWHERE  # for lines of commands; the methods here write where they are told to

    def __init__(
        self,
        neff: Neff | str | os.PathLike[str] | bytes,
        inputs: Mapping[str, Any] | None = None,
        *,
        target: Target | str | None = None,
        seed: int | None = None,
        timing: bool = True,
        journal_bytes: int = BUDGET,
        hang_timeout_ps: int | None = None,
        act: str = "exact",
        max_steps: int | None = None,
        limit_ps: int | None = None,
        max_seconds: float | None = None,
        among: Among | None = None,
    ) -> None:
        program = neff if isinstance(neff, Neff) else open_neff(neff)
        chip = program.target if target is None else resolve_target(target)
        if chip.generation != program.target.generation:
            raise InputError(f"the file is for {program.target.name}, not {chip.name}")
        self.notes: list[str] = []
        self.inputs = check_inputs(program, _with_zeros(program, inputs or {}, self.notes))
        self.seed, self.timing, self.act, self.hang_timeout_ps = seed, timing, act, hang_timeout_ps
        options = Options(seed, timing, journal_bytes, hang_timeout_ps, act, max_steps, limit_ps, max_seconds)
        self.among = among
        live = LiveExecution(program, chip, self.inputs, options, None if among is None else among.device)
        checking = Checking(live, among)
        self.execution: Execution = live
        self.breakpoints = Breakpoints(live, checking)
        self.inspector = Inspector(live, self.breakpoints, SourceView(live, self.breakpoints))
        stops = Stops(live, self.breakpoints, checking)
        navigator = Navigator(live, stops) if among is None else among.navigator(live, stops)
        editor = Editor(live, self.inspector.situation)
        make = History if among is None else among.history
        self._controls: Controls | None = Controls(checking, navigator, make(live, navigator, stops), editor)
        self.scripting = Scripting()
        # Beside its source is where most files stand; anything else is asked for by --source-path.
        if program.path:
            self.folders.append(Path(program.path).parent)

    # --- parts -------------------------------------------------------------------------------------------------------

    def need_live(self) -> LiveExecution:
        """Return the program that runs; UsageError in a session on a core dump."""
        execution = self.execution
        if not isinstance(execution, LiveExecution):
            raise UsageError(NOT_LIVE)
        return execution

    @property
    def _live(self) -> Controls:
        """Return what moves and stops the program; UsageError in a core dump."""
        if self._controls is None:
            raise UsageError(NOT_LIVE)
        return self._controls

    @property
    def navigator(self) -> Navigator:
        """Return what goes forward; UsageError in a core dump."""
        return self._live.navigator

    @property
    def history(self) -> History:
        """Return what goes back; UsageError in a core dump."""
        return self._live.history

    @property
    def checking(self) -> Checking:
        """Return what runs checks alongside; UsageError in a core dump."""
        return self._live.checking

    @property
    def editor(self) -> Editor:
        """Return what changes the device; UsageError in a core dump, and while checks run over ranks."""
        if self.among is not None and self.checks:
            raise UsageError("checks over ranks do not follow changes by hand: turn them off first (checks off)")
        return self._live.editor

    def bound(self, text: str) -> str:
        """Return a place with the tensor that the kernel's variable at its beginning stands for; see `info_locals`."""
        return bound(self.execution, text)

    @property
    def source(self) -> SourceView:
        """Return what lists source lines and words."""
        return self.inspector.source

    # --- the program and where the session stands --------------------------------------------------------------------

    @property
    def device(self) -> Device:
        """Return the device, another one after `restart`; of a core dump, what stands in for it can only be read."""
        return cast("Device", self.execution.device)

    @property
    def program(self) -> Program:
        """Return the words and lines of the program."""
        return self.execution.program

    @property
    def tensors(self) -> Tensors:
        """Return the tensors by name."""
        return self.execution.tensors

    @property
    def neff(self) -> Neff:
        """Return the file."""
        return self.execution.neff

    @property
    def target(self) -> Target:
        """Return the chip."""
        return self.execution.target

    @property
    def folders(self) -> list[Path]:
        """Return where source files are looked for."""
        return self.execution.folders

    @folders.setter
    def folders(self, folders: list[Path]) -> None:
        self.execution.folders = folders

    @property
    def events(self) -> int:
        """Return how many events have been reported."""
        return self.execution.events

    @property
    def time_ps(self) -> int:
        """Return the device's time at the last of them."""
        return self.execution.time_ps

    @property
    def outcome(self) -> str:
        """Return "running", "finished", "fault" or "hang"; what no command has reported yet is still to come."""
        return self.execution.outcome

    @property
    def journal(self) -> EventLog:
        """Return the events that are remembered; UsageError where none are."""
        return self.execution.journal

    @property
    def checks(self) -> tuple[str, ...]:
        """Return the names of the checks that are running."""
        return () if self._controls is None else self._controls.checking.tools

    def findings(self) -> tuple[Finding, ...]:
        """Return what the checks found up to where the session stands; what came later returns with going forward."""
        return () if self._controls is None else self._controls.checking.findings()

    def nan_findings(self) -> tuple[Finding, ...]:
        """Return where the NaN that outputs hold come from, once the run is over; nothing where no output has one."""
        if self._controls is None or self.among is not None or not self._controls.checking.explains_nan:
            return ()
        outputs = {tensor.name for tensor in self.execution.device.tensors.values() if tensor.kind == "output"}
        # What explains them runs the program again: nobody waits for that where there is nothing to explain.
        if not outputs & self.inspector.not_numbers("HBM", self.focus()[0]):
            return ()
        return self._controls.checking.nan_findings()

    def focus(self, core: int | str | None = None, engine: str | None = None) -> tuple[int, str]:
        """Choose the core and engine that other commands mean; return (core, engine)."""
        if isinstance(core, str):
            number, rest = parse_core(core)
            core, engine = number, rest or engine
        self.execution.focus = self.execution.engine(engine, core)
        return self.execution.focus

    # --- commands ----------------------------------------------------------------------------------------------------

    def restart(self) -> State:
        """Begin again: a fresh device, the same inputs; breakpoints and marks stay."""
        # Rows of the timeline are of one device: who has watched the old one goes on with the new one.
        recorded = self.inspector.recorded
        self.navigator.restart()
        if recorded:
            self.record()
        return self.state()

    def state(self) -> State:
        """Return where the session stands."""
        found = self.inspector.state()
        return found if self.among is None else found._replace(rank=self.among.rank)

    def why(self, engine: str | None = None, core: int | None = None) -> Why:
        """Return what an engine, else the focus engine, waits for; of several ranks also which wait for each other."""
        found = self.inspector.why(engine, core)
        return found if self.among is None else found._replace(ranks=self.among.waiting())

    def record(self) -> None:
        """Begin to record what engines and queues do, for the timeline."""
        self.inspector.timeline.look()

    def save_core(self, path: str | os.PathLike[str], level: str = "full") -> int:
        """Write the device as it is now as a core dump, "light" or "full", and return its size in bytes.

        Raises FormatError where the file cannot be written, UsageError for another level.
        """
        from emulator.dump import LEVELS, write_core  # deferred: start-up

        live = self.need_live()
        if level not in LEVELS:
            raise UsageError(f"{level!r} is none of {', '.join(LEVELS)}")
        return write_core(live.device, path, level=level, journal=live.log, findings=self.findings(),
                          folders=self.folders, reason="save-core")  # fmt: skip

    def script(self, path: Path) -> Lines:
        """Return the commands in a file, to be run by whoever drives the session; FormatError where it is none."""
        lines = read_lines(self.writing.readable(path))
        return Lines(str(path), lines, tuple(range(1, len(lines) + 1)))

    ahead = _by("execution", Execution.ahead)
    step = _by("navigator", Navigator.step)
    stepi = _by("navigator", Navigator.stepi)
    next = _by("navigator", Navigator.next)
    continue_ = _by("navigator", Navigator.continue_)
    until = _by("navigator", Navigator.until)
    until_later = _by("navigator", Navigator.until_later)
    finish = _by("navigator", Navigator.finish)
    reverse_step = _by("history", History.reverse_step)
    reverse_stepi = _by("history", History.reverse_stepi)
    reverse_next = _by("history", History.reverse_next)
    reverse_finish = _by("history", History.reverse_finish)
    reverse_continue = _by("history", History.reverse_continue)
    goto = _by("history", History.goto)
    mark = _by("history", History.mark)
    when = _by("history", History.when)
    break_at = _by("breakpoints", Breakpoints.break_at, live=True)
    tbreak = _by("breakpoints", Breakpoints.tbreak, live=True)
    watch = _by("breakpoints", Breakpoints.watch, live=True)
    catch = _by("breakpoints", Breakpoints.catch, live=True)
    condition = _by("breakpoints", Breakpoints.condition, live=True)
    ignore = _by("breakpoints", Breakpoints.ignore, live=True)
    set_commands = _by("breakpoints", Breakpoints.set_commands, live=True)
    delete = _by("breakpoints", Breakpoints.delete, live=True)
    enable = _by("breakpoints", Breakpoints.enable, live=True)
    disable = _by("breakpoints", Breakpoints.disable, live=True)
    commands_of = _by("breakpoints", Breakpoints.commands_of)
    enable_checks = _by("checking", Checking.enable_checks)
    disable_checks = _by("checking", Checking.disable_checks)
    warnings = _by("inspector", Inspector.warnings)
    prints = _by("inspector", Inspector.prints)
    info_engines = _by("inspector", Inspector.info_engines)
    backtrace = _by("inspector", Inspector.backtrace)
    info_locals = _by("inspector", Inspector.info_locals)
    info_scope = _by("inspector", Inspector.info_scope)
    info_ops = _by("inspector", Inspector.info_ops)
    info_queues = _by("inspector", Inspector.info_queues)
    info_dma = _by("inspector", Inspector.info_dma)
    info_semaphores = _by("inspector", Inspector.info_semaphores)
    info_events = _by("inspector", Inspector.info_events)
    info_registers = _by("inspector", Inspector.info_registers)
    info_memory = _by("inspector", Inspector.info_memory)
    info_tensors = _by("inspector", Inspector.info_tensors)
    info_breakpoints = _by("inspector", Inspector.info_breakpoints)
    evaluate = _by("inspector", Inspector.evaluate)
    find = _by("inspector", Inspector.find)
    set = _by("editor", Editor.set)
    examine = _by("inspector", Inspector.examine)
    tensor = _by("inspector", Inspector.tensor)
    print_tensor = _by("inspector", Inspector.print_tensor)
    last_write = _by("inspector", Inspector.last_write)
    list_source = _by("source", SourceView.list_source)
    forget_listing = _by("source", SourceView.forget_listing)
    disassemble = _by("source", SourceView.disassemble)
    words_from = _by("source", SourceView.words_from)


def _with_zeros(neff: Neff, inputs: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """Return inputs with zeros for those that were not given, and note which."""
    given = dict(inputs)
    for tensor in neff.inputs:
        if tensor.name not in given:
            try:
                given[tensor.name] = np.zeros(tensor.shape, numpy_dtype(Dtype.from_numpy_name(tensor.dtype)))
            except (ValueError, MemoryError) as error:  # a shape that no array can have
                raise InputError(f"input {tensor.name!r} of shape {list(tensor.shape)}: {error}") from None
            notes.append(f"input {tensor.name} {tensor.dtype}{list(tensor.shape)} was not given; it is all zeros")
    return given
