"""The Python interface: what the commands are made of. `import neurontools` re-exports these names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formats import isa
from formats.core import Core, open_core
from formats.isa import Instruction
from formats.neff import Neff, open_neff
from formats.ntff import Ntff, open_ntff
from formats.targets import Target

if TYPE_CHECKING:
    import numpy

    from emulator.runtime import Result
    from emulator.runtime.ranks import RankedResult
    from neurontools.debugger import Session, open_core_session
    from neurontools.nki.choices import tunable
    from neurontools.tuning.evaluate import Evaluation, evaluate

__all__ = [
    "Core",
    "Evaluation",
    "Instruction",
    "Neff",
    "Ntff",
    "RankedResult",
    "Result",
    "Session",
    "assemble",
    "build",
    "compile",
    "decode",
    "evaluate",
    "open_core",
    "open_core_session",
    "open_neff",
    "open_ntff",
    "run",
    "run_ranks",
    "tunable",
]


def decode(raw: bytes, target: str | Target = "gen3", dialect: str = "extended") -> Instruction:
    """Return the instruction that `raw` is: 64 bytes, or a multiple of 64 for an extension word.

    A word that is not understood is a value too: it prints its bytes and encodes to them again.  `dialect` is
    "neuron" for words of files that AWS's compiler wrote.  Raises FormatError for a wrong length.
    """
    return isa.decode(raw, target, dialect)


def assemble(text: str, target: str | Target = "gen3") -> bytes:
    """Return the bytes of the instructions in `text`, one a line; the inverse of `Instruction.asm`.

    Raises FormatError that names the line.  For whole programs with directives see `neurontools.assembly.assembler`.
    """
    return isa.assemble(text, target)


def build(
    kernel: Callable[..., Any], *args: Any, target: str | Target | None = None, lnc: int | None = None, **keywords: Any
) -> Neff:
    """Trace `kernel` with `args` and `keywords` and return the NEFF built from it; `.save(path)` writes it.

    Arrays give shapes and types, other arguments are passed as they are.  `target` is a chip name (trn3 unless
    NEURON_PLATFORM_TARGET_OVERRIDE says otherwise), `lnc` the physical cores per logical core.  Raises
    NkiValidationError for a kernel that breaks a documented limit.
    """
    from neurontools.nki.launch import build_neff  # deferred: start-up

    return build_neff(kernel, args, keywords, lnc=lnc, target=target)


def compile(program: Any, *args: Any, target: str = "trn2", cache: Path | str | None = None, **options: Any) -> Neff:
    """Compile a graph and return the NEFF; `.save(path)` writes it.

    `program` is a module (`formats.hlo`), its bytes, the path of a file with one, or a function that JAX traces with
    `args`. `options` are those of `neurontools.compiler.options.CompileOptions`. With `cache`, a folder, a graph that
    was compiled before is taken from there. Raises NeuronError with the documented code for what cannot be compiled.
    """
    from neurontools.compiler.driver import compile_program  # deferred: start-up

    return compile_program(program, args, {"target": target, **options}, cache)


def run(
    neff: Neff | Path | str | bytes,
    inputs: Mapping[str, numpy.ndarray[Any, Any]] | None = None,
    *,
    seed: int | None = None,
    checks: str | Sequence[str] = (),
    timing: bool = True,
    act: str = "exact",
    max_instructions: int | None = None,
    max_time: float | None = None,
) -> Result:
    """Run a NEFF on the emulator and return outputs, fault, findings, device time and counts.

    `inputs` are arrays by tensor name.  `checks` are "memcheck", "initcheck", "racecheck", "synccheck" or "all", one or
    several.  `act` is "exact", or "table" for the file's own activation tables.  `seed` permutes equal times and
    jitters latencies.  `max_instructions` (completed instructions and transfers) and `max_time` (seconds of this
    machine's time) end a program that does not end by itself; `result.hang.reason` tells.  A fault or a hang is a value
    of the result, not an exception; FormatError and NotFoundError tell of a bad file or bad inputs.
    """
    from emulator import runtime  # deferred: start-up

    return runtime.run(neff, dict(inputs or {}), seed=seed, checks=checks, timing=timing, act=act,
                       max_steps=max_instructions, max_seconds=max_time)  # fmt: skip


def run_ranks(
    programs: Neff | Path | str | bytes | Sequence[Neff],
    inputs: Sequence[Mapping[str, numpy.ndarray[Any, Any]]],
    *,
    instance: str | None = None,
    nodes: int = 1,
    seed: int | None = None,
    checks: str | Sequence[str] = (),
    timing: bool = True,
    act: str = "exact",
    max_instructions: int | None = None,
    max_time: float | None = None,
) -> RankedResult:
    """Run one NEFF, or one for each rank, on as many ranks as there are `inputs`; return what came of every rank.

    `instance` is an instance type (`neurontools arch show`), the usual one of the program's chip without; `nodes` are
    so many of them, joined by EFA.  `.results` has a `Result` for each rank, `.collectives` what was called, `.hang`
    why ranks wait for each other.  The rest is as in `run`.
    """
    from emulator.runtime.ranks import Ranks, execute_ranks  # deferred: start-up
    from emulator.settings import Settings  # deferred: start-up

    given = open_neff(programs) if isinstance(programs, (Path, str, bytes)) else programs
    settings = Settings(None, seed, timing, act, max_steps=max_instructions, max_seconds=max_time)
    return execute_ranks(given, inputs, Ranks(len(inputs), instance, nodes), settings, checks=checks)


def __getattr__(name: str) -> Any:
    # These need NumPy: whoever only reads files does not wait for it.
    if name == "Result":
        from emulator.runtime import Result  # deferred: start-up

        return Result
    if name == "RankedResult":
        from emulator.runtime.ranks import RankedResult  # deferred: start-up

        return RankedResult
    if name == "Session":
        from neurontools.debugger import Session  # deferred: start-up

        return Session
    if name == "open_core_session":
        from neurontools.debugger import open_core_session  # deferred: start-up

        return open_core_session
    if name in ("Evaluation", "evaluate"):
        from neurontools.tuning import evaluate  # deferred: start-up

        return getattr(evaluate, name)
    if name == "tunable":
        from neurontools.nki.choices import tunable  # deferred: start-up

        return tunable
    raise AttributeError(f"module 'neurontools.api' has no attribute {name!r}")
