"""Golden programs: a .s of a few words, and in the .exp beside it the state that it must leave, whatever the schedule.

The .exp files are derived by hand; how stands in the comments of the .s. Their language: tests/golden/expected.py.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from emulator.device import Device
from formats import isa
from formats.neff import Neff, open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import Program, parse_program
from tests.golden.expected import KINDS, Statement, check, parse

FOLDER = Path(__file__).parents[1] / "golden" / "insns"
SEEDS = (1, 2, 3)
MAX_STEPS = 2000
# A class without a program of its own, and why.
EXCEPTIONS: dict[type[isa.Instruction], str] = {
    isa.SendReceive: "needs two cores, and the assembler writes one; tests/emulator/dma/test_transfers.py",
}
NAMES = sorted(path.stem for path in FOLDER.glob("*.s"))


@cache
def program_of(name: str) -> tuple[Program, Neff]:
    """Return a parsed program and its NEFF."""
    program = parse_program((FOLDER / f"{name}.s").read_text(), f"{name}.s")
    return program, open_neff(to_neff(program))


def run(neff: Neff, seed: int | None) -> Device:
    """Return a device on which a program came to its end."""
    device = Device(neff.target, 1, seed=seed, max_steps=MAX_STEPS)
    device.load(neff)
    device.run()
    return device


def unnamed(device: Device, program: Program, statements: list[Statement]) -> list[str]:
    """Return where a program wrote on the chip what neither a statement nor one of its loads names."""
    memory = device.cores[0].memory
    planes = {space: memory.written(space) for space in ("SBUF", "PSUM")}  # the device is of no use afterwards
    for statement in statements:
        if statement.form == "memory":
            space, first, last, byte, kind, _, text = statement.parts
            start, size = int(byte, 16), np.dtype(KINDS[kind]).itemsize * len(text.split())
            planes[space.upper()][int(first) : int(last or first) + 1, start : start + size] = False
    for copy in program.copies:
        if copy.target.variable == "SB":
            side = copy.target
            for index in np.ndindex(*side.sizes[1:]):
                place = side.offset + sum(i * step for i, step in zip(index, side.steps[1:], strict=True))
                partition, byte = divmod(place, isa.SBUF_PARTITION_STRIDE)
                planes["SBUF"][partition, byte : byte + side.sizes[0]] = False
    return [
        f"{space} p{partition} {byte:#x}"
        for space, plane in planes.items()
        if plane.any()
        for partition, byte in np.argwhere(plane)[:4]
    ]


def test_every_program_has_its_state_and_every_state_its_program() -> None:
    files = {suffix: {path.stem for path in FOLDER.glob(f"*{suffix}")} for suffix in (".s", ".exp")}
    assert files[".s"] == files[".exp"]
    assert not [path.name for path in FOLDER.iterdir() if path.suffix not in files]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_leaves_the_state_that_it_must(name: str) -> None:
    program, neff = program_of(name)
    statements = parse(FOLDER / f"{name}.exp")
    states = []
    for seed in SEEDS:
        device = run(neff, seed)
        wrong = list(check(device, statements))
        assert not wrong, "\n".join([f"{name}.exp, seed {seed}:", *wrong])
        if seed == SEEDS[0] and device.fault is None and device.hang is None:
            assert not (stray := unnamed(device, program, statements)), f"{name}.exp does not name {stray}"
        core = device.cores[0]
        states.append(
            (
                core.semaphores.values,
                core.events.values,
                [(engine.completed, engine.registers) for engine in core.engines.values()],
                [tensor.tobytes() for tensor in device.outputs().values()],
            )
        )
    if device.fault is None and device.hang is None:
        assert all(state == states[0] for state in states), f"{name}: the state depends on the schedule"


def test_every_class_has_a_program() -> None:
    seen = {
        type(word) for name in NAMES for stream in program_of(name)[1].subgraphs[0].streams.values() for word in stream
    }
    assert {cls.__name__ for cls in isa.CLASSES} - {cls.__name__ for cls in seen | set(EXCEPTIONS)} == set()
    assert not seen & set(EXCEPTIONS), "an exception that is none"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("S[5] = 2", "got 1"),
        ("sbuf p0 0x1000 f32 = 2", "got p0: 1.0"),
        ("words dve = 9", "got 2"),
        ("fault = oob dve pc 0", "no fault"),
        ("hang = deadlock", "no hang"),
        ("fresh sbuf p0 0x1000 4", "written"),
        ("sbuf p0 0x1000 f16 = 2049", "does not hold"),
        ("E[9] = 1", "got 0"),
        ("R[dve,1] = 4", "got 0"),
        ("words dve = 2", "S[5] is 1, which no line says"),
    ],
)
def test_a_state_that_is_another_one_is_told(tmp_path: Path, line: str, message: str) -> None:
    text = """
        .dialect extended
        .engine dve
        MEMSET value=1.0 dst=fp32@0x1000[1,1,1,1][1,1,1,1] count=1 channels=1
        NOP S[5]++@complete cycle=0
    """
    (tmp_path / "x.exp").write_text(line)
    device = run(open_neff(to_neff(parse_program(text, "x.s"))), seed=None)
    assert message in "\n".join(check(device, parse(tmp_path / "x.exp")))


@pytest.mark.parametrize("text", ["S[5] 2", "sbuf p0 5000 f32 = 1", "# nothing", "fault = oob"])
def test_a_line_that_is_no_statement_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.exp").write_text(text)
    with pytest.raises(ValueError, match=r"x\.exp"):
        parse(tmp_path / "x.exp")
