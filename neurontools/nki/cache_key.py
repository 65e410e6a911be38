"""What a launch depends on, as one digest: the kernel's code, all it can reach, its arguments, and its surroundings.

A digest is a promise that tracing again would give the same file.  Whatever is not understood makes none: code that
looks at the outside world, writes variables of its surroundings, or reaches values of unknown kinds is traced again.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, GenericAlias, MethodType, ModuleType, UnionType
from typing import Any

import numpy as np

import formats
from formats.named_tuple import NamedTuple
from neurontools.nki.arguments import Arguments, framework_of
from neurontools.nki.dtype import DType
from neurontools.nki.operators import Operator
from neurontools.nki.patches import is_replaced, replaced_names

__all__ = ["Unknown", "key_of"]

# Packages whose functions give the same answers each time, unless a name below asks for others.
_PURE = frozenset({
    "abc", "builtins", "collections", "copy", "dataclasses", "enum", "formats", "functools", "itertools", "math",
    "ml_dtypes", "neurontools", "neuronxcc", "nki", "nki_cpu_simulator", "numbers", "numpy", "operator", "types",
    "typing", "typing_extensions",
})  # fmt: skip
# Names that read or change the world, or find others by text.
_IMPURE = frozenset({
    "__dict__", "__import__", "breakpoint", "compile", "environ", "eval", "exec", "fromfile", "getenv", "globals", "id",
    "import_module", "input", "load", "loadtxt", "locals", "memmap", "open", "print", "random", "save", "setattr",
    "vars",
})  # fmt: skip
_OF_KERNELS = frozenset({"load", "random"})  # names above that are harmless as attributes of nki.language
_SIMPLE = frozenset({type(None), type(Ellipsis), type(NotImplemented), bool, int, float, complex, str, bytes})
_WRITES = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_STAR"})
_SWITCHES = ("NEURON_", "NEURONTOOLS_", "NKI_")
_OPEN = ("collections", "formats", "neurontools", "types")  # of these an object's attributes say all there is
_C_CALLABLES = frozenset({"_ArrayFunctionDispatcher", "classmethod_descriptor", "method_descriptor",
                          "wrapper_descriptor"})  # fmt: skip
_DESCRIPTORS = (staticmethod, classmethod)
_OWN_SLOTS = frozenset({"__dict__", "__weakref__", "__doc__", "__module__"})


class Unknown(Exception):  # noqa: N818  nothing is wrong: such a launch is traced again
    """Something that a launch depends on and that has no digest."""


def key_of(function: Any, arguments: Arguments, surroundings: Iterable[object]) -> str | None:
    """Return the digest of a launch, None where one cannot be vouched for; `surroundings` are target, grid and such."""
    if sys.gettrace() is not None:
        return None  # somebody steps through the kernel
    digest = _Digest()
    try:
        digest.value([_package(), sys.version, *surroundings])
        switches = sorted(name for name in os.environ if name.startswith(_SWITCHES))
        digest.value([(name, os.environ[name]) for name in switches])
        digest.value(replaced_names())
        digest.value(function)
        digest.arguments(arguments)
    except (Unknown, RecursionError):
        return None
    return digest.hash.hexdigest()


@functools.cache
def _package() -> bytes:
    """Return the digest of name, size and time of each source file of this toolkit: another version builds others."""
    found = []
    for package in map(os.path.dirname, (str(formats.__file__), os.path.dirname(os.path.abspath(__file__)))):
        for folder, _, names in os.walk(package):
            for name in names:
                if name.endswith(".py"):
                    status = os.stat(os.path.join(folder, name))
                    found.append((os.path.join(folder, name), status.st_size, status.st_mtime_ns))
    # Each launch asks for it: of hundreds of files only the digest is handed on.
    return hashlib.sha256(repr(sorted(found)).encode("utf-8", "backslashreplace")).digest()


class _Digest:
    """Feed values into a hash; each object once, by a number when it comes again."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self._seen: dict[int, int] = {}
        self._arrays: dict[int, int] = {}
        self._kept: list[object] = []  # so that no identity is used twice

    def _put(self, *parts: object) -> None:
        for part in parts:
            raw = part if part.__class__ is bytes else str(part).encode("utf-8", "backslashreplace")
            self.hash.update(b"%d:%b" % (len(raw), raw))

    def arguments(self, arguments: Arguments) -> None:
        """Add the arguments: of arrays shape, type and which are the same, of the rest the values."""
        for one in arguments.inputs:
            self._put("array", one.name, one.array.shape, str(one.dtype), str(one.array.dtype))
        self._put(arguments.framework)
        self._arrays = {id(one.original): number for number, one in enumerate(arguments.inputs)}
        self.value(list(arguments.args))
        self.value(dict(arguments.kwargs))

    def value(self, value: Any) -> None:
        """Add any value.  Raises Unknown for one of a kind that is not understood."""
        kind = type(value)
        if kind in _SIMPLE:
            self._put(kind.__name__, value if kind in (str, bytes) else repr(value))
            return
        number = self._arrays.get(id(value))
        if number is not None:
            self._put("argument", number)
            return
        again = self._seen.get(id(value))
        if again is not None:
            self._put("again", again)
            return
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        self._object(value, kind)

    def _object(self, value: Any, kind: type) -> None:
        if isinstance(value, DType):
            self._put("dtype", str(value))
        elif isinstance(value, Operator):
            self._put("operator", value.name)
        elif isinstance(value, enum.Enum):
            self.value(kind)
            self._put(value.name)
        elif kind in (tuple, list):
            self._put(kind.__name__, len(value))
            for one in value:
                self.value(one)
        elif kind in (dict, _MAPPING_PROXY):
            self._put("dict", len(value))
            for key, one in value.items():
                self.value(key)
                self.value(one)
        elif kind in (set, frozenset):
            if not all(type(one) in (int, str, bytes, bool) for one in value):
                raise Unknown(f"a set of {value!r}")
            self._put("set", sorted(map(repr, value)))
        elif kind in (slice, range):
            self._put(kind.__name__, repr(value))
        elif framework_of(value) == "numpy" or isinstance(value, np.generic):
            if value.dtype.hasobject:
                raise Unknown("an array of objects")
            self._put("values", value.dtype.str, value.dtype.name, np.shape(value), value.tobytes())
        elif isinstance(value, np.dtype):
            self._put("numpy", value.str, value.name)
        elif isinstance(value, (CodeType, FunctionType, MethodType, functools.partial, ModuleType, type)):
            self._callable(value)
        elif isinstance(value, _DESCRIPTORS):
            self._put(kind.__name__)
            self.value(value.__func__)
        elif isinstance(value, property):
            self._put("property")
            self.value([value.fget, value.fset, value.fdel])
        elif isinstance(value, (BuiltinFunctionType, np.ufunc)) or _is_pure(getattr(value, "__module__", None), kind):
            self._named(value)
        elif isinstance(value, (GenericAlias, UnionType)) or kind.__module__ in ("typing", "types"):
            self._put("typing", repr(value))
        else:
            self._instance(value, kind)

    def _named(self, value: Any) -> None:
        """Add a function or object of a trusted package by its name."""
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        module = getattr(value, "__module__", None) or "builtins"
        owner = getattr(value, "__self__", None)
        if not isinstance(name, str) or not _trusted(module) or not isinstance(owner, (ModuleType, type, type(None))):
            raise Unknown(repr(value))
        self._put("named", module, name)

    def _callable(self, value: Any) -> None:
        if isinstance(value, CodeType):
            self._code(value)
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, MethodType):
            self._put("method")
            self.value([value.__func__, value.__self__])
        elif isinstance(value, functools.partial):
            self._put("partial")
            self.value([value.func, value.args, value.keywords])
        elif isinstance(value, ModuleType):
            if not _trusted(value.__name__) or value.__name__.endswith(".random"):
                raise Unknown(f"module {value.__name__}")
            self._put("module", value.__name__)
        elif _trusted(value.__module__):
            self._put("class", value.__module__, value.__qualname__)
        else:
            self._class(value)

    def _class(self, cls: type) -> None:
        self._put("class", cls.__module__, cls.__qualname__)
        self.value([one for one in (type(cls), *cls.__bases__) if not _trusted(one.__module__)])
        self._put(*[f"{one.__module__}.{one.__qualname__}" for one in (type(cls), *cls.__bases__)])
        if issubclass(cls, enum.Enum):
            for name, member in cls.__members__.items():
                self._put(name)
                self.value(member.value)
            self.value([one for one in vars(cls).values() if isinstance(one, (FunctionType, property, *_DESCRIPTORS))])
            return
        for name, one in vars(cls).items():
            # What Python or a decorator adds is made from what is added to the digest anyway.
            if name in _OWN_SLOTS or name.startswith("__dataclass_") or type(one).__name__ in _SLOT_KINDS:
                continue
            if name == "__repr__" and "__dataclass_fields__" in vars(cls) and hasattr(one, "__wrapped__"):
                continue  # made by the decorator, from fields that are here too
            self._put(name)
            self.value(one)

    def _instance(self, value: Any, kind: type) -> None:
        """Add an object by its class and its attributes; one of a C type says nothing about itself."""
        if kind.__name__ == "Kernel" and kind.__module__ == "neurontools.nki.kernel":
            self._put("kernel")
            self.value([value.func, value.grid, value.options])
            return
        names = [name for one in kind.__mro__ for name in getattr(one, "__slots__", ())]
        held = {name: getattr(value, name) for name in names if isinstance(name, str) and hasattr(value, name)}
        held |= getattr(value, "__dict__", {})
        basic = next((one for one in kind.__mro__ if one in (tuple, list, dict, int, float, str)), None)
        if basic is None and not hasattr(value, "__dict__") and not names:
            raise Unknown(repr(kind))
        if _trusted(kind.__module__) and not kind.__module__.startswith(_OPEN):
            raise Unknown(repr(kind))
        self._put("instance")
        self.value([kind, held, None if basic is None else basic(value)])

    def _function(self, function: FunctionType) -> None:
        if _trusted(function.__module__ or ""):
            self._put("function", function.__module__, function.__qualname__)
            self.value(_cells(function) if function.__closure__ else None)
            return
        self._put("function", function.__qualname__)
        self._code(function.__code__)
        self.value([function.__defaults__, function.__kwdefaults__, function.__dict__])
        self.value(_cells(function) if function.__closure__ else None)
        names, in_order = _names_of(function.__code__)
        space = function.__globals__
        for name in in_order:
            if name in space:
                self._put(name)
                self._global(space[name], names, set())
            elif hasattr(builtins, name):
                self._put("builtin", name)

    def _global(self, value: Any, names: frozenset[str], passed: set[str]) -> None:
        """Add a variable of a module; of a module only what the names of the code can reach in it."""
        if not isinstance(value, ModuleType) or _trusted(value.__name__):
            self.value(value)
            if isinstance(value, ModuleType):  # a function of it may be somebody else's by now
                self.value(
                    [
                        [name, vars(value)[name]]
                        for name in sorted(names & vars(value).keys())
                        if is_replaced(vars(value)[name])
                    ]
                )
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
        self._put("module", value.__name__)
        for name in sorted(names & vars(value).keys()):
            self._put(name)
            self._global(vars(value)[name], names, passed)

    def _code(self, code: CodeType) -> None:
        """Add code with its file and lines, which stand in the file's debug information."""
        known = _codes.get(id(code))
        if known is None:
            if len(_codes) >= _MOST_CODES:
                _codes.clear()
            known = _codes[id(code)] = _Code(code, _digest_of(code))  # kept alive with its number
        if isinstance(known.digest, str):
            raise Unknown(known.digest)
        self._put("code", known.digest)


class _Code(NamedTuple):
    """Code, which never changes, and its digest, or why it has none."""

    code: CodeType
    digest: bytes | str


_MOST_CODES = 1 << 10
# By identity: the hash of a code goes through all of its constants and names.
_codes: dict[int, _Code] = {}


def _digest_of(code: CodeType) -> bytes | str:
    """Return the digest of code with all that is defined inside it, or why there is none."""
    reason = _impurity(code)
    if reason is not None:
        return f"{code.co_name} {reason}"
    digest = _Digest()
    try:
        digest.value(
            [
                code.co_filename,
                code.co_firstlineno,
                code.co_code,
                code.co_linetable,
                code.co_names,
                code.co_varnames,
                code.co_freevars,
                code.co_cellvars,
                code.co_flags,
                code.co_exceptiontable,
            ]
        )
        for one in code.co_consts:
            digest.value(one)
    except Unknown as unknown:
        return str(unknown)
    return digest.hash.digest()


_MAPPING_PROXY = type(vars(int))
_SLOT_KINDS = frozenset({"getset_descriptor", "member_descriptor", "wrapper_descriptor", "_abc_data"})


def _cells(function: FunctionType) -> list[object]:
    """Return what a closure holds; a variable without a value yet is None, as after it is deleted."""
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            found.append(None)
    return found


@functools.lru_cache(maxsize=1 << 10)
def _impurity(code: CodeType) -> str | None:
    """Return what code does that makes two runs of it differ, None where nothing does; equal codes do the same."""
    impure = _IMPURE.intersection(code.co_names) - _OF_KERNELS
    loaded = _OF_KERNELS.intersection(code.co_names)
    if impure or (loaded and not _from_nki(code, loaded)):
        return f"uses {', '.join(sorted(impure or loaded))}"
    for one in dis.get_instructions(code):
        if one.opname in _WRITES or (one.opname == "STORE_DEREF" and one.argval in code.co_freevars):
            return f"writes {one.argval}"
        if one.opname == "IMPORT_NAME" and not _trusted(str(one.argval)):
            return f"imports {one.argval}"
    return None


@functools.lru_cache(maxsize=_MOST_CODES)
def _names_of(code: CodeType) -> tuple[frozenset[str], tuple[str, ...]]:
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


def _trusted(module: str) -> bool:
    return module.partition(".")[0] in _PURE


def _is_pure(module: object, kind: type) -> bool:
    """Return whether a callable object belongs to a trusted package, such as a function of NumPy written in C."""
    return isinstance(module, str) and _trusted(module) and kind.__name__ in _C_CALLABLES
