"""What device memory is used for, in the words of every tool that shows it: one table, and all views are made of it.

A `Use` is what the runtime notes with each allocation (a capture has one number for each); a `Category` is what people
are shown, as columns of the out-of-memory table. Sources: runtime.md 3.1, 12, 13.3, formats.md 6.1.
"""

from __future__ import annotations

from formats.named_tuple import NamedTuple

__all__ = [
    "BY_KEY", "BY_LABEL", "CATEGORIES", "CONTIGUOUS_PAGE", "CONTIGUOUS_SINCE", "HOST_USES", "MONITOR_KEYS",
    "PAGE_SIZES", "SYSFS_ONLY", "USES", "Category", "Use",
]  # fmt: skip

# Shared scratchpad is handed out in pages of one of these sizes in MiB, the first unless a variable says, or, since
# runtime 2.33, in one region in steps of CONTIGUOUS_PAGE bytes (runtime.md 3.1).
PAGE_SIZES = range(512, 3584 + 1, 512)
CONTIGUOUS_PAGE = 64 << 20
CONTIGUOUS_SINCE = 2, 33


class Category(NamedTuple):
    """One column of the out-of-memory table.

    `heads` are its two lines of heading, `label` its name in lists and in `INFO` lines, `name` in ours.
    `by_model` is whether rows of a NEFF have a number there. `sysfs`, `monitor` and `slot` are the names of
    the driver's counter, of neuron-monitor's key and of the data store's slot.
    """

    key: str
    heads: tuple[str, str]
    label: str
    by_model: bool
    sysfs: str
    monitor: str
    slot: str

    @property
    def name(self) -> str:
        """Return the column's heading as one line."""
        return " ".join(part for part in self.heads if part)


class Use(NamedTuple):
    """One kind of allocation: its name in captures, its category."""

    name: str
    category: str


# fmt: off
CATEGORIES: tuple[Category, ...] = (
    Category("code",              ("Model", "Code"),            "model code",            True,
             "model_code",              "model_code",              "CODE"),
    Category("constants",         ("Model", "Constants"),       "model constants",       True,
             "constants",               "constants",               "CONSTANTS"),
    Category("tensors",           ("", "Tensors"),              "tensors",               False,
             "tensors",                 "tensors",                 "TENSORS"),
    Category("shared_scratchpad", ("Shared", "Scratchpad"),     "shared scratchpad",     False,
             "model_shared_scratchpad", "model_shared_scratchpad", "SCRATCHPAD"),
    Category("scratchpad",        ("", "Scratchpad"),           "scratchpad",            True,
             "nonshared_scratchpad",    "runtime_memory",          "MISC"),
    Category("runtime",           ("", "Runtime"),              "runtime",               True,
             "runtime_memory",          "runtime_memory",          "MISC"),
    Category("rings_io",          ("DMA Rings", "IO"),          "dma rings io",          True,
             "dma_rings",               "runtime_memory",          "MISC"),
    Category("rings_spill",       ("DMA Rings", "Spill"),       "dma rings spill",       True,
             "dma_rings",               "runtime_memory",          "MISC"),
    Category("rings_collectives", ("DMA Rings", "Collectives"), "dma rings collectives", True,
             "dma_rings",               "runtime_memory",          "MISC"),
    Category("rings_runtime",     ("DMA Rings", "Runtime"),     "dma rings runtime",     True,
             "dma_rings",               "runtime_memory",          "MISC"),
    Category("collectives",       ("", "Collectives"),          "collectives",           True,
             "collectives",             "runtime_memory",          "MISC"),
    Category("xt_cc",             ("", "XT CC"),                "xt cc",                 False,
             "collectives",             "runtime_memory",          "MISC"),
    Category("profiler",          ("Profiler", "Buffers"),      "profiler buffers",      False,
             "notifications",           "runtime_memory",          "MISC"),
)
BY_KEY = {one.key: one for one in CATEGORIES}
BY_LABEL = {one.label: one for one in CATEGORIES}

USES: dict[str, Use] = {one.name: one for one in (
    Use("pe",                    "code"),
    Use("act",                   "code"),
    Use("dve",                   "code"),
    Use("sp",                    "code"),
    Use("pool",                  "code"),
    Use("ucode",                 "code"),
    Use("act table",             "code"),
    Use("weight",                "constants"),
    Use("tensor",                "tensors"),
    Use("io",                    "tensors"),
    Use("shared scratchpad",     "shared_scratchpad"),
    Use("scratchpad",            "scratchpad"),
    Use("spill",                 "scratchpad"),
    Use("generic",               "runtime"),
    Use("pool stdio",            "runtime"),
    Use("dma rings io",          "rings_io"),
    Use("dma rings spill",       "rings_spill"),
    Use("dma rings collectives", "rings_collectives"),
    Use("dma rings runtime",     "rings_runtime"),
    Use("collectives",           "collectives"),
    Use("xt cc",                 "xt_cc"),
    Use("profiler buffers",      "profiler"),
)}

# Counters that sysfs has and the runtime's table has not.
SYSFS_ONLY = ("driver_memory", "uncategorized")
# Host memory: the driver's counter (sysfs host_mem/), and neuron-monitor's key for it.
HOST_USES: dict[str, str] = {
    "application_memory": "application_memory",
    "constants":          "constants",
    "dma_buffers":        "dma_buffers",
    "dma_rings":          "application_memory",
    "driver_memory":      "application_memory",
    "notifications":      "application_memory",
    "tensors":            "tensors",
    "uncategorized":      "application_memory",
}
# fmt: on
MONITOR_KEYS = ("constants", "model_code", "model_shared_scratchpad", "runtime_memory", "tensors")
