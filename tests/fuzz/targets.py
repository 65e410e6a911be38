"""What is tried: one function of bytes for each reader, with the seeds that its inputs are made from."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from emulator.device import Device
from formats import isa
from formats.core import open_core
from formats.errors import NeuronError
from formats.hlo import Module, dtype_of, module_bytes, read_hlo
from formats.hlo.compare import same
from formats.hlo.text import parse_module, print_module
from formats.hlo.verify import verify as verify_module
from formats.neff import open_neff
from formats.neff.debuginfo import DebugFile, locate
from formats.nrt.story import read_story
from formats.ntff import open_ntff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.core import extract
from neurontools.debugger import Session, open_core_session
from neurontools.debugger.commands.carry_out import carry_out
from neurontools.debugger.commands.table import COMMANDS
from neurontools.debugger.json_values import plain
from neurontools.hlo_interpreter import evaluate
from neurontools.nki.cache import _read as read_launch
from neurontools.ntff.tracks import FORMATS, write
from neurontools.program.arrays import load_arrays, write_arrays
from neurontools.program.recording import FORMAT, open_recording
from tests.formats.core import maker
from tests.formats.core.test_damage import look, view
from tests.formats.neff import support
from tests.formats.ntff.exercise import read_everything
from tests.fuzz import libnrt
from tests.fuzz.oracles import Broken, need_json, need_printable
from tests.hlo_interpreter.cases import CASES
from tests.nrt import logs

__all__ = ["TARGETS", "Target"]

ROOT = Path(__file__).resolve().parents[2]
_EVENTS = 3_000  # of one execution
_LOOKS = ("info map", "info memory", "info tensors", "info engines", "info queues", "info dma", "info semaphores",
          "print y", "print x", "why", "list", "disassemble", "backtrace", "x 0:64", "when")  # fmt: skip


class Target(NamedTuple):
    """One reader: what takes an input to it, the seeds, and whether inputs are text."""

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]
    text: bool = False


@cache
def _scratch() -> Path:
    """Return a folder of this process for what readers take as files only."""
    folder = tempfile.TemporaryDirectory(prefix="neurontools-fuzz-")
    _kept.append(folder)
    return Path(folder.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


def _file(data: bytes, name: str) -> Path:
    path = _scratch() / name
    path.write_bytes(data)
    return path


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _files(*patterns: str) -> list[bytes]:
    return [path.read_bytes() for pattern in patterns for path in sorted(ROOT.glob(pattern))]


# --- containers ------------------------------------------------------------------------------------------------------


def _neff(data: bytes) -> None:
    support.exercise(data)


def _neff_seeds() -> list[bytes]:
    packed = _files("fixtures/neff/*.neff")
    return [*packed, *map(support.bare, packed)]


def _debug(data: bytes) -> None:
    found = DebugFile(data, "x.dbg")
    need_printable([found.level, found.description, found.parent or "", *found.strings, *found.kernels])
    for entry in found:
        found.find(entry.number if hasattr(entry, "number") else 0)
    for pc in range(-1, min(len(found), 50) + 1):
        locate(found, pc, lambda asm: asm)


def _debug_seeds() -> list[bytes]:
    return [content for data in _files("fixtures/neff/*.neff") for name, content in support.contents(data).items()
            if name.endswith(".dbg")]  # fmt: skip


def _ntff(data: bytes) -> None:
    if read_everything(data) == "read":
        for form in FORMATS if crc32(data) % 8 == 0 else ():
            write(form, open_ntff(data), None, None, _scratch() / "trace")


def _core(data: bytes) -> None:
    core = open_core(data)
    look(core)
    view(core)
    need_printable(core.warnings)
    number = crc32(data)
    if number % 16 == 0:
        with tempfile.TemporaryDirectory(dir=_scratch()) as folder:
            extract.fill(core, Path(folder))
    if number % 16 == 1:
        session = open_core_session(core)
        for text in _LOOKS:
            _command(session, text)
        session.device.release()


def _core_seeds() -> list[bytes]:
    return [maker.write(_scratch() / "made.core").read_bytes(), *_files("fixtures/core/*.core")]


def _npz(data: bytes) -> None:
    for array in load_arrays(_file(data, "in.npz")).values():
        assert array.nbytes >= 0


def _npz_seeds() -> list[bytes]:
    import ml_dtypes

    arrays = {"a": np.arange(12, dtype=np.float32).reshape(3, 4), "b": np.ones(5, ml_dtypes.bfloat16)}
    write_arrays(_scratch() / "seed.npz", arrays)
    found = [(_scratch() / "seed.npz").read_bytes()]
    np.savez_compressed(_scratch() / "seed.npz", x=np.zeros((64, 64)), y=np.asfortranarray(np.eye(3)))
    return [*found, (_scratch() / "seed.npz").read_bytes()]


def _recording(data: bytes) -> None:
    """Open a recording of which the input is the description, or the archive as a whole."""
    if data[:1] == b"{":
        packed = BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name, content in {"recording.json": data, **_recorded()}.items():
                archive.writestr(name, content)
        data = packed.getvalue()
    found = open_recording(_file(data, "x.nrec"))
    need_printable([found.name, *map(str, found.options.values())])


@cache
def _recorded() -> dict[str, bytes]:
    inputs = BytesIO()
    np.savez(inputs, x=np.zeros(64, np.uint8))
    return {"program.neff": _files("fixtures/neff/add_exp.neff")[0], "inputs.npz": inputs.getvalue()}


def _recording_seeds() -> list[bytes]:
    description = {
        "schema": FORMAT, "name": "x", "folders": ["/x"], "inputs": {"x": {"dtype": "float32", "shape": [4, 4]}},
        "options": {"target": "trn2", "seed": 1, "timing": True, "act": "exact", "hang_timeout_ps": 9},
        "end": {"outcome": "finished", "time_ps": 1, "completions": 2, "state": "00"},
    }  # fmt: skip
    texts = [json.dumps(description, indent=1).encode(), json.dumps(description).encode()]
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"recording.json": texts[0], **_recorded()}.items():
            archive.writestr(name, content)
    return [*texts, packed.getvalue()]


def _launch(data: bytes) -> None:
    """Read a launch whose hash is right: the input is what stands behind the first line."""
    label = json.dumps({"neurontools_launch": 1, "sha256": hashlib.sha256(data).hexdigest()}).encode()
    read_launch(str(_file(label + b"\n" + data, "x.launch")))


def _launch_seeds() -> list[bytes]:
    neff = _files("fixtures/neff/add_exp.neff")[0]
    opened = open_neff(neff)
    out = opened.outputs[0]
    tensor = [out.name, out.dtype, out.shape, [1] * len(out.shape), 0]
    head = {"inputs": [[one.name, one.shape] for one in opened.inputs], "written": [],
            "looks": [["assert", out.name, out.shape, None, ["k.py", 3], "x > 0"]],
            "results": {"tuple": [{"tensor": tensor}, {"value": 3}]}}  # fmt: skip
    return [json.dumps(head).encode() + b"\n" + neff]


# --- text ------------------------------------------------------------------------------------------------------------


def _asm(data: bytes) -> None:
    open_neff(to_neff(parse_program(data.decode("utf-8", "replace"), "x.s"))).verify()


def _asm_seeds() -> list[bytes]:
    return _files("examples/*.s", "fixtures/*/*.s")


def _words(data: bytes) -> None:
    """Decode a word in every dialect: it encodes to its bytes again, and so does its text."""
    for generation, dialect in itertools.product(("gen2", "gen3", "gen4"), ("neuron", "extended")):
        word = isa.decode(data, generation, dialect)
        need_printable([word.text, word.asm])
        if word.encode() != data:
            raise Broken(f"{generation} {dialect}: encodes to {word.encode().hex()}")
        with suppress(NeuronError):
            isa.check(word, generation)
        if isa.assemble(word.asm, generation, dialect) != data:
            raise Broken(f"{generation} {dialect}: {word.asm} assembles to other bytes")


def _word_seeds() -> list[bytes]:
    rows = json.loads((ROOT / "tests/formats/isa/words.json").read_text())["words"]
    return [bytes.fromhex(row["hex"]) for row in rows]


def _logs(data: bytes) -> None:
    story = read_story(data.decode("utf-8", "replace").splitlines())
    need_printable(str(value) for value in vars(story).values())


def _log_seeds() -> list[bytes]:
    texts = [value for name, value in vars(logs).items() if name.isupper() and isinstance(value, str)]
    made = [logs.infodump()] if hasattr(logs, "infodump") else []
    return [text.encode() for text in [*texts, *("\n".join(lines) for lines in made)]] or [b"2024-01-01 ERROR x"]


# --- the debugger and the emulator -----------------------------------------------------------------------------------


def _command(session: Session, text: str) -> None:
    answer = carry_out(session, text)
    if answer.error is not None:
        need_printable([str(answer.error)])
        return
    need_printable(answer.lines)
    need_json(plain(answer.value))


def _debugger(data: bytes) -> None:
    session = Session(_program())
    try:
        with _inside(_scratch()):
            for line in data.decode("utf-8", "replace").split("\n")[:8]:
                if line.strip() and not line.strip().startswith("quit"):
                    _command(session, line)
    finally:
        session.device.release()


@cache
def _program() -> Any:
    return open_neff(to_neff(parse_program((ROOT / "examples/race.s").read_text(), "race.s", None)))


def _debugger_seeds() -> list[bytes]:
    lines = ["break dve:1", "watch y", "continue", "step 3", "reverse-step", "print y[0, :4]", "x/4xw 0:0x4000",
             "info map", "info tensors", "goto end", "goto 5", "delete 1", "tbreak time 300ns", "list", "why",
             "set var y", "print a[::-1, None]", "info breakpoints", "condition 1 any(y) > 1",
             "until time 1us"]  # fmt: skip
    help_ = [command.name for command in COMMANDS.values() if command.name != "quit"]
    return [line.encode() for line in (*lines, *help_, "\n".join(lines[:5]), "\n".join(lines[5:12]))]


def _execution(data: bytes) -> None:
    """Run a program for a while, twice: it does the same."""
    neff = open_neff(to_neff(parse_program(data.decode("utf-8", "replace"), "x.s")))
    if _ran(neff) != _ran(neff):
        raise Broken("the same program gave two results")


def _ran(neff: Any) -> tuple[object, ...]:
    device = Device(neff.target, len(neff.subgraphs), seed=1)
    try:
        device.load(neff)
        left = itertools.count()
        outcome = device.run(lambda event: next(left) > _EVENTS)
        for told in (device.fault, device.hang):
            need_printable([] if told is None else str(told).split("\n"))
        return outcome, device.now_ps, device.steps, device.state_hash()
    finally:
        device.release()


def _hlo(data: bytes) -> None:
    _whole_module(read_hlo(data))


def _hlo_text(data: bytes) -> None:
    _whole_module(parse_module(data.decode("utf-8", "replace")))


def _whole_module(module: Module) -> None:
    """Print, write, read again and compare a module; evaluate what keeps the rules and is small."""
    text = print_module(module, most_elements=1000)
    for each in module.instructions():
        module.stack(each)
    need_printable([str(finding) for finding in verify_module(module)][:5])
    again = read_hlo(module_bytes(module))
    if print_module(again, most_elements=1000).count("\n") != text.count("\n"):
        raise Broken("a module has other lines after it was written and read")
    same(module, again)
    heavy = any(each.opcode == "while" or each.shape.nbytes > _HLO_BYTES for each in module.instructions())
    dynamic = any(each.shape.is_dynamic for each in module.instructions())
    if heavy or dynamic or verify_module(module):
        return
    parameters = [each.shape for each in module.entry.parameters]
    if all(shape.is_array for shape in parameters):
        evaluate(module, [np.zeros(shape.dimensions, dtype_of(shape.element_type)) for shape in parameters])


_HLO_BYTES = 1 << 16


def _hlo_texts() -> list[bytes]:
    return [each.text.encode() for each in CASES if "while" not in each.text]


def _hlo_seeds() -> list[bytes]:
    return [module_bytes(parse_module(text.decode())) for text in _hlo_texts()]


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("neff", _neff, _neff_seeds),
        Target("debug-info", _debug, _debug_seeds),
        Target("ntff", _ntff, lambda: _files("fixtures/ntff/*.ntff")),
        Target("core", _core, _core_seeds),
        Target("npz", _npz, _npz_seeds),
        Target("recording", _recording, _recording_seeds),
        Target("launch", _launch, _launch_seeds),
        Target("asm", _asm, _asm_seeds, text=True),
        Target("words", _words, _word_seeds),
        Target("logs", _logs, _log_seeds, text=True),
        Target("debugger", _debugger, _debugger_seeds, text=True),
        Target("execution", _execution, _asm_seeds, text=True),
        Target("hlo", _hlo, _hlo_seeds),
        Target("hlo-text", _hlo_text, _hlo_texts, text=True),
        *(() if libnrt.lacking() else (Target("libnrt", libnrt.run, libnrt.seeds),)),
    )
}
