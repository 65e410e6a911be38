"""What `neurontools run` does with a script, a .s program or a NEFF, once its arguments are known."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from formats.errors import FormatError
from neurontools.dump.wanted import dump_observers
from neurontools.exits import ExitStatus
from neurontools.files import need_file, read_text
from neurontools.output import Report, note, write_whole
from neurontools.script import run_script

if TYPE_CHECKING:
    from neurontools.nki.errors import KernelFaultError
    from neurontools.run_options import Launch

__all__ = ["Request", "environment", "outcome", "run_file", "run_kernels"]


class Request(NamedTuple):
    """The arguments of one `neurontools run`; `nki` is auto, neurontools or installed."""

    file: Path
    arguments: list[str]
    target: str | None = None
    lnc: int | None = None
    inputs: Path | None = None
    outputs: Path | None = None
    save_neff: Path | None = None
    seed: int | None = None
    timing: bool = True
    nki: str = "auto"
    hang_timeout_ps: int | None = None
    dump_dir: Path | None = None
    inputs_from: Path | None = None
    act: str = "exact"
    record: Path | None = None


def run_file(wanted: Request, out: Report) -> None:
    """Run a NEFF, or a .s program assembled on the way, and put what came of it into the report."""
    from formats.neff import open_neff
    from neurontools.render import run as render
    from neurontools.render.progress import progress

    file = wanted.file
    data: Any = need_file(file)
    if file.suffix == ".s":
        from neurontools.assemble_neff import to_neff
        from neurontools.assembler import parse_program

        data = to_neff(parse_program(read_text(file), str(file), wanted.target))
    neff = open_neff(data)
    check_target(wanted, neff)
    if wanted.inputs_from is not None:
        from neurontools.input_dump import load_input_dump

        values, odd = load_input_dump(wanted.inputs_from, neff.inputs, neff.header.name)
        out.warn(*odd)
    else:
        values = load_inputs(wanted.inputs, [tensor.name for tensor in neff.inputs])

    from emulator import runtime

    dumpers = dump_observers(neff.header.name or file.name, wanted.dump_dir)
    watchers: list[Any] = [*dumpers]
    if wanted.record is not None:
        watchers.append(_recorder(wanted, wanted.record, neff.header.name or file.name, neff, values))
    with progress(file.name) as tick:
        result = runtime.run(neff, values, seed=wanted.seed, timing=wanted.timing, progress=tick, observers=watchers,
                             hang_timeout_ps=wanted.hang_timeout_ps, act=wanted.act)
    if wanted.save_neff is not None:
        with write_whole(wanted.save_neff) as beside:
            beside.write_bytes(neff.to_bytes())
    _save_outputs(wanted.outputs, result)
    out.warn(*render.notices(result.warnings, neff))
    out.result = {**render.result(result), "dump": None}
    for dumper in dumpers:
        out.warn(*dumper.notes)
        out.result["dump"] = dumper.directory
    out.lines = lambda: [
        *render.result_lines(f"{file.name} on {neff.target.name}, LNC {neff.lnc}", result),
        *(f"dump: {dumper.directory}" for dumper in dumpers if dumper.directory is not None),
    ]
    out.status = outcome(result)


def _recorder(wanted: Request, path: Path, name: str, neff: Any, values: dict[str, Any]) -> Any:
    """Return the observer that records one run."""
    from neurontools.recording import RecordingObserver

    options = {"seed": wanted.seed, "timing": wanted.timing, "hang_timeout_ps": wanted.hang_timeout_ps,
               "act": wanted.act}  # fmt: skip
    return RecordingObserver(path, name, neff, values, options, (str(wanted.file.resolve().parent),))


def outcome(result: Any) -> ExitStatus:
    """Return the exit status of an execution; a word that is not modelled is no fault of the program."""
    if result.fault is not None:
        return ExitStatus.UNSUPPORTED if result.fault.kind == "unsupported" else ExitStatus.FAULT
    return ExitStatus.OK if result.hang is None else ExitStatus.FAULT


def run_kernels(wanted: Request, out: Report) -> None:
    """Run a script with its kernels on the emulator; its exit status becomes the report's."""
    from formats.neff import open_neff
    from formats.targets import resolve_target
    from neurontools.nki.errors import KernelFaultError
    from neurontools.render import run as render
    from neurontools.run_options import RunOptions, using

    override = {} if wanted.target is None else {"NEURON_PLATFORM_TARGET_OVERRIDE": resolve_target(wanted.target).name}
    if wanted.nki != "installed":
        from neurontools import nki

        nki.install(override=wanted.nki == "neurontools")
    options = RunOptions(
        seed=wanted.seed, timing=wanted.timing, lnc=wanted.lnc, hang_timeout_ps=wanted.hang_timeout_ps,
        dump_dir=wanted.dump_dir,
    )  # fmt: skip
    if wanted.record is not None:
        first = wanted.record

        def record(name: str, neff: bytes, values: dict[str, Any]) -> Any:
            number = len(options.launches) + 1
            path = first if number == 1 else first.with_stem(f"{first.stem}-{number}")
            return _recorder(wanted, path, name, neff, values)

        options.recorder = record
    options.on_launch = lambda launch: _keep(launch, len(options.launches), wanted)
    # With --json standard output is one document, so what the script prints goes to the other stream.
    stdout = contextlib.redirect_stdout(sys.stderr) if out.as_json else contextlib.nullcontext()
    with using(options), environment(override), stdout:
        try:
            status = run_script(wanted.file, wanted.arguments)
        except KernelFaultError as error:
            # The report holds the launch that failed; people get all of it too, after what the script printed.
            out.status = outcome(error.result)
            status = int(out.status)
            if not out.as_json:
                _explain(error, options.launches[-1:])
    out.result = {"status": status, "launches": [render.launch(launch) for launch in options.launches]}
    if out.status is ExitStatus.OK:
        out.exit_code = status
    # One line per kernel: ragged tiles read bytes that nobody wrote, and are right.
    for name, item in {item.kernel: item for item in reversed(options.launches) if item.result.warnings}.items():
        lines = render.notices(item.result.warnings, open_neff(item.neff))
        out.warn(f"{name}: {lines[0]}" + (f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""))
    if (wanted.save_neff or wanted.outputs) and not options.launches:
        out.warn("the script launched no kernel: nothing was saved")
    if not out.as_json and not out.quiet and sys.stderr.isatty():
        for launch in options.launches:
            note(render.launch_line(launch))


@contextlib.contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
    """Set environment variables for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _explain(error: KernelFaultError, last: list[Launch]) -> None:
    from neurontools.render.run import trouble_lines

    for launch in last:
        if launch.result is error.result:
            note(f"neurontools: {launch.kernel}: execution failed")
            for line in trouble_lines(launch.result):
                note(line)
            if launch.dump is not None:
                note(f"dump: {launch.dump}")
            return
    note(f"neurontools: {error}")


def _keep(launch: Launch, number: int, wanted: Request) -> None:
    """Save what was asked for as soon as it exists: the script may fail later."""
    path = wanted.save_neff
    try:
        if path is not None:
            with write_whole(path if number == 1 else path.with_stem(f"{path.stem}-{number}")) as beside:
                beside.write_bytes(launch.neff)
        _save_outputs(wanted.outputs, launch.result)
    except OSError as error:
        # This runs inside the script, whose own OSErrors end in its traceback; ours is no error of the script.
        reason = (error.strerror or str(error)).lower()
        raise FormatError(f"cannot be written ({reason})", path=error.filename) from None


def _save_outputs(path: Path | None, result: Any) -> None:
    if path is None or result.fault is not None or result.hang is not None:
        return
    from neurontools.arrays import write_arrays

    with write_whole(path) as beside:
        write_arrays(beside, result.outputs)


def check_target(wanted: Any, neff: Any) -> None:
    """Refuse a target or number of cores that the file was not made for; `wanted` has file, target and lnc."""
    from formats.targets import resolve_target

    name = wanted.file.name
    if wanted.target is not None and resolve_target(wanted.target).generation != neff.target.generation:
        raise typer.BadParameter(f"{name} is for {neff.target.name}, not {wanted.target}", param_hint="--target")
    if wanted.lnc is not None and wanted.lnc != neff.lnc:
        raise typer.BadParameter(f"{name} was built for LNC {neff.lnc}", param_hint="--lnc")


def load_inputs(path: Path | None, names: list[str]) -> dict[str, Any]:
    """Return the arrays of an .npz; without one, refuse a file that has inputs."""
    if path is None:
        if names:
            raise typer.BadParameter(f"the file has inputs: give {', '.join(names)} in an .npz", param_hint="--inputs")
        return {}
    from neurontools.arrays import load_arrays

    return load_arrays(path)
