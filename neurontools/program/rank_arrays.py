"""Arrays of many ranks: a file for each, or one file in which `name@3` is what rank 3 has of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.errors import InputError, of_rank
from neurontools.command.files import need_file
from neurontools.command.output import write_whole
from neurontools.program.arrays import load_arrays, write_arrays
from neurontools.program.configuration import RunConfiguration
from neurontools.program.inputs import given_inputs, program_inputs, random_seed

if TYPE_CHECKING:
    import numpy.typing as npt

    from formats.neff import Neff

__all__ = ["RANK", "inputs_of_ranks", "path_of_rank", "save_ranks"]

RANK = "{rank}"
"""What stands for the number of a rank in the name of a file."""

_OWN = re.compile(r"(.+)@(\d{1,6})")


def path_of_rank(path: Path | str, rank: int) -> Path:
    """Return the file of a rank."""
    return Path(str(path).replace(RANK, str(rank)))


def inputs_of_ranks(
    neffs: Sequence[Neff], configuration: RunConfiguration
) -> tuple[list[dict[str, npt.NDArray[Any]]], tuple[str, ...]]:
    """Return the inputs of every rank as a configuration asks for them, and notes on them.

    `--inputs x-{rank}.npz` is a file for each rank; in one file for all, `name@3` is what rank 3 alone takes, `name`
    what the others do. Random numbers differ from rank to rank. Errors as in `program_inputs`.
    """
    wanted = configuration.inputs
    seed = random_seed(wanted)
    if wanted is None or wanted == "zeros" or seed is not None or RANK in wanted:
        found: list[Arrays] = []
        notes: list[str] = []
        for rank, neff in enumerate(neffs):
            own_configuration = configuration
            if seed is not None:
                own_configuration = replace(configuration, inputs=f"random:{seed * len(neffs) + rank}")
            elif wanted is not None and RANK in wanted:
                own_configuration = replace(configuration, inputs=str(path_of_rank(wanted, rank)))
            with of_rank(rank):
                arrays, remarks = program_inputs(neff, own_configuration)
            found.append(arrays)
            notes += remarks
        return found, tuple(dict.fromkeys(notes))
    common, own = _split(load_arrays(need_file(Path(wanted))), len(neffs), wanted)
    results: list[Arrays] = []
    texts: list[str] = []
    taken = {tensor.name for neff in neffs for tensor in neff.inputs}
    for rank, neff in enumerate(neffs):
        names = {tensor.name for tensor in neff.inputs}
        # What another rank takes is left out here; what none does is refused.
        mine = {name: array for name, array in common.items() if name in names or name not in taken}
        with of_rank(rank):
            arrays, remarks = given_inputs(neff, {**mine, **own.get(rank, {})})
        results.append(arrays)
        texts += remarks
    return results, tuple(dict.fromkeys(texts))


Arrays = dict[str, "npt.NDArray[Any]"]


def _split(arrays: Arrays, ranks: int, where: str) -> tuple[Arrays, dict[int, Arrays]]:
    """Return the arrays that all ranks share, and those of each."""
    common: Arrays = {}
    own: dict[int, Arrays] = {}
    for name, array in arrays.items():
        parts = _OWN.fullmatch(name)
        if parts is None:
            common[name] = array
        elif int(parts[2]) >= ranks:
            raise InputError(f"{where}: {name!r} is for rank {parts[2]}, there are 0 to {ranks - 1}")
        else:
            own.setdefault(int(parts[2]), {})[parts[1]] = array
    return common, own


def save_ranks(path: Path, outputs: Sequence[Mapping[str, npt.NDArray[Any]]]) -> None:
    """Write the outputs of all ranks: to a file each where the path has `{rank}`, else to one, as `name@3`."""
    if RANK in str(path):
        for rank, arrays in enumerate(outputs):
            with write_whole(path_of_rank(path, rank)) as beside:
                write_arrays(beside, arrays)
        return
    with write_whole(path) as beside:
        write_arrays(beside, {f"{name}@{rank}": array for rank, arrays in enumerate(outputs)
                              for name, array in arrays.items()})  # fmt: skip
