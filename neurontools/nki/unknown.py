"""Names that are not there: what a kernel may have meant by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from neurontools.nki.errors import NkiValidationError
from neurontools.nki.tracer import kernel_place

__all__ = ["FIRST_GENERATION", "METHODS", "UnknownNameError", "meant", "no_values", "of_module", "of_tensor"]

# Methods that tensors of NumPy, of frameworks or of the first generation have, and what does the same here.
METHODS: Mapping[str, str] = {
    "T": "nl.transpose(tile), or permute() of free dimensions",
    "astype": "nl.copy(tile, dtype=...)",
    "broadcast_to": "nl.broadcast_to(tile, shape), or broadcast(dim, size)",
    "copy": "nl.copy(tile)",
    "device": "buffer",
    "expand_dims": "expand_dim(dim)",
    "fill": "nisa.memset(tile, value)",
    "flatten": "flatten_dims(start_dim, end_dim), or reshape(shape)",
    "item": "nl.device_print(prefix, tile): values exist once the device runs",
    "max": "nl.max(tile, axis)",
    "mean": "nl.mean(tile, axis)",
    "min": "nl.min(tile, axis)",
    "numpy": "nl.device_print(prefix, tile): values exist once the device runs",
    "squeeze": "squeeze_dim(dim)",
    "sum": "nl.sum(tile, axis)",
    "to": "nl.copy(tile, dtype=...)",
    "tolist": "nl.device_print(prefix, tile): values exist once the device runs",
    "transpose": "nl.transpose(tile), or permute() of free dimensions",
    "unsqueeze": "expand_dim(dim)",
}
_INDICES = "slices, nl.ds(start, size) or tensor.ap(pattern)"
_MODULES: Mapping[str, str] = {
    "arange": _INDICES, "mgrid": _INDICES, "static_cast": "nl.copy(tile, dtype=...)", "baremetal": "nki.jit",
    "simulate_kernel": "nki.simulate(kernel)(...)", "benchmark": "nki.jit, and look at times with neurontools profile",
    "profile": "nki.jit, and look at times with neurontools profile",
}  # fmt: skip

# What the modules of the first generation have, and the present ones lack.
FIRST_GENERATION: Mapping[str, frozenset[str]] = {
    "nki": frozenset({"baremetal", "benchmark", "profile", "simulate_kernel", "trace"}),
    "nki.isa": frozenset(),
    "nki.language": frozenset(
        {"Tile", "all_reduce", "arange", "atomic_rmw", "finfo", "fp32", "loop_reduce", "mgrid", "static_cast"}
    ),
}


class UnknownNameError(NkiValidationError, AttributeError):
    """Say that a module or a tensor has no such name, and which one may be meant."""


def meant(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" for a name that is much like others, "" where none is."""
    found = get_close_matches(name, [one for one in known if not one.startswith("_")], 2, 0.7)
    if not found:  # a capital letter too many is no other word
        found = [one for one in known if one.lower() == name.lower()]
    return f"; did you mean {' or '.join(found)}?" if found else ""


def no_values(name: str) -> str:
    """Return what to say to a kernel that asks a tensor for its values."""
    return (f"{name}: a tensor has no values while the kernel is traced; use nl and nisa on it instead of NumPy, "
            "print it with nl.device_print(prefix, tensor), or return it")  # fmt: skip


def of_module(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a name that `nki`, `nki.language` or `nki.isa` lacks."""
    if name.startswith("__"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    said = f"; write {_MODULES[name]}" if name in _MODULES else meant(name, known)
    if name in FIRST_GENERATION[module]:
        said = f", which is of the first generation (neuronxcc.{module}){said}"
    return UnknownNameError(f"{module} has no {name}{said}, at {kernel_place()}")


def of_tensor(
    tensor: str, name: str, known: Iterable[str], methods: Mapping[str, str] = METHODS, place: str | None = None
) -> AttributeError:
    """Return the error for an attribute that tensors lack; `place` is the kernel's line where that is not at it."""
    # Protocols, and what tells a register from a tensor, are asked for often.
    if name.startswith("_") or name == "tile":
        return AttributeError(f"an NKI tensor has no {name}")
    said = f"; write {methods[name]}" if name in methods else meant(name, known)
    return UnknownNameError(f"{tensor}: an NKI tensor has no {name}{said}, at {place or kernel_place()}")
