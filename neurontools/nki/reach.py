"""What functions and classes can reach: their code, what that names, and everything behind it, as one hash.

A walk over all of it takes longer than to build a small kernel, so it is remembered with what it read: it is not taken
again while all of that is the same.
"""

from __future__ import annotations

import builtins
import enum
import functools
import sys
from collections.abc import Iterable, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from formats.named_tuple import NamedTuple
from neurontools.nki.digest import DESCRIPTORS, Digest, Unknown
from neurontools.nki.patches import is_replaced
from neurontools.nki.purity import IMPURE, impurity, is_trusted, names_of
from neurontools.nki.watch import Watch

__all__ = ["Reached", "reached"]

_OWN_SLOTS = frozenset({"__dict__", "__weakref__", "__doc__", "__module__"})
_SLOT_KINDS = frozenset({"getset_descriptor", "member_descriptor", "wrapper_descriptor", "_abc_data"})
_MOST_CODES = 1 << 10
_MOST_WALKS = 32  # each keeps alive what it read, variables of its kernel's module among it


class Reached(NamedTuple):
    """A walk from some roots: its hash, or the reason why there is none, and the numbers of the objects that it met.

    `may_print` tells whether any code that it met names `print`; `kept` are the objects that the numbers are of.
    """

    roots: list[Any]
    digest: bytes
    reason: str | None
    seen: dict[int, int]
    kept: list[object]
    may_print: bool
    watch: Watch


_walks: dict[tuple[int, ...], Reached] = {}  # the last one used last


def reached(roots: list[Any]) -> Reached:
    """Return the walk from some roots, which is only taken where anything that the last one read has changed."""
    place = tuple(map(id, roots))
    known = _walks.get(place)
    if known is not None and known.watch.is_same():
        _walks[place] = _walks.pop(place, known)
        return known
    walk, reason = _Walk(), None
    try:
        for root in roots:
            walk.value(root)
    except Unknown as unknown:
        reason = str(unknown)
    made = Reached(roots, walk.hash.digest(), reason, walk.seen, walk.kept, walk.may_print, walk.watch)
    _walks.pop(place, None)
    if walk.watch.is_repeatable:
        _walks[place] = made
        if len(_walks) > _MOST_WALKS:
            _walks.pop(next(iter(_walks)), None)
    return made


class _Walk(Digest):
    """A hash that follows code, and notes all that it reads."""

    def __init__(self) -> None:
        self.watch = Watch()
        super().__init__(self.watch)
        self.may_print = False

    def code_behind(self, value: Any) -> None:
        """Add a function, class, module or what is made of them."""
        if isinstance(value, CodeType):
            self._code(value)
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, MethodType):
            self.put("method")
            self.values([value.__func__, value.__self__])
        elif isinstance(value, functools.partial):
            self.put("partial")
            self.values([value.func, value.args, value.keywords])
        elif isinstance(value, DESCRIPTORS):
            self.put(type(value).__name__)
            self.value(value.__func__)
        elif isinstance(value, property):
            self.put("property")
            self.values([value.fget, value.fset, value.fdel])
        elif isinstance(value, ModuleType):
            if not is_trusted(value.__name__) or value.__name__.endswith(".random") or value is builtins:
                raise Unknown(f"module {value.__name__}")
            self.put("module", value.__name__)
        elif is_trusted(value.__module__):
            self.put("class", value.__module__, value.__qualname__)
        else:
            self._class(value)

    def _class(self, cls: type) -> None:
        self.watch.class_(cls)
        self.put("class", cls.__module__, cls.__qualname__)
        self.values([one for one in (type(cls), *cls.__bases__) if not is_trusted(one.__module__)])
        self.put(*[f"{one.__module__}.{one.__qualname__}" for one in (type(cls), *cls.__bases__)])
        if issubclass(cls, enum.Enum):
            self.watch.dictionary(cls.__members__)
            for name, member in cls.__members__.items():
                self.watch.instance(member)
                self.put(name)
                self.value(member.value)
            self.values([one for one in vars(cls).values() if isinstance(one, (FunctionType, property, *DESCRIPTORS))])
            return
        for name, one in vars(cls).items():
            # What Python or a decorator adds is made from what is added to the digest anyway.
            if name in _OWN_SLOTS or name.startswith("__dataclass_") or type(one).__name__ in _SLOT_KINDS:
                continue
            if name == "__repr__" and "__dataclass_fields__" in vars(cls) and hasattr(one, "__wrapped__"):
                continue  # made by the decorator, from fields that are here too
            self.put(name)
            self.value(one)

    def _function(self, function: FunctionType) -> None:
        self.watch.function(function)
        if is_trusted(function.__module__ or ""):
            if function.__name__ in IMPURE and function.__module__.startswith("numpy"):
                raise Unknown(f"numpy.{function.__name__} as a value")
            self.put("function", function.__module__, function.__qualname__)
            self.values(_cells(function))
            return
        self.put("function", function.__qualname__)
        self._code(function.__code__)
        self.values([function.__defaults__, function.__kwdefaults__, function.__dict__])
        self.values(_cells(function))
        names, in_order = names_of(function.__code__)
        space = function.__globals__
        self.watch.names(space, in_order)
        for name in in_order:
            if name in space:
                self.put(name)
                self._global(space[name], names, set())
            elif hasattr(builtins, name):
                self.put("builtin", name)

    def _global(self, value: Any, names: frozenset[str], passed: set[str]) -> None:
        """Add a variable of a module; of a module only what the names of the code can reach in it."""
        if not isinstance(value, ModuleType):
            self.value(value)
            return
        space = vars(value)
        self.watch.names(space, names)
        if is_trusted(value.__name__):
            self.value(value)
            # a function of it may be somebody else's by now
            self._replaced(space, names)
            return
        # whatever names it makes up at run time cannot be followed
        if "getattr" in names:
            raise Unknown(f"getattr beside module {value.__name__}")
        if value.__name__ in passed:
            return
        place = str(getattr(value, "__file__", ""))
        # Installed modules that are not trusted may read files, clocks or the environment behind any of their names.
        if value.__name__.partition(".")[0] in sys.stdlib_module_names or "site-packages" in place:
            raise Unknown(f"module {value.__name__}")
        passed.add(value.__name__)
        self.put("module", value.__name__)
        for name in sorted(names & space.keys()):
            self.put(name)
            self._global(space[name], names, passed)

    def _replaced(self, space: Mapping[str, Any], names: Iterable[str]) -> None:
        found = [(name, space[name]) for name in sorted({*names} & space.keys()) if is_replaced(space[name])]
        self.put("replaced", len(found))
        for name, one in found:
            self.put(name)
            self.value(one)

    def _code(self, code: CodeType) -> None:
        """Add code with its file and lines, which stand in the file's debug information."""
        known = _codes.get(id(code))
        if known is None:
            if len(_codes) >= _MOST_CODES:
                _codes.clear()
            known = _codes[id(code)] = _Code(code, _digest_of(code), "print" in names_of(code)[0])
        if isinstance(known.digest, str):
            raise Unknown(known.digest)
        self.may_print |= known.may_print
        self.put("code", known.digest)


class _Code(NamedTuple):
    """Code, which never changes and is kept alive with its number, its digest or why it has none."""

    code: CodeType
    digest: bytes | str
    may_print: bool


# By identity: the hash of a code goes through all of its constants and names.
_codes: dict[int, _Code] = {}


def _digest_of(code: CodeType) -> bytes | str:
    """Return the digest of code with all that is defined inside it, or why there is none."""
    reason = impurity(code)
    if reason is not None:
        return f"{code.co_name} {reason}"
    digest = _Walk()
    try:
        digest.values([
            code.co_filename, code.co_firstlineno, code.co_code, code.co_linetable, code.co_names, code.co_varnames,
            code.co_freevars, code.co_cellvars, code.co_flags, code.co_exceptiontable,
        ])  # fmt: skip
        digest.values(code.co_consts)
    except Unknown as unknown:
        return str(unknown)
    return digest.hash.digest()


def _cells(function: FunctionType) -> list[object]:
    """Return what a closure holds; a variable without a value yet is None, as after it is deleted."""
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            found.append(None)
    return found
