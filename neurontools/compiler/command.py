"""`neurontools compile model`: an HLO module to a NEFF, with the options of neuronx-cc."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from formats.errors import FormatError, NeuronError
from formats.named_tuple import NamedTuple
from neurontools.command.files import need_file, need_place
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import note, report, write_whole
from neurontools.compiler.without_effect import ignored, told
from neurontools.text.table import count

if TYPE_CHECKING:
    from neurontools.compiler.options import CompileOptions
    from neurontools.compiler.pipeline import Compiled

_STAGES = ("compile", "tensorize", "SaveTemps")
_NOTHING = "no effect here"
_LEVELS = ("debug", "info", "warning", "error", "critical")


class CastRow(NamedTuple):
    """One cast that an option put in."""

    operation: str
    opcode: str
    operand: int
    source: str
    target: str
    file: str
    line: int


class CompiledFile(NamedTuple):
    """The result of `compile`: the file that was written, its tensors, words by engine, casts."""

    output: str
    target: str
    lnc: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    words: Annotated[dict[str, int], "instruction slots of 64 bytes, by engine, of all cores"]
    transfers: int
    transfer_bytes: int
    sbuf_bytes: Annotated[int, "highest byte of a partition in use, of any core"]
    hbm_bytes: Annotated[dict[str, int], "device memory by kind of variable, of the core with most"]
    casts: tuple[CastRow, ...]
    size: int
    cached: Annotated[bool, "whether the file comes from the cache"]


def view(found: CompiledFile) -> list[str]:
    """Return the result in a few lines."""
    listed = ", ".join(f"{engine} {number}" for engine, number in found.words.items())
    lines = [f"{found.output}: {found.target}, {listed}, {found.size:,} bytes" + (" (cached)" if found.cached else "")]
    if found.casts:
        lines.append(f"{count(len(found.casts), 'cast')}; --json lists them")
    return lines


def _choice(*names: str) -> object:
    def check(value: str) -> str:
        if value not in names:
            raise typer.BadParameter(f"{value!r} is none of {', '.join(names)}")
        return value

    return check


def compile_model(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL", help="An HLO module: proto or text.", show_default=False)
    ],
    framework: Annotated[
        str, typer.Option("--framework", callback=_choice("XLA"), help="What made the module; XLA is the only one.")
    ] = "XLA",
    target: Annotated[str, typer.Option("--target", metavar="CHIP", help="inf2, trn1, trn1n, trn2 or trn3.")] = "trn2",
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")] = Path(
        "file.neff"
    ),
    model_type: Annotated[
        str,
        typer.Option(
            "--model-type",
            callback=_choice("generic", "transformer", "unet-inference"),
            help="generic, transformer (long rows stay in SBUF) or unet-inference (long chains do).",
        ),
    ] = "generic",
    auto_cast: Annotated[
        str,
        typer.Option(
            "--auto-cast",
            callback=_choice("none", "matmult", "all"),
            help="Which fp32 operations compute in --auto-cast-type: none, matmult or all.",
        ),
    ] = "none",
    auto_cast_type: Annotated[
        list[str] | None,
        typer.Option("--auto-cast-type", help="bf16, fp16, tf32 or fp8_e4m3; the last one holds.", show_default="bf16"),
    ] = None,
    native_int64: Annotated[
        str,
        typer.Option(
            "--native-int64", callback=_choice("default", "enabled", "disabled"), help="default, enabled or disabled."
        ),
    ] = "default",
    implicit_integer_downcast: Annotated[
        str,
        typer.Option(
            "--implicit-integer-downcast",
            help="default, all, none, or a list of dot,scatter,all_reduce,reduce_scatter,pow.",
        ),
    ] = "default",
    distribution_strategy: Annotated[
        str,
        typer.Option(
            "--distribution-strategy",
            callback=_choice("", "llm-training", "NEMO"),
            help=f"llm-training (NEMO is its old name); {_NOTHING}.",
        ),
    ] = "",
    lnc: Annotated[
        int | None,
        typer.Option(
            "--logical-nc-config",
            "-lnc",
            "--lnc",
            min=1,
            help="Physical cores of a logical core: 1 or 2.",
            show_default="the target's",
        ),
    ] = None,
    optlevel: Annotated[
        int, typer.Option("--optlevel", "-O", min=1, max=3, help="1, 2 or 3; 3 tries variants on the emulator.")
    ] = 2,
    mixed_precision_accumulation: Annotated[
        bool,
        typer.Option(
            "--enable-mixed-precision-accumulation/--disable-mixed-precision-accumulation",
            help="Keep sums of shorter floats in fp32 until they are complete.",
        ),
    ] = True,
    saturate_infinity: Annotated[
        bool, typer.Option("--enable-saturate-infinity", help="Keep infinities out of transposes (trn1).")
    ] = False,
    fast_context_switch: Annotated[
        bool, typer.Option("--enable-fast-context-switch", help=f"Put off loading weights; {_NOTHING}.")
    ] = False,
    fast_loading: Annotated[
        bool, typer.Option("--enable-fast-loading-neuron-binaries", help="Do not compress the file.")
    ] = False,
    logfile: Annotated[Path, typer.Option("--logfile", metavar="FILE", help="Where the log goes.")] = Path(
        "log-neuron-cc.txt"
    ),
    verbose: Annotated[
        str,
        typer.Option(
            "--verbose",
            callback=_choice(*_LEVELS),
            help=f"{', '.join(_LEVELS)}: what is told of the passes, and whether warnings are.",
        ),
    ] = "warning",
    pipeline: Annotated[
        str,
        typer.Option(
            "--pipeline",
            callback=_choice(*_STAGES),
            help="compile or tensorize; SaveTemps keeps graphs.",
        ),
    ] = "compile",
    tensorizer_options: Annotated[str, typer.Option("--tensorizer-options", help="--print-nki leaves nki.py.")] = "",
    internal_tensorizer_opt_level: Annotated[
        int, typer.Option("--internal-tensorizer-opt-level", help=f"Accepted; {_NOTHING}.")
    ] = 2,
    internal_hlo2tensorizer_options: Annotated[
        str, typer.Option("--internal-hlo2tensorizer-options", help=f"Accepted; {_NOTHING}.")
    ] = "",
    fp8_as_e4m3: Annotated[
        bool,
        typer.Option("--experimental-unsafe-fp8e4m3fn-as-fp8e4m3", help="Hold F8E4M3FN as F8E4M3 before trn3."),
    ] = False,
    workdir: Annotated[
        Path | None, typer.Option("--workdir", metavar="FOLDER", help="Where what is kept goes.", show_default=False)
    ] = None,
    limits: Annotated[
        str,
        typer.Option(
            "--limits",
            callback=_choice("documented", "ours"),
            help="Whose restrictions hold: the documented ones of neuronx-cc, or only our own.",
        ),
    ] = "documented",
    early_ag_shift: Annotated[
        int,
        typer.Option(
            "--early-ag-shift",
            metavar="N",
            min=-1,
            help="Call all-gathers of weights N layers before their use; -1: as early as can be.",
        ),
    ] = -1,
    late_rs_shift: Annotated[
        int,
        typer.Option(
            "--late-rs-shift",
            metavar="N",
            min=-1,
            help="Call reduce-scatters of gradients N layers behind their sum; -1: as early as can be.",
        ),
    ] = -1,
    cc_streams: Annotated[
        int,
        typer.Option(
            "--cc-streams",
            metavar="N",
            min=0,
            max=4,
            help="Streams of collectives, those behind the first for weights and gradients; 0: as the module says.",
        ),
    ] = 0,
    dump_after: Annotated[
        list[str] | None,
        typer.Option(
            "--dump-after", metavar="PASS", help="Print the graph after a pass (may be repeated).", show_default=False
        ),
    ] = None,
    cache_dir: Annotated[
        Path | None,
        typer.Option("--cache_dir", metavar="FOLDER", help="Take from and keep in this cache.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Compile an HLO module to a NEFF; the word `model` may be left out.

    The module is a serialized HloModuleProto, as every XLA front end writes it. Options and defaults are those of
    `neuronx-cc compile` (compiler.md 5.1). An operation that cannot be compiled ends with its documented code;
    `neurontools compile explain CODE` says more.
    """
    from neurontools.compiler.options import CompileOptions  # deferred: start-up
    from neurontools.compiler.pipeline import PASSES  # deferred: start-up

    files = [one for one in models if str(one) not in _STAGES or one.exists()]
    if len(files) != 1:
        raise typer.BadParameter(f"one module is compiled, {len(files)} are named", param_hint="MODEL")
    options = CompileOptions(
        target, model_type, auto_cast, (auto_cast_type or ["bf16"])[-1], native_int64,  # type: ignore[arg-type]
        implicit_integer_downcast, distribution_strategy, lnc or 0,  # type: ignore[arg-type]
        optlevel, mixed_precision_accumulation,
        saturate_infinity, fast_context_switch, fast_loading, fp8_as_e4m3, limits,  # type: ignore[arg-type]
        early_ag_shift=early_ag_shift, late_rs_shift=late_rs_shift, cc_streams=cc_streams,
    )  # fmt: skip
    if options.auto_cast_type not in ("bf16", "fp16", "tf32", "fp8_e4m3"):
        raise typer.BadParameter(f"{options.auto_cast_type!r} is none of bf16, fp16, tf32, fp8_e4m3",
                                 param_hint="--auto-cast-type")  # fmt: skip
    with (
        report("compile model", json, model=files[0], output=output, options=_given(options)) as out,
        _Log(logfile, verbose) as log,
    ):
        unused = ignored(
            {
                "--distribution-strategy": distribution_strategy,
                "--enable-fast-context-switch": fast_context_switch,
                "--pipeline": "tensorize" if pipeline == "tensorize" else "compile",
                "--internal-tensorizer-opt-level": internal_tensorizer_opt_level,
                "--internal-hlo2tensorizer-options": internal_hlo2tensorizer_options,
            }
        )
        if unused:
            if log.tells("warning"):
                out.warn(told(unused))
            log.add("warning", told(unused))
        kept = "SaveTemps" in (pipeline, *map(str, models))
        wanted = list(PASSES) if kept or log.tells("info") else []
        made, cached = _compile(files[0], options, [*(dump_after or []), *wanted], cache_dir)
        folder = workdir or Path.cwd()
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in made.dumps.items():
            if name in (dump_after or []):
                note(f"// after {name}\n{text}")
            log.tell("info", f"after {name}: {count(len(text.splitlines()) - 3, 'line')}", json)
            log.tell("debug", text, json)
            if kept:
                (folder / f"{output.stem}.{name}.txt").write_text(f"{text}\n", encoding="utf-8")
        need_place(output)
        with write_whole(output) as beside:
            beside.write_bytes(made.neff)
        if "--print-nki" in tensorizer_options:
            (folder / "nki.py").write_text(made.listing, encoding="utf-8")
        cores = made.report.cores
        found = CompiledFile(
            str(output), options.target, options.cores, made.names.inputs, made.names.outputs,
            _together(sum, [one.words for one in cores]), sum(one.transfers for one in cores),
            sum(one.transfer_bytes for one in cores), max(one.sbuf_bytes for one in cores),
            _together(max, [one.hbm_bytes for one in cores]),
            tuple(CastRow(*one) for one in made.casts), len(made.neff), cached,
        )  # fmt: skip
        out.result = found
        out.lines = lambda: view(found)


def _together(fold: Callable[[list[int]], int], cores: list[dict[str, int]]) -> dict[str, int]:
    """Return what cores have under each name, folded."""
    return {name: fold([one.get(name, 0) for one in cores]) for name in dict.fromkeys(chain.from_iterable(cores))}


def _given(options: CompileOptions) -> dict[str, object]:
    """Return the options that are not the defaults."""
    defaults = type(options)()
    pairs = zip(options._fields, options, defaults, strict=True)
    return {name: value for name, value, default in pairs if value != default}


def _compile(
    model: Path, options: CompileOptions, dump_after: list[str], cache_dir: Path | None
) -> tuple[Compiled, bool]:
    from neurontools.compiler.driver import compile_file  # deferred: start-up
    from neurontools.text.progress import doing  # deferred: start-up

    with doing(model.name) as told:
        return compile_file(need_file(model), options, dump_after=dump_after, cache_dir=cache_dir, told=told)


class _Log:
    """Collect the lines of the log file, which is written at the end, an error as its last line."""

    def __init__(self, path: Path, level: str) -> None:
        self.path, self.level = path, _LEVELS.index(level)
        self.lines: list[str] = [json_module.dumps(sys.argv[1:])]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, where: object) -> None:
        if isinstance(error, NeuronError):
            self.add("error", str(error))
        try:
            self.path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        except OSError as failure:
            if error is None:  # else that is what has to be told
                raise FormatError(f"the log cannot be written ({failure.strerror})", path=str(self.path)) from None

    def tells(self, level: str) -> bool:
        """Return whether messages of a level are told."""
        return _LEVELS.index(level) >= self.level

    def add(self, level: str, text: str) -> None:
        """Keep a line, whatever its level."""
        self.lines.append(f"{level.upper()} {text}")

    def tell(self, level: str, text: str, quiet: bool) -> None:
        """Keep and print a message of a level that is told; with `quiet` it is only kept."""
        if self.tells(level):
            self.add(level, text)
            if not quiet:
                print(text)


app = command_app(compile_model, result=CompiledFile, default=True)
