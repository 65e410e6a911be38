"""What `neurontools debug` opens: a NEFF, a .s program, or the first kernel that a script launches."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import typer

from formats.errors import NotFoundError
from neurontools.files import need_file, read_text
from neurontools.recording import is_recording
from neurontools.script import run_script

if TYPE_CHECKING:
    from emulator.session import Session

__all__ = ["Request", "open_session"]


class Request(NamedTuple):
    """The arguments of one `neurontools debug` that say what to open."""

    file: Path
    arguments: list[str]
    inputs: Path | None = None
    target: str | None = None
    lnc: int | None = None
    seed: int | None = None
    timing: bool = True
    nki: str = "auto"
    as_json: bool = False
    journal: int = 500  # megabytes
    checks: tuple[str, ...] = ()
    hang_timeout_ps: int | None = None
    act: str = "exact"


class _Captured(BaseException):
    """Carries the first launch out of a script; no Exception, so that the script's own handlers let it pass."""

    def __init__(self, kernel: str, neff: bytes, inputs: dict[str, Any]) -> None:
        self.kernel, self.neff, self.inputs = kernel, neff, inputs
        super().__init__(kernel)


def open_session(wanted: Request) -> Session:
    """Return a session at the beginning of what the request names.

    Raises typer.Exit with the script's own status where a script fails before its first launch, NotFoundError where it
    launches nothing.
    """
    if _is_elf(wanted.file):
        return _open_core(wanted)
    if is_recording(wanted.file):
        return _open_recording(wanted)
    if wanted.file.suffix == ".py":
        if wanted.inputs is not None:
            raise typer.BadParameter("a script makes its own inputs; --inputs is for a NEFF", param_hint="--inputs")
        captured = _capture(wanted)
        data, values, target = captured.neff, captured.inputs, None
    else:
        if wanted.arguments:
            raise typer.BadParameter("only a script takes arguments", param_hint="ARGS")
        data, values, target = _program(wanted), _inputs(wanted.inputs), wanted.target

    from emulator.session import Session
    from emulator.session.spans import record
    from formats.neff import open_neff

    neff = open_neff(data)
    if wanted.lnc is not None and wanted.lnc != len(neff.subgraphs):
        raise typer.BadParameter(f"{wanted.file.name} was built for LNC {len(neff.subgraphs)}", param_hint="--lnc")
    if target is not None:
        from formats.targets import resolve_target

        if resolve_target(target).generation != neff.target.generation:
            raise typer.BadParameter(
                f"{wanted.file.name} is for {neff.target.name}, not {target}", param_hint="--target"
            )
    budget = wanted.journal * 1_000_000
    session = Session(
        neff, values, target=target, seed=wanted.seed, timing=wanted.timing, journal_bytes=budget,
        hang_timeout_ps=wanted.hang_timeout_ps, act=wanted.act,
    )  # fmt: skip
    if wanted.checks:
        session.enable_checks(*wanted.checks)
    session.folders.append(wanted.file.parent)
    record(session)
    return session


def _is_elf(file: Path) -> bool:
    """Tell whether a file is an ELF file: of those only core dumps can be opened."""
    try:
        with file.open("rb") as stream:
            return stream.read(4) == b"\x7fELF"
    except OSError:
        return False


def _open_recording(wanted: Request) -> Session:
    """Return a session at the end of a recorded run."""
    given = {"--inputs": wanted.inputs, "--target": wanted.target, "--lnc": wanted.lnc, "--seed": wanted.seed,
             "ARGS": wanted.arguments or None}  # fmt: skip
    for hint, value in given.items():
        if value is not None:
            raise typer.BadParameter("a recording brings its own", param_hint=hint)
    from neurontools.recording import open_recording, replay

    session = replay(open_recording(wanted.file), wanted.journal * 1_000_000)
    if wanted.checks:
        session.enable_checks(*wanted.checks)
    return session


def _open_core(wanted: Request) -> Session:
    """Return a session that stands where a core dump was taken."""
    given = {"--inputs": wanted.inputs, "--target": wanted.target, "--lnc": wanted.lnc, "--seed": wanted.seed,
             "ARGS": wanted.arguments or None}  # fmt: skip
    for hint, value in given.items():
        if value is not None:
            raise typer.BadParameter("a core dump is one moment of a run that was", param_hint=hint)
    from emulator.session import open_core_session

    return open_core_session(str(wanted.file))


def _program(wanted: Request) -> Any:
    if wanted.file.suffix != ".s":
        return need_file(wanted.file)
    from neurontools.assemble_neff import to_neff
    from neurontools.assembler import parse_program

    return to_neff(parse_program(read_text(wanted.file), str(wanted.file), wanted.target))


def _inputs(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    from neurontools.arrays import load_arrays

    return load_arrays(need_file(path))


def _capture(wanted: Request) -> _Captured:
    """Run a script up to its first launch."""
    from formats.targets import resolve_target
    from neurontools.nki import install, launch
    from neurontools.run_options import RunOptions, using
    from neurontools.running import environment

    def take(kernel: str, neff: bytes, inputs: dict[str, Any]) -> NoReturn:
        raise _Captured(kernel, neff, {name: array.copy() for name, array in inputs.items()})

    override = {} if wanted.target is None else {"NEURON_PLATFORM_TARGET_OVERRIDE": resolve_target(wanted.target).name}
    if wanted.nki != "installed":
        install(override=wanted.nki == "neurontools")
    options = RunOptions(seed=wanted.seed, timing=wanted.timing, lnc=wanted.lnc)
    stdout = contextlib.redirect_stdout(sys.stderr) if wanted.as_json else contextlib.nullcontext()
    before, launch.launch_hook = launch.launch_hook, take
    try:
        with using(options), environment(override), stdout:
            status = run_script(wanted.file, wanted.arguments)
    except _Captured as captured:
        return captured
    finally:
        launch.launch_hook = before
    if status:
        raise typer.Exit(status)
    raise NotFoundError(f"{wanted.file}: the script launched no kernel")
