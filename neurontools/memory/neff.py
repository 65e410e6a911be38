"""`neurontools mem neff`: what device memory a file takes, category by category."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from formats.named_tuple import NamedTuple
from formats.nrt.memory import CATEGORIES, USES
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile
from neurontools.command.output import report
from neurontools.memory.machine import Contiguous, PageSize, RuntimeVersion, pad_of, runtime_of, scratchpad_text
from neurontools.memory.plot import bar, legend
from neurontools.text.table import bytes_text, count, table

if TYPE_CHECKING:
    from emulator.runtime.ledger_plan import Scratchpad
    from formats.neff import Neff


class CategoryBytes(NamedTuple):
    """One category: bytes on each physical core, together, and how they are known."""

    name: str
    cores: list[int]
    bytes: int
    provenance: str


class Consumer(NamedTuple):
    """One allocation: what for, its name in the file, the physical core, its bytes."""

    use: str
    name: str
    core: int
    bytes: int


class NeffMemory(NamedTuple):
    """The result of `mem neff`."""

    target: str
    lnc: int
    scratchpad: str
    scratchpad_need: Annotated[list[int], "bytes of shared scratchpad that each physical core uses"]
    categories: list[CategoryBytes]
    total: int
    largest: list[Consumer]
    crossing: Annotated[list[Consumer], "scratchpad variables that cross a page, and so have memory of their own"]
    stack_bytes: int


def neff_memory(neff: Neff, pad: Scratchpad, runtime: tuple[int, ...] | None, most: int) -> NeffMemory:
    """Return what a file takes, with its cores' own share, and its largest allocations."""
    from emulator.arch import arch_of  # deferred: start-up
    from emulator.runtime.ledger_plan import plan_of  # deferred: start-up
    from formats.neff.memory import core_uses, device_memory  # deferred: start-up

    known = {row.name: row.provenance for row in device_memory(neff, runtime)}
    consumers: list[Consumer] = []
    crossing: list[Consumer] = []
    needs = []
    for core, plan in enumerate(plan_of(neff, pad, runtime)):
        for use, nbytes in core_uses(neff.target.generation, runtime).items():
            consumers.append(Consumer(use, "every core", core, nbytes))
        consumers += [Consumer(use, name, core, nbytes) for use, name, nbytes in plan.takes if nbytes]
        if plan.need:
            pages = pad.pages(plan.need)
            consumers.append(Consumer("shared scratchpad", count(pages, "page"), core, pages * pad.page))
        crossing += [Consumer("scratchpad", name, core, nbytes) for name, nbytes in plan.crossing.items()]
        needs.append(plan.need)
    consumers += crossing
    for info in (*neff.inputs, *neff.outputs):
        variable = neff.subgraphs[0].variables.get(info.name)
        if variable is not None and variable.size:
            consumers.append(Consumer("tensor", info.name, 0, variable.size))
    rows = []
    for category in CATEGORIES:
        mine = [one for one in consumers if USES[one.use].category == category.key]
        each = [sum(one.bytes for one in mine if one.core == core) for core in range(len(needs))]
        if sum(each):
            seen = known.get(category.name, "inferred")
            seen = "documented" if category.key == "shared_scratchpad" else seen
            rows.append(CategoryBytes(category.name, each, sum(each), seen))
    largest = sorted(consumers, key=lambda one: -one.bytes)[:most]
    stack = arch_of(neff.target).hbm_bytes.whole
    total = sum(row.bytes for row in rows)
    return NeffMemory(neff.target.name, neff.lnc, scratchpad_text(pad), needs, rows, total, largest, crossing, stack)


def view(name: str, found: NeffMemory) -> list[str]:
    """Return the categories, a bar of the stack, and what is largest."""
    values = {one.key: sum(row.bytes for row in found.categories if row.name == one.name) for one in CATEGORIES}
    cores = [f"core {number}" for number in range(len(found.scratchpad_need))] if len(found.scratchpad_need) > 1 else []
    rows = [[row.name, *(row.cores if cores else []), row.bytes, row.provenance] for row in found.categories]
    lines = [f"{name}: {found.target}, LNC {found.lnc}, shared scratchpad in {found.scratchpad}"]
    lines += ["", *table(["category", *cores, "bytes", "known by"], rows)]
    lines.append(f"{bytes_text(found.total)} of a stack of {bytes_text(found.stack_bytes)}, with inputs and outputs")
    lines += [f"  {bar(values, found.total)}", f"  {legend(values)}"]
    rows = [[one.use, one.name, one.core, one.bytes] for one in found.largest]
    lines += ["", *table(["largest", "name", "core", "bytes"], rows)]
    if found.crossing:
        total = bytes_text(sum(one.bytes for one in found.crossing))
        lines.append(
            f"{count(len(found.crossing), 'scratchpad variable')} ({total}) cross a page and get memory of their own; "
            "see `neurontools mem scratchpad`"
        )
    return lines


def mem_neff(
    file: NeffFile,
    runtime: RuntimeVersion = None,
    contiguous: Contiguous = None,
    page_size: PageSize = None,
    most: Annotated[int, typer.Option("--top", metavar="N", min=0, help="How many allocations to list.")] = 8,
    json: Json = False,
) -> None:
    """Show what device memory a NEFF takes, category by category.

    What every core takes before anything is loaded is counted in; so are the file's inputs and outputs, once.
    """
    with report("mem neff", json, file=file, runtime=runtime) as out:
        version = runtime_of(runtime)
        neff = open_neff_file(file)
        pad = pad_of(neff.target.generation, neff.lnc, version, contiguous, page_size)
        found = neff_memory(neff, pad, version, most)
        out.result = found
        out.lines = lambda: view(file.name, found)


app = command_app(mem_neff, result=NeffMemory)
