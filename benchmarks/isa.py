"""How fast words are decoded, printed, assembled, judged and turned into columns. Informational: nothing here fails.

python benchmarks/isa.py [NEFF]      without a file: 60,000 words of the kinds that compiled programs are made of
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from formats import isa
from formats.neuron_core import WORD

KINDS: tuple[tuple[int, isa.Instruction], ...] = (
    (
        56,
        isa.MatMul(
            src=(0x4000, (1, 0, 0), (512, 1, 1)),
            dst=(0x2000800, (1, 0, 0), (512, 1, 1)),
            dtype=7,
            acc_flags=1,
            update_mode=0x13,
            update_index=5,
        ),
    ),
    (14, isa.LoadWeights(src=(0x37CFE, (-1, 0, -32), (32, 1, 4)), dtype=7, wait_mode=5, wait_index=24, wait_value=16)),
    (13, isa.EventSemaphore(wait_mode=5, wait_index=4, wait_value=2, wait2_mode=5, wait2_index=6, wait2_value=8)),
    (
        15,
        isa.PseudoDmaDirect2d(
            src=("variable", 0, 0x4000),
            dst=("table", 1, 0),
            src_dtype=7,
            dst_dtype=7,
            semaphore=24,
            src_pattern=((0x40000, 1), (128, 1)),
            dst_pattern=((4096, 1), (128, 1)),
            src_element_size=1024,
            dst_element_size=1024,
        ),
    ),
    (
        2,
        isa.Cast(
            src=(0x2000000, (1,) * 4, (512, 1, 1, 1)), dst=(0x8000, (1,) * 4, (512, 1, 1, 1)), src_dtype=10, dst_dtype=7
        ),
    ),
)


def made(count: int = 60_000) -> list[bytes]:
    """Return one stream of `count` words, addresses differing as in a real program."""
    words = []
    for number in range(count // 100):
        for share, word in KINDS:
            for turn in range(share):
                raw = bytearray(word.raw)
                raw[18 if word.raw[0] < 0x40 else 20] ^= (number + turn) & 7
                words.append(bytes(raw))
    return [b"".join(words)]


def streams(path: str) -> list[bytes]:
    """Return the streams of every engine and subgraph of a NEFF."""
    from formats.neff import open_neff

    return [stream.data for graph in open_neff(path).subgraphs for stream in graph.streams.values()]


def best(task: Callable[[], Any], times: int = 3) -> float:
    """Return the shortest of some runs, in seconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        task()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    """Print thousands of words a second for each way of reading them."""
    data = streams(sys.argv[1]) if len(sys.argv) > 1 else made()
    total = sum(map(len, data)) // WORD
    texts = [word.asm for stream in data for word in isa.decode_stream(stream)][::10]
    tasks: dict[str, tuple[int, Callable[[], Any]]] = {
        "decode": (total, lambda: [None for d in data for _ in isa.decode_stream(d)]),
        "text": (total, lambda: [word.text for d in data for word in isa.decode_stream(d)]),
        "asm": (total, lambda: [word.asm for d in data for word in isa.decode_stream(d)]),
        "assemble": (len(texts), lambda: [isa.assemble(text) for text in texts]),
        "check": (total // 10, lambda: [isa.check(word) for d in data for word in isa.decode_stream(d)[::10]]),
        "columns_by_class": (total, lambda: [isa.columns_by_class(d) for d in data]),
    }
    isa.columns_by_class(data[0])  # NumPy is imported here, not inside a measurement
    print(f"{total} words in {len(data)} streams")
    for name, (count, task) in tasks.items():
        print(f"{name:18} {count / best(task) / 1e3:10.1f} thousand words/s")


if __name__ == "__main__":
    main()
