"""`neurontools mem scratchpad`: what each page size costs models that are loaded on one core together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.named_tuple import NamedTuple
from formats.nrt.memory import CONTIGUOUS_PAGE, PAGE_SIZES
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.text.table import bytes_text, count, table

if TYPE_CHECKING:
    from formats.neff import Neff

_SWEEP = re.compile(r"(\d{1,5})\.\.(\d{1,5})")


class PageCost(NamedTuple):
    """What one way to hand out scratchpad costs all physical cores together."""

    page_mb: int
    contiguous: bool
    pages: int
    shared: int
    private: int
    total: int


class Crossing(NamedTuple):
    """A variable that crosses the end of a page of the default size."""

    file: str
    core: int
    name: str
    offset: int
    bytes: int


class ScratchpadSweep(NamedTuple):
    """The result of `mem scratchpad`; `advised` is the cheapest page size, the smaller of two that cost the same."""

    target: str
    lnc: int
    need: Annotated[list[int], "bytes of shared scratchpad on each physical core: the most that one file needs"]
    costs: list[PageCost]
    advised_mb: int
    contiguous_possible: bool
    crossing: list[Crossing]


def sweep(files: list[tuple[str, Neff]], sizes: range) -> ScratchpadSweep:
    """Return what each page size costs when all files are loaded on one logical core."""
    from emulator.runtime.ledger_plan import scratchpad_of  # deferred: start-up
    from formats.neff.memory import private_variables, scratchpad_need  # deferred: start-up

    first = files[0][1]
    cores = max(len(neff.subgraphs) for _, neff in files)
    graphs = [[neff.subgraphs[core] for _, neff in files if core < len(neff.subgraphs)] for core in range(cores)]
    need = [max(map(scratchpad_need, each), default=0) for each in graphs]
    possible = scratchpad_of(first.target.generation, first.lnc).contiguous
    costs = []
    if possible:
        pages = [-(-one // CONTIGUOUS_PAGE) for one in need]
        shared = sum(pages) * CONTIGUOUS_PAGE
        costs.append(PageCost(CONTIGUOUS_PAGE >> 20, True, sum(pages), shared, 0, shared))
    for size in sizes:
        page = size << 20
        pages = [-(-one // page) for one in need]
        private = sum(sum(private_variables(graph, page).values()) for each in graphs for graph in each)
        shared = sum(pages) * page
        costs.append(PageCost(size, False, sum(pages), shared, private, shared + private))
    crossing = []
    for name, neff in files:
        for core, graph in enumerate(neff.subgraphs):
            for variable, nbytes in private_variables(graph, PAGE_SIZES[0] << 20).items():
                offset = graph.variables[variable].backing_offset or 0
                crossing.append(Crossing(name, core, variable, offset, nbytes))
    advised = min((one for one in costs if not one.contiguous), key=lambda one: (one.total, one.page_mb))
    return ScratchpadSweep(first.target.name, first.lnc, need, costs, advised.page_mb, possible, crossing)


def view(found: ScratchpadSweep) -> list[str]:
    """Return a table with a bar for each page size, and what to set."""
    most = max((one.total for one in found.costs), default=0) or 1
    rows = []
    for one in found.costs:
        private = round(one.private * 30 / most)
        plot = "S" * (round(one.total * 30 / most) - private) + "P" * private
        name = "one region" if one.contiguous else f"{one.page_mb} MB"
        rows.append([name, one.pages, one.shared, one.private, one.total, plot])
    needs = ", ".join(map(bytes_text, found.need))
    lines = [f"{found.target}, LNC {found.lnc}: shared scratchpad of {needs} is used", ""]
    lines += table(["page", "pages", "shared (S)", "private (P)", "bytes", ""], rows)
    if found.contiguous_possible:
        lines.append("one region is the default of runtime 2.33 and later here; page sizes count when it is off")
    lines.append(
        f"of pages, {found.advised_mb} MB costs least: NEURON_SCRATCHPAD_PAGE_SIZE={found.advised_mb}, and the "
        f"compiler's --hbm-scratchpad-page-size={found.advised_mb} (runtime.md 3.1)"
    )
    if found.crossing:
        rows = [[one.file, one.core, one.name, one.offset, one.bytes] for one in found.crossing[:10]]
        lines += ["", f"{count(len(found.crossing), 'variable')} cross a page of 512 MB:"]
        lines += table(["file", "core", "variable", "offset", "bytes"], rows)
    return lines


def mem_scratchpad(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="NEFFs of one core.", show_default=False)],
    sizes: Annotated[str, typer.Option("--sweep", metavar="A..B", help="Page sizes in MB, in steps of 512.")] = (
        "512..3584"
    ),
    json: Json = False,
) -> None:
    """Show what each scratchpad page size costs models that are loaded together.

    Shared scratchpad is the most that one of them needs, in whole pages; a variable that crosses a page gets memory of
    its own.
    """
    with report("mem scratchpad", json, files=files, sweep=sizes) as out:
        match = _SWEEP.fullmatch(sizes.strip())
        low, high = (int(match[1]), int(match[2])) if match else (0, 0)
        if low not in PAGE_SIZES or high not in PAGE_SIZES or low > high:
            raise typer.BadParameter(f"{sizes!r} is not like 512..3584, in steps of 512", param_hint="--sweep")
        opened = [(path.name, open_neff_file(path)) for path in files]
        if len({(neff.target.generation, neff.lnc) for _, neff in opened}) > 1:
            raise typer.BadParameter("the files are for different chips or LNC, so no core can have them all")
        found = sweep(opened, range(low, high + 1, PAGE_SIZES.step))
        out.result = found
        out.lines = lambda: view(found)


app = command_app(mem_scratchpad, result=ScratchpadSweep)
