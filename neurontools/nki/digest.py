"""A hash of values: of data what they are, each object once; what has code behind it is left to who derives from it."""

from __future__ import annotations

import enum
import functools
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, GenericAlias, MethodType, ModuleType, UnionType
from typing import Any

import numpy as np

from neurontools.nki.arguments import Arguments, framework_of
from neurontools.nki.dtype import DType
from neurontools.nki.operators import Operator
from neurontools.nki.purity import IMPURE, is_trusted
from neurontools.nki.watch import Watch

__all__ = ["DESCRIPTORS", "Digest", "Given", "Unknown"]

DESCRIPTORS = (staticmethod, classmethod)
_SIMPLE = frozenset({type(None), type(Ellipsis), type(NotImplemented), bool, int, float, complex, str, bytes})
_OPEN = ("collections", "formats", "neurontools", "types")  # of these an object's attributes say all there is
_C_CALLABLES = frozenset({"_ArrayFunctionDispatcher", "classmethod_descriptor", "method_descriptor",
                          "wrapper_descriptor"})  # fmt: skip
_WITH_CODE = (CodeType, FunctionType, MethodType, functools.partial, ModuleType, type, property, *DESCRIPTORS)
_MAPPING_PROXY = type(vars(int))
# What cannot change: a copy of one that derives from these is made of the same items again.
_FIXED = frozenset({tuple, int, float, str})


class Unknown(Exception):  # noqa: N818  nothing is wrong: such a launch is traced again
    """Something that a launch depends on and that has no digest."""


class Digest(ABC):
    """Feed values into a hash; each object once, by a number when it comes again.

    `seen` has the numbers by identity, `kept` the objects, so that no identity is used twice.  A `watch` is told
    what is about to be read of objects that can change.
    """

    def __init__(self, watch: Watch | None = None) -> None:
        self._watch = watch
        self.hash = hashlib.sha256()
        self.seen: dict[int, int] = {}
        self.kept: list[object] = []

    @abstractmethod
    def code_behind(self, value: Any) -> None:
        """Add something of `_WITH_CODE`."""

    def put(self, *parts: object) -> None:
        """Add the text of values, or bytes."""
        for part in parts:
            raw = part if part.__class__ is bytes else str(part).encode("utf-8", "backslashreplace")
            self.hash.update(b"%d:%b" % (len(raw), raw))

    def value(self, value: Any) -> None:
        """Add any value.  Raises Unknown for one of a kind that is not understood."""
        kind = type(value)
        if kind in _SIMPLE:
            self.put(kind.__name__, value if kind in (str, bytes) else repr(value))
            return
        number = self.seen.get(id(value))
        if number is not None:
            self.put("again", number)
            return
        self.seen[id(value)] = len(self.seen)
        self.kept.append(value)
        self._object(value, kind)

    def values(self, values: Iterable[Any]) -> None:
        """Add values that belong together."""
        items = [*values]
        self.put("values", len(items))
        for one in items:
            self.value(one)

    def _object(self, value: Any, kind: type) -> None:
        if isinstance(value, DType):
            self.put("dtype", str(value))
        elif isinstance(value, Operator):
            self.put("operator", value.name)
        elif isinstance(value, enum.Enum):
            if self._watch is not None:
                self._watch.instance(value)
            self.value(kind)
            self.put(value.name)
        elif kind in (tuple, list):
            self.put(kind.__name__, len(value))
            if kind is list and self._watch is not None:
                self._watch.row(value)
            for one in value:
                self.value(one)
        elif kind in (dict, _MAPPING_PROXY):
            if self._watch is not None:
                self._watch.dictionary(value)
            self._dictionary(value)
        elif kind in (set, frozenset):
            if self._watch is not None:
                self._watch.row(value)
            if not all(type(one) in (int, str, bytes, bool) for one in value):
                raise Unknown(f"a set of {value!r}")
            self.put("set", sorted(map(repr, value)))
        elif kind in (slice, range):
            self.put(kind.__name__, repr(value))
        elif framework_of(value) == "numpy" or isinstance(value, np.generic):
            if value.dtype.hasobject:
                raise Unknown("an array of objects")
            if self._watch is not None:
                self._watch.array(value)
            self.put("values", value.dtype.str, value.dtype.name, np.shape(value), value.tobytes())
        elif isinstance(value, np.dtype):
            self.put("numpy", value.str, value.name)
        elif isinstance(value, _WITH_CODE):
            self.code_behind(value)
        elif isinstance(value, (BuiltinFunctionType, np.ufunc)) or _is_pure(getattr(value, "__module__", None), kind):
            self._named(value)
        elif isinstance(value, (GenericAlias, UnionType)) or kind.__module__ in ("typing", "types"):
            self.put("typing", repr(value))
        else:
            self._instance(value, kind)

    def _dictionary(self, value: Mapping[Any, Any]) -> None:
        self.put("dict", len(value))
        for key, one in value.items():
            self.value(key)
            self.value(one)

    def _named(self, value: Any) -> None:
        """Add a function or object of a trusted package by its name."""
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        module = getattr(value, "__module__", None) or "builtins"
        owner = getattr(value, "__self__", None)
        if not isinstance(name, str) or not is_trusted(module) or not isinstance(owner, (ModuleType, type, type(None))):
            raise Unknown(repr(value))
        # Code that calls it by another name than its own does not show that.
        if name in IMPURE or name == "print" or ".random" in module:
            raise Unknown(f"{module}.{name} as a value")
        self.put("named", module, name)

    def _instance(self, value: Any, kind: type) -> None:
        """Add an object by its class and its attributes; one of a C type says nothing about itself."""
        if self._watch is not None:
            self._watch.instance(value)
        if kind.__name__ == "Kernel" and kind.__module__ == "neurontools.nki.kernel":
            self.put("kernel")
            self.values([value.func, value.grid, value.options])
            return
        names = [name for one in kind.__mro__ for name in getattr(one, "__slots__", ())]
        held = {name: getattr(value, name) for name in names if isinstance(name, str) and hasattr(value, name)}
        held |= getattr(value, "__dict__", {})
        basic = next((one for one in kind.__mro__ if one in (tuple, list, dict, int, float, str)), None)
        if basic is None and not hasattr(value, "__dict__") and not names:
            raise Unknown(repr(kind))
        if is_trusted(kind.__module__) and not kind.__module__.startswith(_OPEN):
            raise Unknown(repr(kind))
        if self._watch is not None and (any(names) or (basic is not None and basic not in _FIXED)):
            self._watch.is_repeatable = False  # slots and items that nobody is told of
        self.put("instance")
        self.value(kind)
        self._dictionary(held)
        self.value(None if basic is None else basic(value))


class Given(Digest):
    """A hash of what one launch is given; `roots` are the classes and functions among it, which it holds by number."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Any] = []

    def arguments(self, arguments: Arguments) -> None:
        """Add the arguments: of arrays shape, type and which are the same, of the rest the values."""
        for number, one in enumerate(arguments.inputs):
            kind = one.array.dtype
            self.put("array", one.name, one.array.shape, one.dtype, kind.str, kind.type.__name__)
            self.seen[id(one.original)] = number  # kept by the arguments
        self.put(arguments.framework)
        self.values(arguments.args)
        self.values(arguments.kwargs)
        self.values(arguments.kwargs.values())

    def code_behind(self, value: Any) -> None:
        """Add a number, and leave the rest to who walks over the roots."""
        if isinstance(value, type) and is_trusted(value.__module__):
            self.put("class", value.__module__, value.__qualname__)
        else:
            self.put("root", len(self.roots))
            self.roots.append(value)


def _is_pure(module: object, kind: type) -> bool:
    """Return whether a callable object belongs to a trusted package, such as a function of NumPy written in C."""
    return is_trusted(module) and kind.__name__ in _C_CALLABLES
