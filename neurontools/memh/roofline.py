"""`neurontools memh roofline`: what bounds a core, by operations per byte of HBM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report


class Point(NamedTuple):
    """A program on the roofline."""

    flops: float
    bytes: float
    intensity: Annotated[float, "operations per byte"]
    bound: Annotated[str, "memory or compute"]
    best_us: Annotated[float, "least time that the bound allows"]
    best_tflops: float


class Roofline(NamedTuple):
    """The result of `memh roofline`."""

    chip: str
    dtype: str
    cores: Annotated[int, "physical cores together"]
    peak_tflops: float
    hbm_gb_per_s: float
    ridge: Annotated[float, "operations per byte from which compute is the bound"]
    point: Point | None


def roofline_of(chip: str, dtype: str, cores: int, flops: float | None, size: float | None) -> Roofline:
    """Return the roofline of some cores, and a program on it."""
    from emulator.machine.chips import chip_of  # deferred: start-up
    from emulator.machine.hierarchy import roof  # deferred: start-up

    if dtype not in ("bf16", "fp32", "fp8"):
        raise typer.BadParameter(f"{dtype!r} is none of bf16, fp32, fp8", param_hint="--dtype")
    if (flops is None) != (size is None):
        raise typer.BadParameter("--flops and --bytes go together")
    most = chip_of(chip).cores.whole
    if not 1 <= cores <= most:
        raise typer.BadParameter(f"{chip} has 1 to {most} cores", param_hint="--cores")
    one = roof(chip, dtype)
    point = None
    if flops is not None and size is not None:
        intensity = flops / size
        best = one.bound(intensity) * cores
        point = Point(flops, size, intensity, "memory" if intensity < one.ridge else "compute", flops / best * 1e6,
                      best / 1e12)  # fmt: skip
    return Roofline(chip, dtype, cores, one.flops.value * cores / 1e12, one.bandwidth.value * cores / 1e9, one.ridge,
                    point)  # fmt: skip


def view(found: Roofline) -> Iterator[str]:
    """Yield the text for people."""
    many = "one core" if found.cores == 1 else f"{found.cores} cores"
    peaks = f"{found.peak_tflops:,.1f} TFLOP/s, {found.hbm_gb_per_s:,.1f} GB/s of HBM"
    meet = f"they meet at {found.ridge:,.1f} FLOP a byte"
    yield f"{found.chip}, {many}, {found.dtype}: {peaks}; {meet}  [machine.md 2]"
    for intensity in (0.25, 1, 4, 16, 64, 256, 1024, 4096):
        reached = min(found.peak_tflops, intensity * found.hbm_gb_per_s / 1000)
        bar = "#" * max(1, round(40 * reached / found.peak_tflops))
        yield f"{intensity:>8,g} FLOP/byte  {reached:>8,.2f} TFLOP/s  {bar}"
    if found.point is not None:
        one = found.point
        yield (f"here: {one.intensity:,.2f} FLOP a byte: bound by {one.bound}, at best {one.best_us:,.2f} us and "
               f"{one.best_tflops:,.2f} TFLOP/s")  # fmt: skip


def roofline(
    chip: Annotated[str, typer.Argument(metavar="CHIP", help="trn1, inf2, trn2 or trn3.")] = "trn2",
    dtype: Annotated[str, typer.Option("--dtype", "-d", metavar="TYPE", help="bf16, fp32 or fp8.")] = "bf16",
    cores: Annotated[int, typer.Option("--cores", metavar="N", min=1, help="Physical cores.")] = 1,
    flops: Annotated[float | None, typer.Option("--flops", metavar="N", min=1, help="Operations of a program.")] = None,
    size: Annotated[float | None, typer.Option("--bytes", metavar="N", min=1, help="Bytes of HBM it moves.")] = None,
    json: Json = False,
) -> None:
    """Show what bounds a core: operations, or bytes of HBM.

    With --flops and --bytes the program of these figures is placed on the line; `profile run` measures them.
    """
    with report("memh roofline", json, chip=chip, dtype=dtype, cores=cores) as out:
        out.result = found = roofline_of(chip, dtype, cores, flops, size)
        out.lines = lambda: view(found)


app = command_app(roofline, result=Roofline)
