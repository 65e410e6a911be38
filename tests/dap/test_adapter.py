"""The debug adapter, request by request: threads are engines, stops are exact, everything is the session's."""

from __future__ import annotations

import base64
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neurontools.dap.adapter import Adapter
from neurontools.dap.command import BESIDE, LAUNCH, open_launch
from neurontools.dap.messages import Channel, Inbox
from neurontools.debugger import UsageError
from neurontools.nki.launch import _build, trace_kernel
from neurontools.program.configuration import OPTIONS
from tests.dap.client import Client, RefusedError, start
from tests.debugger import calls, unrolled

FILE = Path(unrolled.__file__)
ROOT = FILE.parents[2]


def at(mark: str) -> int:
    """Return the line of the kernel that ends with a comment."""
    lines = FILE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


@pytest.fixture(scope="module")
def neff(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the kernel's file and its inputs beside it."""
    folder = tmp_path_factory.mktemp("dap")
    (folder / "unrolled.neff").write_bytes(
        _build(trace_kernel(unrolled.unrolled, (unrolled.X,)), "unrolled").to_bytes()
    )
    np.savez(folder / "x.npz", x=unrolled.X)
    return folder / "unrolled.neff"


@pytest.fixture
def client() -> Iterator[Client]:
    """Return the client of an adapter in a thread: what a process adds is tried once, with a script."""
    ours, theirs = socket.socketpair()
    adapter = Adapter(Channel(theirs.recv, theirs.sendall), open_launch)
    thread = threading.Thread(target=adapter.run, daemon=True)
    thread.start()
    yield Client(ours.makefile("rb"), ours.makefile("wb"))
    ours.shutdown(socket.SHUT_RDWR)
    thread.join(20)
    assert not thread.is_alive()


@pytest.fixture
def open_client(client: Client, neff: Path) -> Client:
    client.launch(neff, inputs=str(neff.with_name("x.npz")), timing=False, sourcePath=[str(FILE.parent)])
    return client


def frames(client: Client, stop: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.request("stackTrace", threadId=stop["threadId"])["stackFrames"]
    return found


def variables(client: Client, stop: dict[str, Any], scope: str, level: int = 0) -> dict[str, dict[str, Any]]:
    frame = frames(client, stop)[level]
    scopes = {one["name"]: one for one in client.request("scopes", frameId=frame["id"])["scopes"]}
    found = client.request("variables", variablesReference=scopes[scope]["variablesReference"])["variables"]
    return {one["name"]: one for one in found}


def breaks(client: Client, *wanted: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.request(
        "setBreakpoints", source={"path": str(FILE)}, breakpoints=list(wanted)
    )["breakpoints"]
    return found


def test_breakpoints_with_conditions_and_counts(open_client: Client) -> None:
    client = open_client
    rows = breaks(client, {"line": at("ADD"), "condition": "k == 2"}, {"line": at("INSIDE"), "hitCondition": "2"},
                  {"line": at("STORE"), "condition": "nothing == 1"}, {"line": 10**6},
                  {"line": 1, "hitCondition": "%3"})  # fmt: skip
    assert [row["verified"] for row in rows] == [True, True, False, False, False]
    assert rows[1]["line"] == at("ADD") and all(row["message"] for row in rows[2:])
    stop = client.go()
    assert (
        stop["reason"] == "breakpoint" and stop["hitBreakpointIds"] == [rows[1]["id"]] and "k=1" in stop["description"]
    )
    stop = client.go("continue", threadId=stop["threadId"])
    assert set(stop["hitBreakpointIds"]) == {rows[0]["id"], rows[1]["id"]} and "k=2" in stop["description"]
    assert stop["allThreadsStopped"]
    assert breaks(client) == []
    stop = client.go("continue", threadId=stop["threadId"])
    assert stop["reason"] == "end"
    stop = client.go("reverseContinue", threadId=stop["threadId"])
    assert stop["reason"] == "entry"


def test_frames_are_calls_and_turns(open_client: Client) -> None:
    client = open_client
    breaks(client, {"line": at("LOAD"), "condition": "k == 1"})
    stop = client.go()
    inner, outer = frames(client, stop)
    assert (inner["line"], outer["line"]) == (at("LOAD"), at("CALL"))
    assert inner["name"].startswith("load") and "k=1" in outer["name"]
    assert inner["source"]["path"] == str(FILE.resolve())
    assert variables(client, stop, "Locals")["rows"]["value"] == "(128, 8)"
    assert variables(client, stop, "Locals", 1)["k"]["value"] == "1"
    names = {one["name"] for one in client.request("threads")["threads"]}
    assert {"nc0 PE", "nc0 DVE", "nc0 SP"} <= names


def test_tensors_are_trees(open_client: Client) -> None:
    client = open_client
    breaks(client, {"line": at("TWICE"), "condition": "k == 3 and _ == 0"})
    stop = client.go()
    u = variables(client, stop, "Locals")["u"]
    assert u["type"] == "float32[128, 8]" and u["indexedVariables"] == 128 and "SBUF" in u["value"]
    facts = client.request("variables", variablesReference=u["variablesReference"], filter="named")["variables"]
    shown = {one["name"]: one["value"] for one in facts}
    block = unrolled.X[3 * 128 :] + 1
    assert shown["shape"] == "[128, 8]" and float(shown["maximum"]) == block.max() and shown["NaN"] == "0"
    rows = client.request("variables", variablesReference=u["variablesReference"], filter="indexed", start=5, count=2)
    assert [one["name"] for one in rows["variables"]] == ["[5]", "[6]"]
    deeper = client.request("variables", variablesReference=rows["variables"][1]["variablesReference"])["variables"]
    assert [float(one["value"]) for one in deeper] == block[6].tolist()
    assert client.request("evaluate", expression=deeper[2]["evaluateName"])["result"] == f"{block[6, 2]:.9g}"
    data = client.request("readMemory", memoryReference=u["memoryReference"], offset=4, count=8)
    assert struct.unpack("<2f", base64.b64decode(data["data"])) == tuple(block[0, 1:3])
    with pytest.raises(RefusedError, match="moved"):
        client.request("variables", variablesReference=10**6)


def test_steps_forward_and_back(open_client: Client) -> None:
    client = open_client
    breaks(client, {"line": at("TWICE"), "condition": "k == 1 and _ == 0"})
    stop = client.go()
    thread = stop["threadId"]
    seen = []
    for command in ("next", "next", "stepBack", "stepBack"):
        stop = client.go(command, threadId=thread)
        assert stop["threadId"] == thread
        seen.append(frames(client, stop)[0]["line"])
    assert seen == [at("TWICE"), at("ADD"), at("TWICE"), at("TWICE")]
    before = frames(client, stop)[0]["instructionPointerReference"]
    stop = client.go("stepIn", threadId=thread, granularity="instruction")
    assert frames(client, stop)[0]["instructionPointerReference"] != before
    stop = client.go("stepBack", threadId=thread, granularity="instruction")
    assert frames(client, stop)[0]["instructionPointerReference"] == before
    with pytest.raises(RefusedError, match="no function"):
        client.request("stepOut", threadId=thread)


def test_out_of_a_function(open_client: Client) -> None:
    client = open_client
    breaks(client, {"line": at("LOAD"), "condition": "k == 0"})
    stop = client.go()
    stop = client.go("stepOut", threadId=stop["threadId"])
    assert "k=0" not in frames(client, stop)[-1]["name"]


def test_goto_goes_either_way(open_client: Client) -> None:
    client = open_client
    breaks(client, {"line": at("STORE"), "condition": "k == 3"})
    client.go()
    breaks(client)
    target = client.request("gotoTargets", source={"path": str(FILE)}, line=at("INSIDE"))["targets"][0]
    assert target["line"] == at("ADD")
    stop = client.go("goto", threadId=1, targetId=target["id"])
    engines = client.request("evaluate", expression="info engines", context="repl")["result"]
    assert stop["reason"] == "goto" and "DVE" in engines
    with pytest.raises(RefusedError, match="no target"):
        client.request("goto", threadId=1, targetId=99)


def test_words_and_their_breakpoints(open_client: Client) -> None:
    client = open_client
    breaks(client, {"line": at("ADD")})
    stop = client.go()
    here = frames(client, stop)[0]["instructionPointerReference"]
    words = client.request("disassemble", memoryReference=here, instructionOffset=-3, instructionCount=6)[
        "instructions"
    ]
    assert len(words) == 6 and words[3]["address"] == here and words[3]["line"] == at("ADD")
    assert words[0].get("presentationHint") == "invalid", "before the first word"
    breaks(client)
    rows = client.request("setInstructionBreakpoints", breakpoints=[{"instructionReference": words[4]["address"]}])
    assert rows["breakpoints"][0]["verified"]
    stop = client.go("continue", threadId=1)
    assert frames(client, stop)[0]["instructionPointerReference"] == words[4]["address"]
    client.request("setInstructionBreakpoints", breakpoints=[])
    rows = client.request("setFunctionBreakpoints", breakpoints=[{"name": "NOP"}, {"name": "NO_SUCH_WORD"}])
    assert [row["verified"] for row in rows["breakpoints"]] == [True, False]
    assert client.go("continue", threadId=1)["reason"] == "breakpoint"


def test_data_breakpoints(open_client: Client) -> None:
    client = open_client
    info = client.request("dataBreakpointInfo", name="u_2")
    assert info["dataId"] and set(info["accessTypes"]) == {"read", "write", "readWrite"}
    assert client.request("dataBreakpointInfo", name="nothing")["dataId"] is None
    client.request("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"], "accessType": "write"}])
    stop = client.go()
    assert stop["reason"] == "data breakpoint"
    assert client.go("continue", threadId=1)["reason"] == "end"


def test_log_points_go_on(open_client: Client) -> None:
    client = open_client
    breaks(client, {"line": at("ADD"), "logMessage": "turn {k} of {t.shape}, {nothing}"})
    assert client.go()["reason"] == "end"
    logged = [line for line in client.output if line.startswith("turn")]
    assert [line.split()[1] for line in logged] == ["0", "1", "2", "3"] and "(128, 8)" in logged[0]


def test_a_step_goes_on_over_log_points(client: Client, tmp_path: Path) -> None:
    text = Path(calls.__file__).read_text().splitlines()
    call, inside = (
        next(number for number, line in enumerate(text, 1) if mark in line) for mark in ("# CALL", "op0=nl.add")
    )
    (tmp_path / "calls.neff").write_bytes(_build(trace_kernel(calls.calls, (calls.X,)), "calls").to_bytes())
    client.launch(tmp_path / "calls.neff", timing=False, sourcePath=[str(Path(calls.__file__).parent)])
    points = [{"line": call, "condition": "k == 1"}, {"line": inside, "logMessage": "in {k}"}]
    client.request("setBreakpoints", source={"path": calls.__file__}, breakpoints=points)
    stop = client.go()
    client.output.clear()
    stop = client.go("next", threadId=stop["threadId"])
    assert stop["reason"] == "step" and client.output == ["in 1\n"]
    assert "k=2" in frames(client, stop)[-1]["name"]


def test_a_count_of_hits_may_be_exact(open_client: Client) -> None:
    client = open_client
    breaks(client, {"line": at("ADD"), "hitCondition": "== 2"})
    assert "k=1" in client.go()["description"]
    assert client.go("continue", threadId=1)["reason"] == "end"


def test_what_a_failing_command_has_moved_is_told(open_client: Client) -> None:
    client = open_client
    client.request("evaluate", expression="define bad\nstep\nfly\nend", context="repl")
    client.send("evaluate", expression="bad", context="repl")
    answer = client._answers.get(timeout=20)
    assert answer is not None and "no command 'fly'" in answer["body"]["result"]
    client.event("stopped")


def test_a_request_to_stop_is_not_forgotten_before_a_run_begins() -> None:
    ours, theirs = socket.socketpair()
    inbox = Inbox(Channel(theirs.recv, theirs.sendall))
    there = Client(ours.makefile("rb"), ours.makefile("wb"))
    there.send("continue", threadId=1)
    there.send("pause", threadId=1)
    for name, more in (("continue", True), ("pause", False)):
        message = inbox.take()
        assert isinstance(message, dict) and message["command"] == name
        limit = time.monotonic() + 20
        while inbox.interrupts() != more and time.monotonic() < limit:
            time.sleep(0.01)
        assert inbox.interrupts() == more
    ours.shutdown(socket.SHUT_RDWR)
    assert inbox.take() is None


TWO_CORES = """
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def halves(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    t = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[0:128, nl.ds(4 * core, 4)])
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out[0:128, nl.ds(4 * core, 4)], src=t)
    return out

halves[2](np.arange(128 * 8, dtype=np.float32).reshape(128, 8))
"""


def test_locals_are_those_of_the_frames_core(client: Client, tmp_path: Path) -> None:
    (tmp_path / "halves.py").write_text(TWO_CORES)
    client.launch(tmp_path / "halves.py", timing=False, stopOnEntry=True)
    client.go()
    line = next(number for number, text in enumerate(TWO_CORES.splitlines(), 1) if "dst=out" in text)
    client.request("setBreakpoints", source={"path": str(tmp_path / "halves.py")}, breakpoints=[{"line": line}])
    names = {one["id"]: one["name"] for one in client.request("threads")["threads"]}
    seen = []
    for _ in range(2):
        stop = client.go("continue", threadId=1)
        core = int(names[stop["threadId"]][2])
        seen.append(core)
        client.request("evaluate", expression=f"focus nc{1 - core}", context="repl")
        t = variables(client, stop, "Locals")["t"]
        assert f"in nc{core} SBUF" in t["value"]
        row = client.request("variables", variablesReference=t["variablesReference"], filter="indexed", count=1)
        name = row["variables"][0]["evaluateName"]
        assert client.request("evaluate", expression=f"{name}[1]")["result"] == f"{8 * core + 2}"
        whole = variables(client, stop, "Tensors")["t"]["evaluateName"]
        assert (
            client.request("evaluate", expression=f"all({whole}[0] == 2 * x[0, {4 * core}:{4 * core + 4}])")["result"]
            == "True"
        )
    assert sorted(seen) == [0, 1]


def test_children_are_what_was_set(open_client: Client) -> None:
    client = open_client
    breaks(client, {"line": at("TWICE"), "condition": "k == 0 and _ == 0"})
    u = variables(client, client.go(), "Locals")["u"]
    row = client.request("variables", variablesReference=u["variablesReference"], filter="indexed", count=1)[
        "variables"
    ][0]
    client.request("setVariable", variablesReference=row["variablesReference"], name="[3]", value="7.5")
    again = client.request("variables", variablesReference=row["variablesReference"])["variables"]
    assert again[3]["value"] == "7.5"
    with pytest.raises(RefusedError):
        client.request("setVariable", variablesReference=row["variablesReference"], name="[8]", value="7.5")


def test_what_is_set_is_undone_by_going_back(open_client: Client) -> None:
    client = open_client
    breaks(client, {"line": at("TWICE"), "condition": "k == 0 and _ == 0"})
    stop = client.go()
    u = variables(client, stop, "Locals")["u"]
    row = client.request("variables", variablesReference=u["variablesReference"], filter="indexed", count=1)[
        "variables"
    ][0]
    assert (
        client.request("setVariable", variablesReference=row["variablesReference"], name="[3]", value="7.5")["value"]
        == "7.5"
    )
    assert client.request("setExpression", expression="S[100]", value="5")["value"] == "5"
    assert client.request("evaluate", expression="S[100]", format={"hex": True})["result"] == "0x5"
    written = client.request("writeMemory", memoryReference=u["memoryReference"],
                             data=base64.b64encode(struct.pack("<f", 9.0)).decode())  # fmt: skip
    assert written["bytesWritten"] == 4
    assert client.request("evaluate", expression="u[0, 0] + u[0, 3]")["result"] == "16.5"
    client.go("evaluate", expression="reverse-step 3", context="repl")
    assert client.request("evaluate", expression="u[0, 3]")["result"] == f"{unrolled.X[0, 3] + 1:.9g}"


def test_the_console_takes_commands(open_client: Client) -> None:
    client = open_client
    assert "DVE" in client.request("evaluate", expression="info engines", context="repl")["result"]
    client.request("evaluate", expression="define twice\nstep\nstep\nend", context="repl")
    client.go("evaluate", expression="twice", context="repl")
    assert client.request("evaluate", expression="events", context="watch")["result"] == "2"
    found = client.request("completions", text="info regi", column=10)["targets"]
    assert [one["label"] for one in found] == ["registers"]
    with pytest.raises(RefusedError, match="no tensor"):
        client.request("evaluate", expression="flybynight", context="repl")


def test_a_fault_is_an_exception(client: Client) -> None:
    client.launch(ROOT / "examples" / "out_of_bounds.s", sourcePath=[str(ROOT / "examples")])
    stop = client.go()
    assert stop["reason"] == "exception" and stop["text"]
    info = client.request("exceptionInfo", threadId=stop["threadId"])
    assert info["exceptionId"] == "oob" and info["breakMode"] == "always"
    assert frames(client, stop)[0]["source"]["name"] == "out_of_bounds.s"
    assert client.go("stepBack", threadId=stop["threadId"])["reason"] in ("step", "entry")


def test_a_hang_is_an_exception(client: Client) -> None:
    client.launch(ROOT / "examples" / "deadlock.s", stopOnEntry=True)
    assert client.go()["reason"] == "entry"
    stop = client.go("continue", threadId=1)
    assert stop["reason"] == "exception"
    assert client.request("exceptionInfo", threadId=1)["exceptionId"] == "hang"
    client.request("continue", threadId=1)
    assert client.event("exited")["exitCode"] == 5
    client.event("terminated")


def test_nan_by_filter(client: Client, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.full(unrolled.X.shape, np.nan, np.float32))
    (tmp_path / "k.neff").write_bytes(_build(trace_kernel(unrolled.unrolled, (unrolled.X,)), "unrolled").to_bytes())
    client.launch(tmp_path / "k.neff", inputs=str(tmp_path / "x.npz"))
    rows = client.request("setExceptionBreakpoints", filters=["nan"])["breakpoints"]
    assert rows[0]["verified"]
    stop = client.go()
    assert stop["reason"] == "exception" and client.request("exceptionInfo", threadId=1)["exceptionId"] == "nan"


def test_a_run_is_paused(client: Client) -> None:
    client.launch(ROOT / "examples" / "livelock.s", stopOnEntry=True, maxInstructions=0, maxTime=0)
    client.go()
    client.request("evaluate", expression="checks off", context="repl")
    client.send("continue", threadId=1)
    client.send("pause", threadId=1)
    while (event := client._events.get(timeout=60)) is not None and event["event"] != "stopped":
        pass
    assert event is not None and event["body"]["reason"] in ("pause", "exception")


def test_restart_begins_again(open_client: Client) -> None:
    client = open_client
    breaks(client, {"line": at("ADD")})
    client.go()
    client.go("continue", threadId=1)
    assert "k=0" in client.go("restart")["description"]


def test_a_script_without_debugging_runs_to_its_end(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('to the side')\n" + FILE.read_text().replace("from __future__ import annotations\n", "")
                      + "\nimport os\nos.write(1, b'and this')\nunrolled(X)\n")  # fmt: skip
    with start() as process:
        assert process.stdin is not None and process.stdout is not None
        client = Client(process.stdout, process.stdin)
        client.launch(script, noDebug=True)
        client.request("configurationDone")
        assert client.event("exited")["exitCode"] == 0
        client.event("terminated")
        client.request("disconnect")
        assert process.wait(60) == 0, "it ends though its input is open"


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("fly", {}), ("threads", {}), ("launch", {}), ("launch", {"program": 3}), ("launch", {"program": "gone.neff"}),
     ("launch", {"program": "x.neff", "seed": "many"}), ("launch", {"program": "x", "launch": True})],
)  # fmt: skip
def test_bad_requests_are_refused_and_it_goes_on(client: Client, command: str, arguments: dict[str, Any]) -> None:
    client.request("initialize", adapterID="x")
    with pytest.raises(RefusedError):
        client.request(command, **arguments)
    assert client.request("initialize", adapterID="x")["supportsStepBack"]


def test_bad_arguments_are_refused(open_client: Client) -> None:
    for command, arguments in (
        ("stackTrace", {}), ("stackTrace", {"threadId": 999}), ("scopes", {"frameId": "x"}), ("next", {"threadId": 0}),
        ("disassemble", {"memoryReference": "x", "instructionCount": 1}),
        ("disassemble", {"memoryReference": "0x100000000", "instructionCount": 10**9}),
        ("readMemory", {"memoryReference": "0", "count": 1 << 40}),
        ("readMemory", {"memoryReference": "zz", "count": 1}),
        ("writeMemory", {"memoryReference": "0", "data": "?"}), ("evaluate", {"expression": "open('/etc/passwd')"}),
        ("setBreakpoints", {"source": {}}), ("source", {"sourceReference": 77}), ("launch", {"program": "x"}),
        ("setVariable", {"variablesReference": 1, "name": "x", "value": "1"}), ("goto", {"targetId": 4}),
        ("exceptionInfo", {"threadId": 1}), ("gotoTargets", {"source": "k.py", "line": 5}),
        ("gotoTargets", {"source": {"path": ["k.py"]}, "line": 5}), ("setBreakpoints", {"breakpoints": [3]}),
        ("setBreakpoints", {"source": {"path": "k.py"}, "breakpoints": [{"line": "5"}]}),
        ("setFunctionBreakpoints", {"breakpoints": {"name": "PE"}}), ("setExceptionBreakpoints", {"filters": [1]}),
        ("next", {"threadId": True}), ("variables", {"variablesReference": 1 << 60}), ("evaluate", {}),
        ("stackTrace", {"threadId": 1.5}), ("scopes", {"frameId": -(1 << 70)}), ("completions", {"text": None}),
    ):  # fmt: skip
        with pytest.raises(RefusedError):
            open_client.request(command, **arguments)
    assert open_client.request("threads")["threads"] and open_client.quiet()


def test_kinds_of_arguments_are_named(open_client: Client) -> None:
    for command, arguments, said in (
        ("gotoTargets", {"source": "k.py", "line": 5}, "source is an object, not 'k.py'"),
        ("setBreakpoints", {"source": {"path": "k.py"}, "breakpoints": [{"line": "5"}]},
         r"breakpoints\[0\].line is a number, not '5'"),
        ("scopes", {"frameId": 1 << 60}, "frameId is 1152921504606846976; at most 9007199254740992"),
        ("evaluate", {}, "evaluate: the argument 'expression' is missing"),
    ):  # fmt: skip
        with pytest.raises(RefusedError, match=said):
            open_client.request(command, **arguments)
    assert open_client.request("stackTrace", threadId=1.0, startFrame=None)["stackFrames"]


@pytest.mark.parametrize("seed", range(3))
def test_requests_of_chance_get_one_line_each(open_client: Client, seed: int) -> None:
    """Every request, arguments that are often of another kind, before and behind others that moved the program."""
    chance = random.Random(seed)
    values = (0, 1, 3, -1, 1 << 40, 1 << 70, 1.5, True, None, "", "x", "0x4000", "t[0", "[", "S[9999]", "\0\x1b[2J", [],
              {}, [1], {"path": "k.py"}, {"path": 3}, "1/0", "9" * 50)  # fmt: skip
    names = ("threadId", "frameId", "variablesReference", "source", "breakpoints", "line", "name", "value",
             "expression", "memoryReference", "offset", "count", "data", "instructionCount", "targetId", "text",
             "filters", "column", "instructionReference", "condition", "hitCondition", "levels")  # fmt: skip
    # fmt: off
    commands = ("breakpointLocations", "cancel", "completions", "dataBreakpointInfo", "disassemble", "evaluate",
                "exceptionInfo", "fly", "goto", "gotoTargets", "next", "pause", "readMemory", "scopes",
                "setBreakpoints", "setDataBreakpoints", "setExceptionBreakpoints", "setExpression",
                "setFunctionBreakpoints", "setInstructionBreakpoints", "setVariable", "source",
                "stackTrace", "stepBack", "stepIn", "stepOut", "threads", "variables", "writeMemory")
    # fmt: on
    for _ in range(150):
        arguments: dict[str, Any] = {name: chance.choice(values) for name in chance.sample(names, 8)}
        if chance.random() < 0.5:
            arguments["threadId"] = chance.randint(1, 5)
            arguments["breakpoints"] = [{name: chance.choice(values) for name in chance.sample(names, 3)}]
        try:
            open_client.request(chance.choice(commands), **arguments)
        except RefusedError as error:
            assert len(str(error).splitlines()) == 1 and "Traceback" not in str(error)
    assert open_client.request("threads")["threads"]


def test_every_argument_of_a_launch_is_an_option() -> None:
    assert {field for field, _ in LAUNCH.values()} <= set(OPTIONS)
    assert not set(LAUNCH) & set(BESIDE)
    with pytest.raises(UsageError, match="names no program"):
        open_launch({})


def test_a_core_dump_stands_still(client: Client, tmp_path: Path) -> None:
    dump = tmp_path / "x.core"
    made = subprocess.run(
        [sys.executable, "-m", "neurontools", "debug",
         str(ROOT / "examples" / "out_of_bounds.s"), "-c", f"continue; save-core {dump}"],
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    assert dump.exists(), made
    client.launch(dump)
    stop = client.go()
    assert stop["reason"] == "exception"
    assert variables(client, stop, "Engine")["state"]["value"]
    with pytest.raises(RefusedError, match="does not move"):
        client.request("next", threadId=stop["threadId"])
