"""What a file asks of device memory when it is loaded, and how scratchpad memory is handed out.

Sources: runtime.md 3.1, 3.2; figures: `formats.neff.memory`.
"""

from __future__ import annotations

from collections.abc import Mapping

from emulator.errors import InputError
from formats.named_tuple import NamedTuple
from formats.neff import Neff
from formats.neff.memory import Version, model_uses, private_variables, ring_uses, scratchpad_need
from formats.nrt.memory import CONTIGUOUS_PAGE, CONTIGUOUS_SINCE, PAGE_SIZES, USES

__all__ = ["PartPlan", "Scratchpad", "plan_of", "scratchpad_of"]

_MIB = 1 << 20


class Scratchpad(NamedTuple):
    """How shared scratchpad is handed out: in pages of so many bytes, in one region or wherever there is room."""

    contiguous: bool
    page: int
    cite: str = "runtime.md 3.1"

    def pages(self, need: int) -> int:
        """Return the pages that hold so many bytes."""
        return -(-need // self.page)


class PartPlan(NamedTuple):
    """What one subgraph asks of one physical core.

    `takes` is its allocations as (use, name, bytes); `need` the bytes of shared scratchpad, `crossing` the bytes of the
    variables that cross the end of a page by name, which get memory of their own unless pages are contiguous.
    """

    takes: tuple[tuple[str, str, int], ...]
    need: int = 0
    crossing: Mapping[str, int] = {}

    def by_category(self) -> dict[str, int]:
        """Return the bytes of `takes` by category."""
        found: dict[str, int] = {}
        for use, _, nbytes in self.takes:
            key = USES[use].category
            found[key] = found.get(key, 0) + nbytes
        return found


def scratchpad_of(
    generation: str, lnc: int, runtime: Version | None = None, contiguous: bool | None = None, page: int | None = None
) -> Scratchpad:
    """Return how a runtime hands out scratchpad; `contiguous` and `page` are what its variables ask for, if anything.

    One region since runtime 2.33, but for LNC 1 of gen3 and gen4, where asking for it changes nothing. `page` counts
    for pages only: a multiple of 512 MiB below 4 GiB, InputError for anything else.
    """
    possible = (runtime is None or runtime >= CONTIGUOUS_SINCE) and not (lnc == 1 and generation in ("gen3", "gen4"))
    if possible and contiguous is not False:
        return Scratchpad(True, CONTIGUOUS_PAGE)
    size = PAGE_SIZES[0] * _MIB if page is None else page
    if size % _MIB or size // _MIB not in PAGE_SIZES:
        raise InputError(f"a scratchpad page has 512 MiB to 3584 MiB in steps of 512, not {size / _MIB:g} MiB")
    return Scratchpad(False, size)


def plan_of(neff: Neff, scratchpad: Scratchpad, runtime: Version | None = None) -> tuple[PartPlan, ...]:
    """Return what each subgraph of a file asks for."""
    return tuple(_part(neff, index, scratchpad, runtime) for index in range(len(neff.subgraphs)))


def _part(neff: Neff, index: int, scratchpad: Scratchpad, runtime: Version | None) -> PartPlan:
    graph = neff.subgraphs[index]
    takes: list[tuple[str, str, int]] = []
    for use, nbytes in model_uses(graph, neff.target.generation, runtime).items():
        # These two are listed below, variable by variable.
        if use not in ("weight", "scratchpad"):
            takes.append((use, graph.name, nbytes))
    for queue, (use, nbytes) in ring_uses(graph).items():
        takes.append((use, queue, nbytes))
    for variable in graph.variables.values():
        size = max(0, variable.size or 0)
        kind = {"file": "weight", "tmp-buf": "scratchpad", "dge-table": "io"}.get(variable.kind)
        if kind and (size or kind == "io"):
            takes.append((kind, variable.name, 8 if kind == "io" else size))  # of a table, what captures have
    crossing = {} if scratchpad.contiguous else private_variables(graph, scratchpad.page)
    return PartPlan(tuple(takes), scratchpad_need(graph), crossing)
