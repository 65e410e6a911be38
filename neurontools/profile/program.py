"""What a profile is made of: a NEFF, a .s program, or a kernel that a script launches, with its inputs."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from formats.errors import NotFoundError
from neurontools.files import need_file, read_text

if TYPE_CHECKING:
    from formats.neff import Neff

__all__ = ["Program", "Request", "open_program"]


class Request(NamedTuple):
    """The arguments that say what to profile; `launch` is the number of a script's launch, from 1."""

    file: Path
    arguments: list[str]
    target: str | None = None
    lnc: int | None = None
    inputs: Path | None = None
    nki: str = "auto"
    launch: int = 1
    as_json: bool = False


class Program(NamedTuple):
    """A file to run and its inputs; `made_up` tells that the inputs are zeros because none were given."""

    name: str
    neff: Neff
    inputs: dict[str, Any]
    made_up: bool = False


class _Captured(BaseException):
    """Carries a launch out of a script; no Exception, so that the script's own handlers let it pass."""

    def __init__(self, kernel: str, neff: bytes, inputs: dict[str, Any]) -> None:
        self.kernel, self.neff, self.inputs = kernel, neff, inputs
        super().__init__(kernel)


def open_program(wanted: Request) -> Program:
    """Return the program that a request names.

    Raises typer.Exit with a script's own status where it fails before the launch, NotFoundError where it launches less
    often than that; a NEFF without inputs gets zeros.
    """
    from formats.neff import open_neff
    from neurontools.running import check_target

    if wanted.file.suffix == ".py":
        if wanted.inputs is not None:
            raise typer.BadParameter("a script makes its own inputs; --inputs is for a NEFF", param_hint="--inputs")
        captured = _capture(wanted)
        return Program(captured.kernel, open_neff(captured.neff), captured.inputs)
    if wanted.arguments:
        raise typer.BadParameter("only a script takes arguments", param_hint="ARGS")
    data: Any = need_file(wanted.file)
    if wanted.file.suffix == ".s":
        from neurontools.assemble_neff import to_neff
        from neurontools.assembler import parse_program

        data = to_neff(parse_program(read_text(wanted.file), str(wanted.file), wanted.target))
    neff = open_neff(data)
    check_target(wanted, neff)
    if wanted.inputs is not None:
        from neurontools.arrays import load_arrays

        return Program(wanted.file.name, neff, load_arrays(need_file(wanted.inputs)))
    return Program(wanted.file.name, neff, _zeros(neff), bool(neff.inputs))


def _zeros(neff: Neff) -> dict[str, Any]:
    import numpy as np

    from emulator.dtypes import numpy_dtype
    from formats.dtypes import Dtype

    return {each.name: np.zeros(each.shape, numpy_dtype(Dtype.from_numpy_name(each.dtype))) for each in neff.inputs}


def _capture(wanted: Request) -> _Captured:
    """Run a script up to the launch."""
    from formats.targets import resolve_target
    from neurontools.nki import install, launch
    from neurontools.run_options import RunOptions, using
    from neurontools.running import environment
    from neurontools.script import run_script

    left = wanted.launch

    def take(kernel: str, neff: bytes, inputs: dict[str, Any]) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise _Captured(kernel, neff, {name: array.copy() for name, array in inputs.items()})

    override = {} if wanted.target is None else {"NEURON_PLATFORM_TARGET_OVERRIDE": resolve_target(wanted.target).name}
    if wanted.nki != "installed":
        install(override=wanted.nki == "neurontools")
    stdout = contextlib.redirect_stdout(sys.stderr) if wanted.as_json else contextlib.nullcontext()
    before, launch.launch_hook = launch.launch_hook, take
    try:
        with using(RunOptions(timing=False, lnc=wanted.lnc)), environment(override), stdout:
            status = run_script(wanted.file, wanted.arguments)
    except _Captured as captured:
        return captured
    finally:
        launch.launch_hook = before
    if status:
        raise typer.Exit(status)
    made = wanted.launch - left
    raise NotFoundError(f"{wanted.file}: the script launched {made or 'no'} kernel{'s' * (made != 1)}"
                        + (f", not {wanted.launch}" if made else ""))
