"""`neurontools cc run`: execute a collective on emulated ranks, with data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.cc.asking import (
    Algo,
    DataType,
    GroupsFile,
    InstanceOption,
    LncOption,
    Nodes,
    OperationName,
    Pairs,
    Ranks,
    Reduce,
    Size,
    ThresholdsFile,
    ask,
)  # fmt: skip
from neurontools.cc.running import Ran, executed, ran_lines, ran_of
from neurontools.cc.variable_sizes import MetadataFile
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, Seed
from neurontools.command.output import report, write_whole

FILLS = ("random", "ones", "ramp")


def fill_of(text: str) -> str:
    """Return the kind of data that a text names."""
    if text not in FILLS:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(FILLS)}")
    return text


def run(
    operation: OperationName,
    ranks: Ranks = None,
    size: Size = 1 << 20,
    instance: InstanceOption = "trn2.48xlarge",
    nodes: Nodes = 1,
    lnc: LncOption = None,
    algo: Algo = "auto",
    dtype: DataType = "fp32",
    reduce: Reduce = "add",
    groups: GroupsFile = None,
    pairs: Pairs = None,
    metadata: MetadataFile = None,
    thresholds: ThresholdsFile = None,
    fill: Annotated[
        str, typer.Option("--inputs", metavar="KIND", callback=fill_of, help="random, ones or ramp.")
    ] = "random",
    no_data: Annotated[bool, typer.Option("--no-data", help="Execute for time and counters only.")] = False,
    outputs: Annotated[
        Path | None, typer.Option("--outputs", metavar="FILE", help="Write every rank's output to a .npz file.")
    ] = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Execute a collective on emulated ranks, with data.

    CC-cores walk through the step lists over links, DMA and memory queues, receive counts and credits.  Every seed
    gives the same bits; it changes the random inputs and the order of events of one time.
    """
    with report("cc run", json, operation=operation, ranks=ranks, size=size, instance=instance, nodes=nodes,
                algo=algo) as out:  # fmt: skip
        asked = ask(operation, size, instance=instance, nodes=nodes, lnc=lnc, ranks=ranks, algo=algo, dtype=dtype,
                    reduce=reduce, groups=groups, pairs=pairs, thresholds=thresholds, metadata=metadata)  # fmt: skip
        outcome, _ = executed(asked, fill, seed, data=not no_data)
        if outputs is not None:
            import numpy as np

            from neurontools.program.arrays import write_members  # deferred: start-up

            # NumPy's files cannot name bfloat16 and its like: their bytes are kept.
            arrays = {f"rank{rank}": array if array.dtype.kind in "iuf" else array.view(np.uint8)
                      for rank, array in outcome.outputs.items()}  # fmt: skip
            with write_whole(outputs) as beside, beside.open("wb") as file:
                write_members(file, arrays)
        out.result = found = ran_of(asked, outcome)
        out.lines = lambda: ran_lines(found)
        if found.hangs:
            out.status = ExitStatus.FAULT


app = command_app(run, result=Ran)
