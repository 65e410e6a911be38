"""`sbuf`, `psum` and `hbm` as words of the language, which they are to the second beta: kernels say them unimported.

They are put among Python's builtins while a kernel that may say one is traced, and for no other kernels: whenever a
name comes or goes there, Python forgets for all code of the process where it finds builtins, which costs a launch a
twentieth of its time. Who may say one is told by the code of the kernel, of its module, and of modules with kernels
that it names. One that says a word in spite of it meets a NameError, and is traced once more, from then on with them.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator
from opcode import EXTENDED_ARG, opmap
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from neurontools.nki.purity import is_trusted
from neurontools.nki.regions import MemoryRegion

__all__ = ["heard", "may_say", "named"]

_WORDS = {"sbuf": MemoryRegion.sbuf, "psum": MemoryRegion.psum, "hbm": MemoryRegion.private_hbm}
_FRONT_ENDS = frozenset({"neuronxcc", "neurontools", "nki"})
_LOAD_GLOBAL, _LOAD_NAME = opmap["LOAD_GLOBAL"], opmap["LOAD_NAME"]
_HOLDING = staticmethod, classmethod, property, MethodType, functools.partial
_MOST = 1 << 10
# By the identities of codes, which are kept with them: whether functions of these codes may say a word.
_told: dict[tuple[int, ...], tuple[bool, tuple[CodeType, ...]]] = {}
_quiet: dict[int, dict[str, Any]] = {}  # modules that say none, nor any that they name


class named:
    """Put the words among the builtins for a while; one that somebody has put there stays his."""

    __slots__ = ("_added", "_is_on")

    _added: dict[str, MemoryRegion]

    def __init__(self, is_on: bool) -> None:
        self._is_on = is_on

    def __enter__(self) -> None:
        if self._is_on:
            names = vars(builtins)
            self._added = {name: word for name, word in _WORDS.items() if name not in names}
            names.update(self._added)

    def __exit__(self, *raised: object) -> None:
        if self._is_on:
            names = vars(builtins)
            for name in self._added:
                names.pop(name, None)


def may_say(function: Callable[..., Any]) -> bool:
    """Return whether a kernel may say one of the words, itself or in what it calls."""
    codes = _codes_of(function)
    if codes is None:
        return True
    found = _told.get((*map(id, codes),))
    return (found or _note(codes, _is_said(function)))[0]


def heard(function: Callable[..., Any], error: NameError) -> bool:
    """Return whether a kernel that was traced without the words said one of them; from now on it has them."""
    codes = _codes_of(function)
    if error.name not in _WORDS or codes is None:
        return False
    _note(codes, True)
    return True


def _note(codes: tuple[CodeType, ...], says: bool) -> tuple[bool, tuple[CodeType, ...]]:
    if len(_told) >= _MOST:
        _told.clear()
        _quiet.clear()
    found = _told[(*map(id, codes),)] = says, codes
    return found


def _codes_of(function: Callable[..., Any]) -> tuple[CodeType, ...] | None:
    """Return the code of a kernel, and of the functions that it has from around it; None where nothing is told of it.

    Of the first generation it is a function of ours.
    """
    if type(function) is not FunctionType or is_trusted(function.__module__):
        return None
    if function.__closure__ is None:  # nearly always
        return (function.__code__,)
    return tuple([one.__code__ for one in _functions_of(function)])


def _functions_of(function: Callable[..., Any]) -> Iterator[FunctionType]:
    """Yield a function, and those that it has from around it."""
    waiting: list[Any] = [function]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, _HOLDING):
            waiting += _inside(one)
        elif type(one) is FunctionType and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += _around(one)


def _around(function: FunctionType) -> Iterator[Any]:
    """Yield what a function has from around it."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # nothing yet
            continue


def _inside(value: Any) -> list[Any]:
    """Return the functions that something is made of."""
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    return [value.func if isinstance(value, functools.partial) else value.__func__]


def _is_said(function: Callable[..., Any]) -> bool:
    """Return whether the code of a kernel, of its module, or of modules with kernels behind it says a word."""
    waiting: list[Any] = [function]
    seen: set[int] = set()
    passed: list[dict[str, Any]] = []
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        names: dict[str, Any] | None = None
        if isinstance(value, ModuleType):
            names = vars(value)
        elif isinstance(value, _HOLDING):
            waiting += _inside(value)
        elif isinstance(value, type) and not is_trusted(value.__module__):
            waiting += vars(value).values()
        elif type(value) is FunctionType and not is_trusted(value.__module__):
            if _says(value.__code__):
                return True
            waiting += _around(value)
            names = value.__globals__
        elif _is_of_front_end(value) and hasattr(value, "func"):  # a kernel
            waiting.append(value.func)
        if names is not None and id(names) not in seen and id(names) not in _quiet:
            seen.add(id(names))
            passed.append(names)
            if not is_trusted(names.get("__name__")) and any(map(_is_of_front_end, [*names.values()])):
                waiting += names.values()
    _quiet.update((id(names), names) for names in passed)
    return False


def _is_of_front_end(value: Any) -> bool:
    """Return whether a variable of a module is the front end, or something of it: what holds kernels has some."""
    if isinstance(value, ModuleType):
        name = vars(value).get("__name__")
    else:
        name = (value if isinstance(value, (type, FunctionType)) else type(value)).__module__
    return isinstance(name, str) and name.partition(".")[0] in _FRONT_ENDS


@functools.lru_cache(maxsize=_MOST)
def _says(code: CodeType) -> bool:
    """Return whether code, or code inside of it, names a word that is no variable of its own."""
    if not _WORDS.keys().isdisjoint(code.co_names):
        names, shift, before = code.co_names, 0, 0
        raw = code.co_code
        for operation, argument in zip(raw[::2], raw[1::2], strict=True):
            number = before << 8 | argument
            before = number if operation == EXTENDED_ARG else 0
            shift = int(operation == _LOAD_GLOBAL)  # its lowest bit says something else
            if operation in (_LOAD_GLOBAL, _LOAD_NAME) and names[number >> shift] in _WORDS:
                return True
    return any(_says(one) for one in code.co_consts if isinstance(one, CodeType))
