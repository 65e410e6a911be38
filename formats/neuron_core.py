"""What a NeuronCore is made of, in numbers that encodings, files, loader, emulator and builder share.

Each stands here and nowhere else (`tests/test_one_home.py`). Unit and source for each chip: `emulator.arch`.
"""

from __future__ import annotations

__all__ = [
    "DESCRIPTOR_LIMIT", "DMA_ENGINES", "DMA_RINGS", "GENERATIONS", "MOVING_COLUMNS", "PARTITIONS", "PSUM_BANKS",
    "PSUM_BANK_BYTES", "PSUM_BASE", "PSUM_BYTES", "PSUM_FP32", "PSUM_PARTITION_STRIDE", "QUADRANT", "SBUF_BYTES",
    "SBUF_PARTITION_STRIDE", "SBUF_TAKEN", "SYNC_COUNT", "WORD",
    "start_partitions",
]  # fmt: skip

GENERATIONS = ("gen2", "gen3", "gen4")  # those whose words are known; gen1 has an instruction set of its own
WORD = 64  # bytes; longer words of extensions are a multiple of it (isa.md 1)

# Lanes of every engine, partitions of both memories, rows and columns of the Tensor engine (hardware.md 2.1, 3.3).
PARTITIONS = 128
# Partitions that engines address as one group, and the lanes that a shuffle stays within (hardware.md 2.3).
QUADRANT = 32
# Bytes of each partition (hardware.md 2.1).
SBUF_BYTES = {"gen2": 192 << 10, "gen3": 224 << 10, "gen4": 256 << 10}
PSUM_BYTES = 16 << 10
PSUM_BANK_BYTES = 2 << 10
PSUM_BANKS = PSUM_BYTES // PSUM_BANK_BYTES
PSUM_FP32 = PSUM_BANK_BYTES // 4  # elements of a bank: sums are fp32
# Bytes of each partition of SBUF that programs leave alone, at its start and at its end. No engine word of a public
# file touches the first, and the manual allocator's guide reserves as many (hardware.md 2.1); the last are
# `runtime_statebuffer_reservation` of gen3 (formats.md 3.5). gen4 keeps both by analogy.
SBUF_TAKEN = {"gen2": (16 << 10, 0), "gen3": (16 << 10, 8), "gen4": (16 << 10, 8)}
# Moving columns of one matmul whose result is fp32: a bank, on gen4 all of them (hardware.md 2.1).
MOVING_COLUMNS = {"gen2": PSUM_FP32, "gen3": PSUM_FP32, "gen4": PSUM_FP32 * PSUM_BANKS}

# Where both memories stand in the addresses of words, and what lies between partitions (isa.md 4). The SBUF stride is
# observed in DMA words, the PSUM stride is ours: no public word starts elsewhere than in partition 0, so nothing
# published contradicts or confirms it.
SBUF_PARTITION_STRIDE = 0x40000
PSUM_BASE = 0x2000000
PSUM_PARTITION_STRIDE = 0x4000

SYNC_COUNT = 256  # semaphores of a core, and as many events (formats.md 7.1)
# DMA engines of a core, and rings of each; a queue has at most one ring on each engine (hardware.md 4.1).
DMA_ENGINES = 16
DMA_RINGS = 16
DESCRIPTOR_LIMIT = 1 << 16  # bytes that one descriptor moves at most (formats.md 8.1)


def start_partitions(count: int) -> tuple[int, ...]:
    """Return the partitions from which an engine may access so many (hardware.md 2.3)."""
    return (0,) if count > 64 else (0, 64) if count > QUADRANT else (0, 32, 64, 96)
