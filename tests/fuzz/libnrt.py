"""libnrt.so.1 as a target: programs of calls, carried out by a process of its own that may die of them."""

from __future__ import annotations

import atexit
import select
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from formats.errors import UnsupportedError
from neurontools.libnrt.build import build, need_cffi, need_compiler, need_headers
from tests.fuzz.libnrt_child import BY_NAME, NAMES
from tests.fuzz.oracles import Broken

__all__ = ["lacking", "run", "seeds"]

_SECONDS = 60.0


def lacking() -> str:
    """Return why there is no library here, "" where it can be made."""
    try:
        need_cffi()
        need_compiler()
        need_headers()
    except UnsupportedError as error:
        return str(error)
    return ""


@cache
def _library() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="neurontools-fuzz-libnrt-"))
    build(folder)
    return folder / "libnrt.so.1"


class _Child:
    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.fuzz.libnrt_child", str(_library())]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, cwd=Path(__file__).resolve().parents[2])  # fmt: skip
        atexit.register(self.end)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    def tell(self, program: bytes) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(len(program).to_bytes(4, "little") + program)
            self.process.stdin.flush()
        except BrokenPipeError:
            return ""
        ready, _, _ = select.select([self.process.stdout], [], [], _SECONDS)
        if not ready:
            self.end()
            return f"no answer within {_SECONDS:.0f} s"
        return self.process.stdout.readline().decode().strip()


_child: list[_Child] = []


def run(data: bytes) -> None:
    """Carry out a program; Broken where the process dies, hangs, leaves memory in use or meets a bug."""
    if not _child:
        _child.append(_Child())
    said = _child[0].tell(data[:2000])
    if said != "ok":
        child = _child.pop()
        child.process.wait(5) if not said else child.end()
        raise Broken(said or f"the process died with status {child.process.returncode}")


def _program(*calls: tuple[str, bytes]) -> bytes:
    out = bytearray()
    for name, choices in calls:
        out.append(NAMES.index(name))
        out += choices.ljust(len(BY_NAME[name].parameters), b"\0")[: len(BY_NAME[name].parameters)]
    return bytes(out)


def seeds() -> list[bytes]:
    """Return programs that do what programs do, and every function behind one that has made everything."""
    init = ("nrt_init", b"\1\0\0")
    made = (
        init,
        ("nrt_load", b"\0\0\1\1\0"), ("nrt_tensor_allocate", b"\0\0\5\2\1"), ("nrt_tensor_allocate", b"\0\0\5\3\2"),
        ("nrt_allocate_tensor_set", b"\3"), ("nrt_allocate_tensor_set", b"\4"), ("nrt_tensor_write", b"\1\3\0\5"),
        ("nrt_add_tensor_to_tensor_set", b"\1\2\1"), ("nrt_add_tensor_to_tensor_set", b"\0\3\0"),
        ("nrt_sys_trace_config_allocate", b"\5"), ("nrt_inspect_config_allocate", b"\6"),
        ("nrt_profile_continuous_options_allocate", b"\7"), ("nrt_sys_trace_fetch_options_allocate", b"\10"),
        ("nrta_error_tracker_create", b"\0\11"), ("nrta_cc_prepare", b"\1\1\1\0\0\1\12"),
    )  # fmt: skip
    execute = ("nrt_execute", b"\0\1\0")
    schedule = ("nrta_execute_schedule", b"\0\1\0\0\xff\0")
    drain = ("nrt_async_drain_queued_execs", b"\0")
    gone = (("nrt_unload", b"\0"), execute, schedule, ("nrt_tensor_free", b"\1"), ("nrt_tensor_free", b"\1"), execute)
    profile = (("nrt_profile_start", b"\0\7"), execute, ("nrt_profile_stop", b"\7"))
    inspect = (("nrt_inspect_config_set_enable_inspect", b"\0\1"), ("nrt_inspect_begin_with_options", b"\0"), execute,
               ("nrt_inspect_stop", b""))  # fmt: skip
    trace = (
        ("nrt_sys_trace_start", b"\0"),
        execute,
        ("nrt_sys_trace_fetch_events", b"\0\0\0"),
        ("nrt_sys_trace_stop", b""),
    )
    read = ("nrt_tensor_read", b"\0\0\0\5")
    programs = [
        (*made, execute, schedule, drain, read, *gone), (*made, *profile, ("nrt_close", b"")),
        (*made, *inspect, *trace), (init, *made, ("nrt_close", b""), *made, schedule, ("nrt_close", b""), execute),
        *((*made, (name, b""), execute) for name in NAMES),
    ]  # fmt: skip
    return [_program(*each) for each in programs]
