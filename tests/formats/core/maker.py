"""A small core dump made by hand: every kind of note, every kind of segment, no emulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from formats.core import NOTES, CoreWriter
from formats.core import records as r

SBUF, HBM, WORDS = 0x2000000000, 0x100000, 0x4E54 << 48
SOURCE = r.Source("kernel.py", 12, "DVE-3")


def notes() -> list[Any]:
    """Return one note of every kind, with something in each."""
    # fmt: off
    wait = r.WaitState(0, "DVE", 3, "COPY S[6]>=2", "COPY", SOURCE, "semaphore", 6, "S[6]>=2", 2, 1, 900, False,
                       (r.SignalState(0, "PE", "PE", 7, "MATMUL S[6]++", "blocked", 1, None, SOURCE),), 1, 1)
    engine = r.EngineState(0, "DVE", "waiting", 3, 3, 5, 3, "COPY S[6]>=2", "COPY", SOURCE,
                           r.Waiting("semaphore", 0, 6, 5, 2, 900, "S[6]>=2", 1), (r.Flight(2, 2, 800),), (7, 0, 9))
    transfer = r.TransferState(4, "SP", 1, "copy 64 bytes", 64, True, 8, 16, (1, 9, 16), 1, 2, 3, ((0, 1),))
    entry = r.JournalEntry(9, 800, 0, "DVE", 2, "instruction", "COPY",
                           (r.Range("SBUF", 0, 0, 2, 64, 8, ((4, 2),), 2),), (), ((0, "semaphore", 6, 0, 1),))
    return [
        r.DumpNote(level="full", target="trn2", generation="gen3", cores=1, outcome="hang", time_ps=1000),
        r.StatusNote(5, "NRT_TIMEOUT", "nrt_execute"),
        r.FaultNote("oob", "far", 0, "DVE", 3, "COPY", "COPY", SOURCE, "src", "SBUF", (4, 8), "less", "more", 5, "x"),
        r.WaitsNote("deadlock", 1000, (wait,), (((0, "DVE"), (0, "PE")),), ("nc0 SP pc 1",)),
        r.NeffNote("net", "ab" * 16, "cd" * 32, "net.neff", 5000, "2.0", ("lnc",), True, ("sg00",)),
        r.EnginesNote((engine,)),
        r.CountersNote((r.CounterBank(0, (0, 0, 5, 0, 0, 0, 1), (1, 0)),)),
        r.QueuesNote((r.QueueState(0, "qIn", "SP", "data", 0, 16, (8,), 3, 640, 1, (transfer,)),)),
        r.RingsNote((r.RingState(0, 1, 0, "qIn", 65536, 3, 5, 2, (r.Descriptor(4, 1, 2, 64),)),)),
        r.MapNote((
            r.Window("SBUF", 0, "", SBUF, 0x40000, 128, 0x38000, 24, 24, True),
            r.Window("HBM", 0, "", 0, 1 << 34, 1, 1 << 34, 32, 32, True),
            r.Window("instructions", 0, "DVE", WORDS, 320, 1, 320, 320, 128, False),
        )),
        r.TensorsNote(
            (r.TensorState("x", "input", "HBM", None, "float32", (2, 4), HBM, 32),
             r.TensorState("t", "tile", "SBUF", 0, "float32", (2, 2), 64, 16, 0, {"DVE": (1, 3)})),
            (r.Allocation("x", HBM, 32, 32, 32),),
        ),
        r.ProgramNote(
            (r.Stream(0, "DVE", 5, False, ((2, 2, 2, 64, 2),), ((3, "00" * 64),), ((2, 2, 0),), (SOURCE,)),),
            ({"1": "exp"},),
            (r.SourceLine("kernel.py", 12, "nisa.tensor_copy(dst=a, src=b)"),),
        ),
        r.EnvironmentNote("host", "Linux", "3.11", {"numpy": "2.4"}, {"NEURON_RT_NUM_CORES": "1"}, ("run", "x")),
        r.LogNote(("first", "second")),
        r.JournalNote(10, (entry,)),
        r.DeviceNote(0, 1, {"core_count": "8"}, {"stats/status/success/total": "1"}),
        r.FindingsNote((r.FindingState("racecheck", "race", "error", "both write", 0, "DVE", 3, "COPY", SOURCE),)),
    ]
    # fmt: on


def write(path: Path) -> Path:
    """Write the dump and return its path."""
    made = notes()
    assert {type(each) for each in made} | {r.ChecksumsNote} == {kind.record for kind in NOTES.values()}
    with CoreWriter(path) as writer:
        for each in made:
            writer.note(each)
        writer.segment(WORDS + 128, bytes(64) + bytes([3]) * 64, flags=5)
        writer.segment(SBUF + 64, bytes(range(16)), written=b"\xf0\x0f")
        writer.segment(SBUF + 0x40000 + 64, b"abcdefgh")
        writer.segment(HBM, [b"\0" * 16, b"\1" * 16])
    return path
