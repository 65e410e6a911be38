"""One compilation of a file: read, look into the cache, compile, keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from formats.errors import FormatError
from formats.hlo import Module, module_bytes
from formats.neff import Neff, open_neff
from neurontools.compiler.cache import CompileCache
from neurontools.compiler.options import CompileOptions, check_options
from neurontools.compiler.pipeline import Compiled, Told, compile_module
from neurontools.hlo.opening import open_module, parse_bytes

__all__ = ["compile_file", "compile_program"]


def compile_file(
    path: Path,
    options: CompileOptions,
    *,
    dump_after: Sequence[str] = (),
    cache_dir: Path | None = None,
    told: Told | None = None,
) -> tuple[Compiled, bool]:
    """Compile the module in a file; return it, and whether it was in the cache already."""
    check_options(options)  # before they choose an entry of the cache
    cache = None if cache_dir is None or dump_after else CompileCache(cache_dir)
    data = path.read_bytes() if cache is not None else b""
    if cache is not None:
        found = cache.find(data, options)
        if found is not None:
            return found, True
    made = compile_module(
        open_module(path), options, path=str(path), dump_after=dump_after, **({} if told is None else {"told": told})
    )
    if cache is not None:
        cache.keep(data, options, made)
    return made, False


def compile_program(program: Any, args: tuple[Any, ...], options: dict[str, Any], cache: Path | str | None) -> Neff:
    """Compile a module, its bytes, a file, or a function that JAX traces; return the opened NEFF."""
    unknown = sorted(options.keys() - set(CompileOptions._fields))
    if unknown:
        raise FormatError("unknown option of the compiler", field=unknown[0],
                          expected=f"one of {', '.join(CompileOptions._fields)}")  # fmt: skip
    chosen = CompileOptions(**options)
    check_options(chosen)  # before they choose an entry of the cache
    module = _module(program, args, chosen.chip.name)
    kept = None if cache is None else CompileCache(Path(cache))
    # JAX counts its modules; the number says nothing about the graph.
    data = module_bytes(replace(module, id=0)) if kept is not None else b""
    made = kept.find(data, chosen) if kept is not None else None
    if made is None:
        made = compile_module(module, chosen)
        if kept is not None:
            kept.keep(data, chosen, made)
    return open_neff(made.neff)


def _module(program: Any, args: tuple[Any, ...], target: str) -> Module:
    if isinstance(program, Module):
        return program
    if isinstance(program, (bytes, bytearray)):
        return parse_bytes(bytes(program))
    if isinstance(program, (str, Path)):
        return open_module(Path(program))
    if callable(program):
        from neurontools.compiler.jax_functions import lower  # deferred: start-up

        return lower(program, args, {}, target)[0]
    raise FormatError("not a program", expected="a module, its bytes, a path or a function", got=type(program).__name__)
