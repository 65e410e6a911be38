"""The debug adapter: requests of an editor, carried out by a session one after another."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from formats.errors import FormatError, NeuronError, NotFoundError
from neurontools.command.errors_to_exit import classify
from neurontools.dap.arguments import checked
from neurontools.dap.messages import Channel, Inbox, Message
from neurontools.dap.places import Frame, Places
from neurontools.dap.stopping import FILTERS, Stopping
from neurontools.dap.variables import Variables
from neurontools.debugger import Session, UsageError
from neurontools.debugger.commands.carry_out import carry_out
from neurontools.debugger.commands.table import completions, look_up
from neurontools.debugger.frames import bound
from neurontools.debugger.interrupt import looked_after
from neurontools.debugger.memory import bytes_at
from neurontools.debugger.results import Moved, Stop
from neurontools.debugger.scripting import MOST_LINES
from neurontools.debugger.view import POINTS, turns_of
from neurontools.text.visible import printable

__all__ = ["Adapter", "Opener"]

Opener = Callable[[dict[str, Any]], Session]
Reply = dict[str, Any] | None
_NOTHING: dict[str, Any] = {}
_CAPABILITIES = (
    "supportsConfigurationDoneRequest", "supportsFunctionBreakpoints", "supportsConditionalBreakpoints",
    "supportsHitConditionalBreakpoints", "supportsEvaluateForHovers", "supportsStepBack", "supportsSetVariable",
    "supportsSetExpression", "supportsRestartRequest", "supportsGotoTargetsRequest", "supportsCompletionsRequest",
    "supportsExceptionInfoRequest", "supportsExceptionFilterOptions", "supportsValueFormattingOptions",
    "supportsTerminateRequest", "supportsDataBreakpoints", "supportsReadMemoryRequest", "supportsWriteMemoryRequest",
    "supportsDisassembleRequest", "supportsSteppingGranularity", "supportsInstructionBreakpoints", "supportsLogPoints",
    "supportsBreakpointLocationsRequest", "supportsDelayedStackTraceLoading",
)  # fmt: skip
_MOST_WORDS = 100_000  # of one answer
_MOST_BYTES = 1 << 20
_TOO_EARLY = frozenset({"initialize", "launch", "attach", "disconnect", "terminate", "cancel"})
_MOVING = {"fault": "exception", "hang": "exception", "interrupted": "pause", "goto": "goto", "start": "entry"}


def _spelled(method: str) -> str:
    """Return the request that a method answers, as the protocol spells it."""
    first, *more = method.removeprefix("_do_").split("_")
    return first + "".join(word.capitalize() for word in more)


class Adapter:
    """One client's session, from `initialize` to `disconnect`; `opener` makes the session of a launch."""

    def __init__(self, channel: Channel, opener: Opener) -> None:
        self._channel, self._opener = channel, opener
        self._inbox = Inbox(channel)
        self._session: Session | None = None
        self._arguments: dict[str, Any] = {}
        self._ended = self._at_end = False
        self._base = 1  # the first line, as the client counts
        self._prints = 0
        self._stop: Stop | Moved | None = None
        self._targets: list[str] = []
        self._requests: dict[str, Callable[[dict[str, Any]], Reply]] = {
            _spelled(name): getattr(self, name) for name in dir(self) if name.startswith("_do_")
        }

    def run(self) -> None:
        """Answer requests until the client is gone."""
        while not self._ended:
            message = self._inbox.take()
            if message is None:
                return
            if isinstance(message, FormatError):
                self._output(f"neurontools: {message}\n", "stderr")
                return
            self._answer(message)

    def _answer(self, message: Message) -> None:
        name, number = message["command"], message.get("seq", 0)
        after: Callable[[], None] | None = None
        head: dict[str, Any] = {"request_seq": number, "command": name}
        request = self._requests.get(name)
        try:
            if request is None:
                raise UsageError(f"no request {name!r} here")
            if self._session is None and name not in _TOO_EARLY:
                raise UsageError(f"{name} before launch")
            body = request(checked(message.get("arguments") or {})) or {}
            after = body.pop("", None)
        except NeuronError as error:
            self._fail(head, classify(error).message)
            return
        except KeyError as error:
            self._fail(head, f"{name}: the argument {error} is missing")
            return
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # Somebody waits at the other end, and what the arguments of one request may mean is not for all to die of.
            self._fail(head, f"{name}: an argument is of another kind ({type(error).__name__}: {error})")
            return
        self._channel.write("response", **head, success=True, body=body)
        if after is not None:
            after()

    def _fail(self, head: dict[str, Any], text: str) -> None:
        error = {"id": 1, "format": text.replace("{", "(").replace("}", ")"), "showUser": True}
        self._channel.write("response", **head, success=False, message=text, body={"error": error})

    def _event(self, name: str, **body: object) -> None:
        self._channel.write("event", event=name, body=body)

    def _output(self, text: str, category: str = "console") -> None:
        self._event("output", category=category, output=text)

    @property
    def session(self) -> Session:
        """Return the session of the launch."""
        assert self._session is not None  # requests before it have been refused
        return self._session

    # --- beginning and end -------------------------------------------------------------------------------------------

    def _do_initialize(self, arguments: dict[str, Any]) -> Reply:
        self._base = 1 if arguments.get("linesStartAt1", True) else 0
        filters = [{"filter": name, "label": label, "default": on, "supportsCondition": True}
                   for name, label, on in FILTERS]  # fmt: skip
        return {**dict.fromkeys(_CAPABILITIES, True), "exceptionBreakpointFilters": filters}

    def _do_launch(self, arguments: dict[str, Any]) -> Reply:
        if self._session is not None:
            raise UsageError("the program has been launched already")
        session = self._opener(arguments)
        self._session, self._arguments = session, arguments
        self._places = Places(session)
        self._variables = Variables(session)
        self._stopping = Stopping(session, self._places, lambda text: self._output(f"{printable(text)}\n"))
        for text in session.notes:
            self._output(f"{text}\n")
        return {"": lambda: self._event("initialized")}

    _do_attach = _do_launch

    def _do_configuration_done(self, arguments: dict[str, Any]) -> Reply:
        session = self.session
        # A dump, or the end of a recording: there is nothing to run to.
        if session.post_mortem or session.events:
            return {"": lambda: self._stopped("exception" if session.device.fault is not None else "entry")}
        if self._arguments.get("stopOnEntry"):
            return {"": lambda: self._stopped("entry")}
        return self._go(session.continue_)

    def _do_restart(self, arguments: dict[str, Any]) -> Reply:
        self.session.restart()
        self._at_end, self._prints = False, 0
        return self._do_configuration_done(arguments)

    def _do_disconnect(self, arguments: dict[str, Any]) -> Reply:
        self._ended = True
        return _NOTHING.copy()

    def _do_terminate(self, arguments: dict[str, Any]) -> Reply:
        return {"": lambda: self._event("terminated")}

    def _do_cancel(self, arguments: dict[str, Any]) -> Reply:
        return _NOTHING.copy()

    # --- breakpoints -------------------------------------------------------------------------------------------------

    def _do_set_breakpoints(self, arguments: dict[str, Any]) -> Reply:
        path = str(arguments["source"].get("path") or arguments["source"]["name"])
        wanted = [{**one, "line": one["line"] + 1 - self._base} for one in arguments.get("breakpoints") or ()]
        rows = self._stopping.lines(path, wanted)
        for row in rows:
            if "line" in row:
                row["line"] += self._base - 1
        return {"breakpoints": rows}

    def _do_set_function_breakpoints(self, arguments: dict[str, Any]) -> Reply:
        return {"breakpoints": self._stopping.functions(arguments["breakpoints"])}

    def _do_set_instruction_breakpoints(self, arguments: dict[str, Any]) -> Reply:
        return {"breakpoints": self._stopping.words(arguments["breakpoints"])}

    def _do_set_data_breakpoints(self, arguments: dict[str, Any]) -> Reply:
        return {"breakpoints": self._stopping.data(arguments["breakpoints"])}

    def _do_set_exception_breakpoints(self, arguments: dict[str, Any]) -> Reply:
        options = arguments.get("filterOptions") or []
        return {"breakpoints": self._stopping.exceptions(arguments.get("filters") or [], options)}

    def _do_data_breakpoint_info(self, arguments: dict[str, Any]) -> Reply:
        name, reference = str(arguments["name"]), arguments.get("variablesReference")
        text = self._variables.name_of(reference, name) if reference else bound(self.session.execution, name)
        place = text.replace('"', "")
        try:
            probe = self.session.watch(place)
            self.session.delete(probe.number)
        except NeuronError as error:
            return {"dataId": None, "description": str(error)}
        kinds = ["write"] if probe.counter is not None else ["read", "write", "readWrite"]
        return {"dataId": place, "description": probe.where, "accessTypes": kinds}

    def _do_breakpoint_locations(self, arguments: dict[str, Any]) -> Reply:
        path = str(arguments["source"].get("path") or arguments["source"]["name"])
        lines = self.session.program.lines[self._places.file_of(path)]
        first = arguments["line"] + 1 - self._base
        last = arguments.get("endLine", arguments["line"]) + 1 - self._base
        return {"breakpoints": [{"line": line + self._base - 1} for line in sorted(lines) if first <= line <= last]}

    # --- moving ------------------------------------------------------------------------------------------------------

    def _do_continue(self, arguments: dict[str, Any]) -> Reply:
        return {**(self._go(self.session.continue_) or {}), "allThreadsContinued": True}

    def _do_next(self, arguments: dict[str, Any]) -> Reply:
        session = self._on(arguments)
        return self._go(session.stepi if arguments.get("granularity") == "instruction" else session.next)

    def _do_step_in(self, arguments: dict[str, Any]) -> Reply:
        session = self._on(arguments)
        word = arguments.get("granularity") == "instruction"
        return self._go(session.stepi if word else lambda: session.next(into=True))

    def _do_step_out(self, arguments: dict[str, Any]) -> Reply:
        session = self._on(arguments)
        if len(session.backtrace()) < 2:
            raise UsageError("this line is in no function that the kernel calls")
        return self._go(session.finish)

    def _do_step_back(self, arguments: dict[str, Any]) -> Reply:
        session = self._on(arguments)
        word = arguments.get("granularity") == "instruction"
        return self._go(session.reverse_stepi if word else session.reverse_next)

    def _do_reverse_continue(self, arguments: dict[str, Any]) -> Reply:
        self.session.need_live()
        return self._go(self.session.reverse_continue)

    def _do_pause(self, arguments: dict[str, Any]) -> Reply:
        return _NOTHING.copy()  # a run has noticed it already; the program stands still otherwise

    def _do_goto_targets(self, arguments: dict[str, Any]) -> Reply:
        path = str(arguments["source"].get("path") or arguments["source"]["name"])
        line = arguments["line"] + 1 - self._base
        place = f"{self._places.file_of(path)}:{line}"
        actual = int(self.session.program.resolve(place, self.session.focus()[1]).where.rpartition(":")[2])
        self._targets.append(place)
        label = "the next time that this line begins, else the last time"
        return {"targets": [{"id": len(self._targets), "label": label, "line": actual + self._base - 1}]}

    def _do_goto(self, arguments: dict[str, Any]) -> Reply:
        number = arguments["targetId"]
        if not 0 < number <= len(self._targets):
            raise NotFoundError(f"no target {number}")
        place = self._targets[number - 1]
        return self._go(lambda: self._to(place), "goto")

    def _to(self, place: str) -> Stop | Moved:
        """Go to where a line begins: forwards, or back where it does not come again."""
        session, here = self.session, self.session.events
        stop = session.until(place)
        if stop.reason in ("until", *POINTS, "interrupted"):
            return stop
        goal = session.program.resolve(place, session.focus()[1])
        log = session.journal.log
        before = (
            index
            for index in range(len(log) - 1, -1, -1)
            if log[index].number < here and log[index].owner[3] != "dma" and log[index].owner[:3] in goal.places
        )
        found = next(before, None)  # fmt: skip
        return session.goto("start" if not found else f"#{log[found - 1].number}")

    def _on(self, arguments: dict[str, Any]) -> Session:
        session = self.session
        session.need_live()
        session.focus(*self._places.engine(int(arguments["threadId"])))
        return session

    def _go(self, move: Callable[[], Stop | Moved], reason: str = "step") -> Reply:
        """Return the answer to a request that moves the program, which it does behind the answer."""
        self.session.need_live()
        return {"": lambda: self._move(move, reason)}

    def _move(self, move: Callable[[], Stop | Moved], reason: str) -> None:
        session = self.session
        if self._at_end and session.outcome != "running" and move == session.continue_:
            self._event("exited", exitCode=0 if session.outcome == "finished" else 5)
            self._event("terminated")
            return
        try:
            with looked_after(self._inbox.interrupts):
                self._stop = move()
        except NeuronError as error:
            self._output(f"neurontools: {classify(error).message}\n", "stderr")
            self._stopped(reason)
            return
        self._printed()
        self._report(self._stop, reason)

    def _report(self, stop: Stop | Moved, reason: str) -> None:
        self._at_end = stop.reason in ("finished", "fault", "hang")
        for text in stop.errors:
            self._output(f"{text}\n", "stderr")
        if stop.reason == "finished" and self._arguments.get("noDebug"):
            self._event("exited", exitCode=0)
            self._event("terminated")
        elif stop.reason == "finished":
            text = "the program has ended; step back, or continue to leave"
            self._output(f"{text}\n")
            self._stopped("end", text)
        elif stop.reason in POINTS:
            self._stopped(self._stopping.kind_of(stop.breakpoints), numbers=stop.breakpoints)
        else:
            self._stopped(_MOVING.get(stop.reason, reason), text=self._trouble())

    def _trouble(self) -> str:
        """Return what the program ended with, "" where it did not end badly."""
        device = self.session.device
        if self.session.outcome == "fault" and device.fault is not None:
            return str(device.fault.message)
        if self.session.outcome == "hang" and device.hang is not None:
            return str(device.hang.text().split("\n")[0])
        return ""

    def _stopped(self, reason: str, text: str = "", numbers: tuple[int, ...] = ()) -> None:
        self._variables.forget()
        core, engine = self.session.focus()
        ahead = self.session.ahead()
        turns = turns_of(() if ahead is None else ahead.iteration).removeprefix(", ")
        caught = self._stopping.caught(numbers)
        trouble = text or self._trouble() if reason == "exception" else text
        body: dict[str, object] = {
            "reason": reason, "threadId": self._places.thread(core, engine), "allThreadsStopped": True,
            "description": trouble or caught or turns or reason,
        }  # fmt: skip
        if trouble:
            body["text"] = trouble
        if numbers:
            body["hitBreakpointIds"] = list(numbers)
        self._event("stopped", **body)

    def _printed(self) -> None:
        prints = self.session.prints()
        for item in prints[self._prints :]:
            self._output(f"{item.prefix} {item.values}\n", "stdout")
        self._prints = len(prints)

    # --- looking -----------------------------------------------------------------------------------------------------

    def _do_threads(self, arguments: dict[str, Any]) -> Reply:
        return {"threads": [{"id": number, "name": name} for number, name in self._places.threads()]}

    def _do_stack_trace(self, arguments: dict[str, Any]) -> Reply:
        core, engine = self._places.engine(int(arguments["threadId"]))
        # Frames are of the thread asked for; what the console means stays where the person left it.
        where = self.session.execution.standing(core, engine)
        before = self.session.focus()
        self.session.focus(core, engine)
        rows = self.session.backtrace()
        self.session.focus(*before)
        frames: list[dict[str, Any]] = []
        for row in rows:
            frame = Frame(core, engine, row.level)
            frames.append({
                "id": self._places.frame_number(frame), "line": row.line + self._base - 1, "column": self._base,
                "name": (row.function or (f"%{row.operation}" if row.operation else engine)) + turns_of(row.iteration),
                "source": self._places.source(row.file),
                "instructionPointerReference": self._places.address(where),
            })  # fmt: skip
        if not frames:
            word = self.session.program.text(*where) or "done"
            frames = [{"id": self._places.frame_number(Frame(core, engine, 0)), "name": f"pc {where[2]}  {word}",
                       "line": 0, "column": 0, "presentationHint": "subtle",
                       "instructionPointerReference": self._places.address(where)}]  # fmt: skip
        first, count = arguments.get("startFrame") or 0, arguments.get("levels") or len(frames)
        return {"stackFrames": frames[first : first + count], "totalFrames": len(frames)}

    def _do_scopes(self, arguments: dict[str, Any]) -> Reply:
        return {"scopes": self._variables.scopes(self._places.frame(int(arguments["frameId"])))}

    def _do_variables(self, arguments: dict[str, Any]) -> Reply:
        first, count = int(arguments.get("start") or 0), int(arguments.get("count") or 0)
        reference, which = int(arguments["variablesReference"]), str(arguments.get("filter") or "")
        found = self._variables.children(reference, first, count, which)
        return {"variables": found}

    def _do_source(self, arguments: dict[str, Any]) -> Reply:
        return {"content": self._places.text(int(arguments["sourceReference"]))}

    def _do_evaluate(self, arguments: dict[str, Any]) -> Reply:
        text = str(arguments["expression"]).strip()
        if arguments.get("frameId") is not None:
            frame = self._places.frame(int(arguments["frameId"]))
            self.session.focus(frame.core, frame.engine)
        if arguments.get("context") == "repl" and self._is_command(text):
            return self._command(text)
        base = "x" if (arguments.get("format") or {}).get("hex") else ""
        shown = self._variables.result(self.session.evaluate(text, base))
        shown["result"] = shown.pop("value")
        shown.pop("name", None)
        return shown

    def _is_command(self, text: str) -> bool:
        """Return whether a line of the console is a command of the debugger, not an expression."""
        if self.session.scripting.lines_of(text) is not None:
            return True
        try:
            look_up(self.session.scripting.expanded(text))
        except UsageError:
            return False
        try:
            self.session.evaluate(text)
        except NeuronError:
            return True
        return False

    def _command(self, text: str) -> Reply:
        """Run a line as the prompt does, with what it sets off."""
        lines: list[str] = []
        moved: Stop | Moved | None = None
        events, waiting = self.session.events, [text]
        for _ in range(MOST_LINES):
            if not waiting:
                break
            with looked_after(self._inbox.interrupts):
                answer = carry_out(self.session, waiting.pop(0))
            if answer.error is not None and moved is None and self.session.events == events:
                raise answer.error
            if answer.error is not None:  # the editor has to hear that the program stands elsewhere
                lines.append(f"neurontools: {classify(answer.error).message}")
                break
            lines += answer.lines
            waiting[:0] = [*self.session.commands_of(answer.stopped_at), *answer.follow]
            if isinstance(answer.value, Stop | Moved):
                moved = answer.value
        body: dict[str, Any] = {"result": "\n".join(map(printable, lines)), "variablesReference": 0}
        if moved is not None or self.session.events != events:
            stop = moved

            def report() -> None:
                self._printed()
                if stop is None:
                    self._stopped("goto")
                else:
                    self._report(stop, "step")

            body[""] = report
        return body

    def _do_set_variable(self, arguments: dict[str, Any]) -> Reply:
        place = self._variables.name_of(int(arguments["variablesReference"]), str(arguments["name"]))
        return {"value": self.session.set(f"{place} = {arguments['value']}").new}

    def _do_set_expression(self, arguments: dict[str, Any]) -> Reply:
        return {"value": self.session.set(f"{arguments['expression']} = {arguments['value']}").new}

    def _do_completions(self, arguments: dict[str, Any]) -> Reply:
        line = str(arguments["text"])[: int(arguments["column"]) - self._base]
        word = line.rpartition(" ")[2]
        return {"targets": [{"label": one.strip(), "text": one, "start": len(line) - len(word), "length": len(word)}
                            for one in completions(self.session, line)]}  # fmt: skip

    def _do_exception_info(self, arguments: dict[str, Any]) -> Reply:
        device, outcome = self.session.device, self.session.outcome
        if outcome == "fault" and device.fault is not None:
            return {"exceptionId": device.fault.kind, "description": str(device.fault.message), "breakMode": "always"}
        if outcome == "hang" and device.hang is not None:
            text = device.hang.text()
            return {"exceptionId": "hang", "description": text.split("\n")[0], "breakMode": "always",
                    "details": {"stackTrace": text}}  # fmt: skip
        numbers = () if self._stop is None else self._stop.breakpoints
        caught = self._stopping.caught(numbers)
        if not caught:
            raise NotFoundError("nothing has gone wrong here")
        where = next(each.where for each in self.session.breakpoints if each.number in numbers)
        return {"exceptionId": caught, "description": where, "breakMode": "always"}

    # --- memory and words --------------------------------------------------------------------------------------------

    def _do_read_memory(self, arguments: dict[str, Any]) -> Reply:
        count = int(arguments["count"])
        if not 0 <= count <= _MOST_BYTES:
            raise UsageError(f"{count} bytes are more than one request reads: {_MOST_BYTES}")
        reference, offset = str(arguments["memoryReference"]), int(arguments.get("offset") or 0)
        address, data = bytes_at(self.session.device, reference, offset, count, self.session.focus()[0])
        return {"address": address, "data": base64.b64encode(data).decode(), "unreadableBytes": count - len(data)}

    def _do_write_memory(self, arguments: dict[str, Any]) -> Reply:
        try:
            data = base64.b64decode(str(arguments["data"]), validate=True)
        except ValueError as error:
            raise UsageError(f"data are not base64 ({error})") from None
        reference, offset = str(arguments["memoryReference"]), int(arguments.get("offset") or 0)
        self.session.editor.write(reference, offset, data)
        return {"bytesWritten": len(data)}

    def _do_disassemble(self, arguments: dict[str, Any]) -> Reply:
        count = int(arguments["instructionCount"])
        if not 0 <= count <= _MOST_WORDS:
            raise UsageError(f"{count} words are more than one request shows: {_MOST_WORDS}")
        core, engine, pc = self._places.word(str(arguments["memoryReference"]), int(arguments.get("offset") or 0))
        first = pc + int(arguments.get("instructionOffset") or 0)
        rows = {row.pc: row for row in self.session.words_from(max(first, 0), count, engine, core)}
        found = []
        for number in range(first, first + count):
            row = rows.get(number)
            item: dict[str, Any] = {"address": self._places.address((core, engine, max(number, 0)))}
            if row is None:
                item |= {"instruction": "", "presentationHint": "invalid"}
            else:
                item["instruction"] = row.text
                source = self.session.program.source(core, engine, number)
                if source is not None and source.file is not None and source.line is not None:
                    item |= {"location": self._places.source(source.file), "line": source.line + self._base - 1}
            found.append(item)
        return {"instructions": found}
