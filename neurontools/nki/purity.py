"""What code says of itself before it runs: whether two runs of it may differ, and which names it can reach."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CodeType

__all__ = ["IMPURE", "impurity", "is_trusted", "names_of"]

# Packages whose functions give the same answers each time, unless a name below asks for others.
_PURE = frozenset({
    "abc", "builtins", "collections", "copy", "dataclasses", "enum", "formats", "functools", "itertools", "math",
    "ml_dtypes", "neurontools", "neuronxcc", "nki", "nki_cpu_simulator", "numbers", "numpy", "operator", "types",
    "typing", "typing_extensions",
})  # fmt: skip
# Names that read or change the world, or find others by text. `print` is none of them: what a kernel prints while it
# is traced is noted, and said again (`neurontools.nki.printing`).
IMPURE = frozenset({
    "__builtins__", "__dict__", "__import__", "breakpoint", "builtins", "compile", "environ", "eval", "exec",
    "fromfile", "getenv", "globals", "id", "import_module", "input", "load", "loadtxt", "locals", "memmap", "open",
    "random", "save", "setattr", "vars",
})  # fmt: skip
# Names above that are harmless as attributes: of `nki.language`; of everything but `builtins`, which no name reaches.
_OF_KERNELS, _OF_OBJECTS = frozenset({"load", "random"}), frozenset({"input"})
_WRITES = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_STAR"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"})
_MOST_CODES = 1 << 10


def is_trusted(module: object) -> bool:
    """Return whether functions of a module give the same answers each time, by the module's name."""
    return isinstance(module, str) and module.partition(".")[0] in _PURE


@functools.lru_cache(maxsize=_MOST_CODES)
def impurity(code: CodeType) -> str | None:
    """Return what code does that makes two runs of it differ, None where nothing does; equal codes do the same."""
    impure = IMPURE.intersection(code.co_names) - _OF_KERNELS - _OF_OBJECTS
    loaded = _OF_KERNELS.intersection(code.co_names)
    if impure or (loaded and not _from_nki(code, loaded)):
        return f"uses {', '.join(sorted(impure or loaded))}"
    for one in dis.get_instructions(code):
        if one.opname in _WRITES or (one.opname == "STORE_DEREF" and one.argval in code.co_freevars):
            return f"writes {one.argval}"
        if one.opname == "IMPORT_NAME" and (not is_trusted(str(one.argval)) or one.argval == "builtins"):
            return f"imports {one.argval}"
        if one.opcode in dis.hasname and one.argval in _OF_OBJECTS and one.opname not in _ATTRIBUTES:
            return f"uses {one.argval}"
    return None


@functools.lru_cache(maxsize=_MOST_CODES)
def names_of(code: CodeType) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return every name of code and of what is defined inside it, and the same in order."""
    names = frozenset(_names(code))
    return names, tuple(sorted(names))


def _names(code: CodeType) -> Iterator[str]:
    """Return every global, attribute and method name of code and of what is defined inside it."""
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _names(one)


def _from_nki(code: CodeType, names: frozenset[str]) -> bool:
    """Return whether each use of the names is an attribute of a plain variable, as `nl.load` is."""
    before = None
    for one in dis.get_instructions(code):
        if one.argval in names and one.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            if before is None or before.opname not in ("LOAD_GLOBAL", "LOAD_FAST", "LOAD_DEREF"):
                return False
            # the names that kernels give the module; `numpy.load` and `random.random` look just like it
            if before.argval not in ("nl", "language"):
                return False
        elif one.argval in names and one.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            return False
        before = one
    return True
