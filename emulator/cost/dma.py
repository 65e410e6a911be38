"""What a DMA costs: one table of figures per chip, every row with its source. Source: hardware.md 4, 8.2."""

from __future__ import annotations

from functools import cache

from formats.errors import UnsupportedError
from formats.named_tuple import NamedTuple

__all__ = ["FIGURES", "MAKERS", "UNIT", "DmaCosts", "Figure", "dma_costs"]


class Figure(NamedTuple):
    """One number of the DMA model; `targets` are the chips it holds for."""

    name: str
    targets: tuple[str, ...]
    value: float
    unit: str
    provenance: str
    cite: str


_V2, _V3, _V4 = ("trn1", "inf2"), ("trn2",), ("trn3",)
_V23, _V24, _V34, _ALL = _V2 + _V3, _V2 + _V4, _V3 + _V4, _V2 + _V3 + _V4
MAKERS = ("hardware", "software", "prebuilt")  # of descriptors, as `DmaCosts.start_ps` has them
_MEMORY_WORD = 4  # bytes below which a run is `shorter_copy`: 2 and 4 were captured

FIGURES: tuple[Figure, ...] = (
    # Public profiles (formats.md 1.1) give 785-805 ns from the end of a trigger word to a load's first data, 662-670 ns
    # to a store's; with descriptors from load time the documents have 678 from the word's end to the queue.
    Figure("start_read", _V3, 790.0, "ns", "observed", "profiles of formats.md 1.1: 785 to 805 on Sync"),
    Figure("start_read", _V24, 790.0, "ns", "inferred", "trn2's; nothing published here"),
    Figure("start_write", _V3, 665.0, "ns", "observed", "profiles of formats.md 1.1: 662 to 670 on Scalar"),
    Figure("start_write", _V24, 665.0, "ns", "inferred", "trn2's; nothing published here"),
    Figure("start_software", _V3, -60.0, "ns", "observed", "profiles of formats.md 1.1: 721-738, 594-606 on Pool"),
    Figure("start_software", _V24, -60.0, "ns", "inferred", "trn2's; nothing published here"),
    Figure("start_prebuilt", _V3, 720.0, "ns", "observed", "hardware.md 8.2: B-1a, B-1d, from the word's end"),
    Figure("start_prebuilt", _V24, 720.0, "ns", "inferred", "hardware.md 8.2 for trn2"),
    # An engine that was idle needs the memory's latency for its first read; the next ones are asked for ahead.
    Figure("read_fill", _V3, 152.0, "ns", "observed", "hardware.md 8.2: B-1b and B-2c"),
    Figure("read_fill", _V2, 0.0, "ns", "inferred", "hardware.md 8.2: B-7, whose start is trn2's"),
    Figure("read_fill", _V4, 152.0, "ns", "inferred", "hardware.md 8.2: B-1b for trn2"),
    # Where many engines begin to load at once, the memory takes its time until all have what they asked for: bursts of
    # up to 8 KiB an engine show none of it, those of 24 KiB and more all. It is more where nothing was loaded before.
    Figure("ramp_from", _ALL, 8192.0, "bytes", "observed", "captures of formats.md 1.2: 4 and 8 KiB an engine"),
    Figure("ramp_to", _ALL, 24576.0, "bytes", "observed", "captures of formats.md 1.2: 16 to 64 KiB an engine"),
    Figure("ramp", _V3, 200.0, "ns", "observed", "captures of formats.md 1.2: 16 engines x 32 KiB, idle till then"),
    Figure("ramp", _V2, 0.0, "ns", "inferred", "captures of formats.md 1.2: not on trn1"),
    Figure("ramp", _V4, 200.0, "ns", "inferred", "trn2's"),
    Figure("ramp_cold", _V3, 600.0, "ns", "observed", "captures of formats.md 1.2: first loads of a queue"),
    Figure("ramp_cold", _V2, 0.0, "ns", "inferred", "captures of formats.md 1.2: not on trn1"),
    Figure("ramp_cold", _V4, 600.0, "ns", "inferred", "trn2's"),
    Figure("stagger_read", _V3, 15.0, "ns", "observed", "profiles of formats.md 1.1: 16 starts over 225 ns"),
    Figure("stagger_read", _V24, 15.0, "ns", "inferred", "trn2's"),
    # Where descriptors lie in device memory, the first data of 16 engines are through over 360 to 1,000 ns, in any
    # order; later transfers of the queue show none of it.
    Figure("stagger_cold", _V3, 30.0, "ns", "observed", "captures of formats.md 1.2: first packets of loads"),
    Figure("stagger_cold", _V2, 15.0, "ns", "inferred", "captures of formats.md 1.2: 16 starts over 46 ns on trn1"),
    Figure("stagger_cold", _V4, 30.0, "ns", "inferred", "trn2's"),
    Figure("stagger_write", _V3, 10.0, "ns", "observed", "profiles of formats.md 1.1: 16 starts over 150 ns"),
    Figure("stagger_write", _V24, 10.0, "ns", "inferred", "trn2's"),
    # 600 ns per transfer are documented for hardware descriptor generation (4.4), and profiles show triggers 563-606 ns
    # apart; three loads in a row in 4.3 have their last semaphores 779 ns apart, and the curve of 4.2 needs as much.
    Figure("generate", _V3, 779.0, "ns", "observed", "hardware.md 4.2: B-4 at 128, 512 and 2048 bytes"),
    Figure("generate", _V4, 779.0, "ns", "inferred", "hardware.md 4.2 for trn2"),
    Figure("generate", _V2, 582.0, "ns", "inferred", "trn2's software generator"),
    # What an engine has left to move of a queue when its generator of hardware is through with one more transfer, where
    # stores hold it up: 11.1 to 12.4 rows of 4 KiB. Loads alone hold none up, with 100 KiB.
    Figure("generate_ahead", _V3, 49152.0, "bytes", "observed", "captures of formats.md 1.2: baseline_fp32_s1024"),
    Figure("generate_ahead", _V2, 0.0, "bytes", "inferred", "hardware.md 4.4: v2 has no such generator"),
    Figure("generate_ahead", _V4, 49152.0, "bytes", "inferred", "trn2's"),
    Figure("generate_software", _V3, 600.0, "ns", "observed", "profiles of formats.md 1.1: 600 and 612 between loads"),
    Figure("generate_software", _V24, 600.0, "ns", "inferred", "trn2's"),
    Figure("prebuilt", _ALL, 0.0, "ns", "documented", "hardware.md 4.4: no run-time cost"),
    # From start to start of a load's packets behind others, on average: 14.05 ns for 256 bytes, 24.2 for 512, 82.8 for
    # 2048, 164.4 for 4096 (behind eight), in seven profiles whose rows calibrate. Most take 14, 24, 80 and 155; some
    # wait for the memory. Durations shown are 3 ns more, which the next does not wait for. A store alone has 26.8 B/ns.
    Figure("descriptor", _V3, 4.2, "ns", "observed", "profiles of formats.md 1.1: 2,900 packets of loads"),
    Figure("descriptor", _V2, 7.0, "ns", "observed", "hardware.md 8.2: B-5, 7 ns per 4-byte element"),
    Figure("descriptor", _V4, 4.2, "ns", "inferred", "trn2's"),
    # Short runs of device memory: 1,024 descriptors an engine of 18 bytes follow each other every 10.3 us. With device
    # memory on both sides, runs of 4 bytes take 98.5 and 99.4 ns each, runs of 2 take 106.5 and 109.7, over 36,864 of
    # them an engine: what is shorter than a word of memory is read before it is written, it seems.
    Figure("short_run", _ALL, 64.0, "bytes", "ours", "the burst of a memory: no run between 36 and 96 was captured"),
    Figure("short_read", _V3, 10.1, "ns", "observed", "captures of formats.md 1.2: 16,384 x 18 bytes every 10.3 us"),
    Figure("short_read", _V24, 10.1, "ns", "inferred", "trn2's"),
    Figure("short_copy", _V3, 99.0, "ns", "observed", "captures of formats.md 1.2: 16,384 x 4 bytes"),
    Figure("short_copy", _V24, 99.0, "ns", "inferred", "trn2's"),
    Figure("shorter_copy", _V3, 108.1, "ns", "observed", "captures of formats.md 1.2: 16,384 x 2 bytes"),
    Figure("shorter_copy", _V24, 108.1, "ns", "inferred", "trn2's"),
    Figure("signal", _V3, 6.0, "ns", "observed", "profiles of formats.md 1.1: semaphore packets, 4 bytes"),
    Figure("signal", _V24, 6.0, "ns", "inferred", "trn2's"),
    Figure("read_rate", _V3, 25.8, "B/ns", "observed", "profiles of formats.md 1.1: 2,900 packets of loads"),
    Figure("read_rate", _V2, 17.0, "B/ns", "documented", "hardware.md 4.1: bandwidth guide"),
    Figure("read_rate", _V4, 33.0, "B/ns", "documented", "hardware.md 4.1"),
    Figure("write_rate", _V3, 27.2, "B/ns", "documented", "hardware.md 4.1; profiles: 158 ns for 4096 bytes"),
    Figure("write_rate", _V2, 17.0, "B/ns", "documented", "hardware.md 4.1: bandwidth guide"),
    Figure("write_rate", _V4, 38.4, "B/ns", "documented", "hardware.md 4.1"),
    # The tutorial's loads in rows of 256 and 1024 bytes all run at 97 to 104 GB/s on trn1.
    Figure("short_row", _V2, 2048.0, "bytes", "documented", "hardware.md 4.2: 2 KiB minimum"),
    Figure("short_row", _V34, 0.0, "bytes", "observed", "profiles of formats.md 1.1: 256 bytes at full rate"),
    Figure("short_rate", _V2, 6.3, "B/ns", "observed", "hardware.md 8.3: C-1, C-2"),
    Figure("short_rate", _V34, 27.2, "B/ns", "documented", "hardware.md 4.1: as other rows"),
    Figure("hbm_read_rate", _V3, 716.0, "B/ns", "observed", "hardware.md 4.3: one stack, two cores"),
    Figure("hbm_read_rate", _V2, 410.0, "B/ns", "observed", "hardware.md 4.3: one core of trn1"),
    Figure("hbm_read_rate", _V4, 1225.0, "B/ns", "documented", "runtime.md 1.1: 4.9 TB/s over four stacks"),
    Figure("hbm_write_rate", _V3, 716.0, "B/ns", "observed", "hardware.md 4.3: one stack, two cores"),
    Figure("hbm_write_rate", _V2, 410.0, "B/ns", "observed", "hardware.md 4.3: one core of trn1"),
    Figure("hbm_write_rate", _V4, 1225.0, "B/ns", "documented", "runtime.md 1.1: 4.9 TB/s over four stacks"),
    Figure("completion", _V3, 310.0, "ns", "observed", "hardware.md 4.3; profiles: 338 to 412 to the consumer"),
    Figure("completion", _V24, 310.0, "ns", "inferred", "hardware.md 4.3 for trn2"),
    Figure("semaphore_spacing", _V3, 13.4, "ns", "observed", "hardware.md 4.3"),
    Figure("semaphore_spacing", _V24, 13.4, "ns", "inferred", "hardware.md 4.3 for trn2"),
    # A core's semaphores take writes one by one: with many on their way 32 take 330 to 420 ns, on average 380, whatever
    # transfers they are of, and come up to 2 us late.
    Figure("signal_interval", _V3, 11.8, "ns", "observed", "captures of formats.md 1.2: 16 writes every 175 to 215"),
    Figure("signal_interval", _V24, 11.8, "ns", "inferred", "trn2's"),
    Figure("rows_per_engine", _ALL, 8.0, "rows", "documented", "hardware.md 4.1: 128 partitions over 16 engines"),
    Figure("transpose_share", _V34, 0.9, "ratio", "documented", "hardware.md 4.5: at most 90 % of peak"),
    Figure("transpose_share", _V2, 0.5, "ratio", "inferred", "hardware.md 4.5: not on v2; the slow case"),
    Figure("transpose_share_sbuf", _V34, 0.5, "ratio", "documented", "hardware.md 4.5: SBUF to SBUF, at most 50 %"),
    Figure("transpose_share_sbuf", _V2, 0.5, "ratio", "inferred", "hardware.md 4.5: not on v2; the slow case"),
    Figure("compute_share", _V23, 0.5, "ratio", "documented", "hardware.md 4.5: about 50 % before v4"),
    Figure("compute_share", _V4, 1.0, "ratio", "documented", "hardware.md 4.5: read-add-write at full rate"),
)


class DmaCosts(NamedTuple):
    """Costs of one chip; times in picoseconds, rates in picoseconds per byte."""

    start_read_ps: int
    start_write_ps: int
    software_ps: int
    prebuilt_start_ps: int
    fill_ps: int
    ramp_from: int
    ramp_to: int
    ramp_ps: int
    ramp_cold_ps: int
    stagger_read_ps: int
    stagger_cold_ps: int
    stagger_write_ps: int
    generate_ps: int
    generate_ahead: int
    generate_software_ps: int
    prebuilt_ps: int
    descriptor_fixed_ps: int
    signal_ps: int
    short_run: int
    short_read_ps: int
    short_copy_ps: int
    shorter_copy_ps: int
    read_ps_per_byte: float
    write_ps_per_byte: float
    short_row: int
    short_ps_per_byte: float
    hbm_read_ps_per_byte: float
    hbm_write_ps_per_byte: float
    done_ps: int
    spacing_ps: int
    signal_interval_ps: int
    rows_per_engine: int
    transpose_share: float
    transpose_share_sbuf: float
    compute_share: float

    def trigger_ps(self, maker: str = "hardware") -> int:
        """Return how long one transfer keeps the descriptor generator of its queue busy."""
        if maker == "prebuilt":
            return self.prebuilt_ps
        return self.generate_software_ps if maker == "software" else self.generate_ps

    def descriptor_ps(self, nbytes: int, writes_hbm: bool = False) -> int:
        """Return the time of one descriptor of `nbytes` on its engine."""
        return self.data_ps(1, nbytes, writes_hbm)

    def data_ps(
        self, descriptors: int, nbytes: int, writes_hbm: bool, share: float = 1.0, reads_hbm: bool = False
    ) -> int:
        """Return the time one engine needs for its descriptors of a transfer; `share` is the part of the copy rate."""
        rate = self.write_ps_per_byte if writes_hbm else self.read_ps_per_byte
        if nbytes < descriptors * self.short_row:
            rate = self.short_ps_per_byte
        took = descriptors * self.descriptor_fixed_ps + int(nbytes * rate / share)
        if reads_hbm and not writes_hbm:
            return max(took, descriptors * self.short_read_ps)
        if reads_hbm and nbytes < descriptors * self.short_run:
            copy = self.short_copy_ps if nbytes >= descriptors * _MEMORY_WORD else self.shorter_copy_ps
            return max(took, descriptors * copy)
        return took

    def start_ps(self, writes_hbm: bool = False, maker: str = "hardware") -> int:
        """Return the time from the end of the trigger, or of descriptor generation, to the first data.

        `maker` of the descriptors is "hardware", "software" (GpSimd) or "prebuilt" (load time).
        """
        if maker == "prebuilt":
            return self.prebuilt_start_ps
        start = self.start_write_ps if writes_hbm else self.start_read_ps
        return start + self.software_ps if maker == "software" else start

    @property
    def soonest_ps(self) -> int:
        """Return the least time from a trigger to the first data, of any transfer."""
        return min(self.start_ps(writes, maker) for writes in (False, True) for maker in MAKERS)

    def stagger_ps(self, writes_hbm: bool = False, cold: bool = False) -> int:
        """Return how much later each engine starts than the one before it; `cold`: first in rings made at load time."""
        if writes_hbm:
            return self.stagger_write_ps
        return self.stagger_cold_ps if cold else self.stagger_read_ps

    def filling_ps(self, engines: int, nbytes: int, cold: bool = False) -> int:
        """Return how much longer the first packet of a load takes on an engine that was idle.

        `nbytes` is what each of the `engines` loads; `cold` as in `stagger_ps`.
        """
        if engines < 2 or nbytes <= self.ramp_from:
            return self.fill_ps
        ramp = self.ramp_cold_ps if cold else self.ramp_ps
        part = min(nbytes - self.ramp_from, self.ramp_to - self.ramp_from) / (self.ramp_to - self.ramp_from)
        return self.fill_ps + round(ramp * part * min(engines - 1, 15) / 15)

    def completion_ps(self, engines: int) -> int:
        """Return the time from the last byte until the last engine's semaphore write is seen.

        Engines write one after the other; sixteen writes fit into what a single one takes.
        """
        return max(self.done_ps, (engines - 1) * self.spacing_ps)


# Every step takes one picosecond: order without time.
UNIT = DmaCosts(
    1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0.0, 0.0, 0.0, 0, 0, 0, 8,
    1.0, 1.0, 1.0,
)  # fmt: skip


@cache
def dma_costs(target: str) -> DmaCosts:
    """Return the costs of a chip ("trn1", "inf2", "trn2", "trn3").

    Raises UnsupportedError for a chip without figures.
    """
    found = {figure.name: figure.value for figure in FIGURES if target in figure.targets}
    if not found:
        raise UnsupportedError(f"no DMA figures for {target}")

    def ps(name: str) -> int:
        return round(found[name] * 1000)

    return DmaCosts(
        ps("start_read"),
        ps("start_write"),
        ps("start_software"),
        ps("start_prebuilt"),
        ps("read_fill"),
        int(found["ramp_from"]),
        int(found["ramp_to"]),
        ps("ramp"),
        ps("ramp_cold"),
        ps("stagger_read"),
        ps("stagger_cold"),
        ps("stagger_write"),
        ps("generate"),
        int(found["generate_ahead"]),
        ps("generate_software"),
        ps("prebuilt"),
        ps("descriptor"),
        ps("signal"),
        int(found["short_run"]),
        ps("short_read"),
        ps("short_copy"),
        ps("shorter_copy"),
        1000 / found["read_rate"],
        1000 / found["write_rate"],
        int(found["short_row"]),
        1000 / found["short_rate"],
        1000 / found["hbm_read_rate"],
        1000 / found["hbm_write_rate"],
        ps("completion"),
        ps("semaphore_spacing"),
        ps("signal_interval"),
        int(found["rows_per_engine"]),
        found["transpose_share"],
        found["transpose_share_sbuf"],
        found["compute_share"],
    )
