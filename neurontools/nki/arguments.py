"""Arguments of a launch: arrays of any framework become kernel inputs, everything else passes through untouched."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, NoneType
from typing import Any

import numpy as np

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from neurontools.nki.choices import with_choices
from neurontools.nki.dtype import DType, dtype_of, is_packed
from neurontools.nki.errors import NkiValidationError, UnsupportedError
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer

__all__ = ["Arguments", "Input", "framework_of", "from_numpy", "map_structure", "to_numpy", "write_back"]


_PLAIN = frozenset((int, float, bool, str, NoneType))  # what most arguments are that are no arrays
_INPUTS = MemoryRegion.private_hbm


class Input(NamedTuple):
    """One distinct array argument: its parameter name, the caller's object, and the same values for NumPy."""

    name: str
    original: Any
    array: np.ndarray[Any, Any]
    dtype: DType


def framework_of(value: Any) -> str | None:
    """Return numpy, torch or jax for an array of that framework; frameworks are never imported here."""
    kind = value.__class__
    if kind is np.ndarray:
        return "numpy"
    if kind is NkiTensor or kind in _PLAIN:
        return None
    if isinstance(value, np.ndarray):
        return "numpy"
    # An array of a framework can only be here if somebody has imported the framework.
    for name, kind in (("torch", "Tensor"), ("jax", "Array")):
        array_type = getattr(sys.modules.get(name), kind, None)
        if isinstance(array_type, type) and isinstance(value, array_type):
            return name
    return None


def to_numpy(value: Any) -> np.ndarray[Any, Any]:
    """Return the values of an array as NumPy sees them, without a copy where that is possible."""
    framework = framework_of(value)
    if framework == "jax" and isinstance(value, sys.modules["jax"].core.Tracer):
        raise NkiValidationError("a JAX array under jit, grad or vmap has no values yet; launch the kernel outside")
    if framework != "torch":
        array = np.asarray(value)
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    torch = sys.modules["torch"]
    if value.layout is not torch.strided or value.device.type == "meta":
        raise NkiValidationError(f"a {value.layout} tensor on {value.device} has no elements in a row; make it dense")
    # a view with lazy negation or gradients has no plain bytes
    value = value.detach().cpu().resolve_neg().contiguous()
    name = str(value.dtype).removeprefix("torch.")
    if name == "bfloat16" or name.startswith("float8"):
        # NumPy gets types that it does not know through integers of their size
        carrier = torch.int16 if value.dtype.itemsize == 2 else torch.uint8
        return value.view(carrier).numpy().view(np.dtype(name))  # type: ignore[no-any-return]
    return value.numpy()  # type: ignore[no-any-return]


def from_numpy(array: np.ndarray[Any, Any], framework: str) -> Any:
    """Return an array of the framework with the values of a NumPy array."""
    if framework == "torch":
        torch = sys.modules["torch"]
        name = array.dtype.name
        if name == "float8_e4m3":
            # Torch has only the variant without infinities, whose bits say the same up to 240, the largest number here.
            if not np.isfinite(array.astype(np.float32)).all():
                raise UnsupportedError("torch has no float8_e4m3, and its float8_e4m3fn no infinity; return bfloat16")
            name = "float8_e4m3fn"
        if name == "bfloat16" or name.startswith("float8"):
            return torch.from_numpy(array.view(np.dtype(f"int{array.itemsize * 8}"))).view(getattr(torch, name))
        return torch.from_numpy(array)
    if framework == "jax":
        return sys.modules["jax"].numpy.asarray(array)
    return array


def write_back(original: Any, values: np.ndarray[Any, Any]) -> bool:
    """Update an argument with what the kernel wrote to it; False where it is read-only.

    JAX arrays cannot be updated and stay as they are.
    """
    framework = framework_of(original)
    if framework == "torch":
        original.detach().copy_(from_numpy(np.ascontiguousarray(values), "torch"))
    elif framework == "numpy":
        if not original.flags.writeable:
            return False
        original[...] = values.view(original.dtype) if is_packed(original.dtype) else values
    return True


def map_structure(value: Any, change: Callable[[Any, str], Any], path: str = "") -> Any:
    """Return `value` with `change(leaf, path)` applied inside lists, tuples and dicts.

    The very object comes back when nothing inside it changed.
    """
    if isinstance(value, (list, tuple)):
        items = [map_structure(one, change, f"{path}_{index}") for index, one in enumerate(value)]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        if isinstance(value, list):
            return items
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, dict):
        entries = {key: map_structure(one, change, f"{path}_{key}") for key, one in value.items()}
        return value if all(entries[key] is one for key, one in value.items()) else entries
    return change(value, path)


def _bound(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call by parameter; TypeError where they do not fit, as `inspect` says it."""
    # Most kernels are plain functions of plain parameters, and a signature takes as long as to trace a few operations.
    if type(function) is FunctionType and not function.__dict__:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        many = len(args)
        needed = names[many : len(names) - len(function.__defaults__ or ())]
        if (
            not code.co_posonlyargcount
            and not code.co_kwonlyargcount
            and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
            and many <= len(names)
            and kwargs.keys() <= {*names[many:]}
            and kwargs.keys() >= {*needed}
        ):
            if not kwargs:
                return dict(zip(names, args, strict=False))
            named = {name: kwargs[name] for name in names[many:] if name in kwargs}
            return {**dict(zip(names, args, strict=False)), **named}
    return inspect.signature(function).bind(*args, **kwargs).arguments


class Arguments:
    """The arguments of one launch; `bind` makes input tensors of them once for each trace."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs = with_choices(function, args, kwargs)
        self.inputs: list[Input] = []
        self.framework = "numpy"
        self._seen: dict[int, int] = {}
        try:
            bound = _bound(function, args, kwargs)
        except TypeError as error:
            raise TypeError(f"{getattr(function, '__name__', 'kernel')}() {error}") from None
        for name, value in bound.items():
            if value.__class__ is np.ndarray:  # the usual case
                self._collect(value, name)
            elif value.__class__ not in _PLAIN:
                map_structure(value, self._collect, name)

    def _collect(self, value: Any, path: str) -> Any:
        framework = framework_of(value)
        # the same array given twice is one input: what the kernel writes to one is seen through the other
        if framework is not None and id(value) not in self._seen:
            if not self.inputs:
                self.framework = framework
            try:
                array = to_numpy(value)
                dtype = dtype_of(array.dtype)
            except (FormatError, NkiValidationError) as error:
                raise NkiValidationError(f"argument {path}: {error}") from error
            self._seen[id(value)] = len(self.inputs)
            self.inputs.append(Input(path, value, array, dtype))
        return value

    def bind(self, t: Tracer) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Allocate the inputs of a trace; return arguments with each array replaced by its tensor."""
        tensors: list[NkiTensor] = []
        for one in self.inputs:
            # a tensor of NKI has at least one dimension
            tensor = new_tensor(t, one.array.shape or (1,), one.dtype, _INPUTS, one.name, kind="input")
            t.trace.inputs.append(tensor.allocation)
            tensors.append(tensor)

        def replace(value: Any, path: str) -> Any:
            index = self._seen.get(id(value)) if framework_of(value) is not None else None
            return value if index is None else tensors[index]

        def bound(value: Any) -> Any:
            if value.__class__ is np.ndarray:
                return tensors[self._seen[id(value)]]
            return value if value.__class__ in _PLAIN else map_structure(value, replace)

        return (*map(bound, self.args),), {name: bound(one) for name, one in self.kwargs.items()}
