"""Documented limits that several instructions share; each failure names instruction, argument, value and limit."""

from __future__ import annotations

from typing import Any

import numpy as np

from formats.neuron_core import start_partitions
from neurontools.builder.trace import Space, View
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.isa.constants import engine
from neurontools.nki.isa.indirection import operand
from neurontools.nki.isa.refusals import reject, told
from neurontools.nki.operators import Operator, operator_of
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer

__all__ = [
    "ENGINE_NAMES",
    "alike",
    "alu",
    "bitvec_dtypes",
    "column",
    "flag",
    "free_one",
    "not_both_psum",
    "number",
    "pick_engine",
    "same_free",
    "same_partitions",
    "scalar_or_column",
    "tensor",
    "tile",
]

ENGINE_NAMES = {
    engine.tensor: "PE",
    engine.vector: "DVE",
    engine.scalar: "Activation",
    engine.gpsimd: "Pool",
    engine.sync: "SP",
}

_PSUM = Space.PSUM
_HBM = Space.HBM
_ANY_ENGINE = engine.unknown


def tensor(tracer: Tracer, instruction: str, argument: str, value: Any) -> NkiTensor:
    """Return `value` if it is a tensor of this kernel."""
    if value.__class__ is not NkiTensor:
        raise no_tensor(tracer, instruction, argument, value)
    return value


def no_tensor(tracer: Tracer, instruction: str, argument: str, value: Any) -> NkiValidationError:
    """Return the error for an operand that is no tensor; operators and shapes tell of the old order."""
    limit = "must be an NKI tensor"
    if operator_of(value) is not None or isinstance(value, (tuple, list)):
        limit += "; calls of the first generation (neuronxcc.nki) return a tile, here dst comes first"
    return reject(tracer, instruction, argument, told(value), limit)


def tile(tracer: Tracer, instruction: str, argument: str, value: Any, psum: bool = True) -> View:
    """Return the view of an on-chip operand of a compute engine.

    Checks the space and the start partition.  Source: hardware.md 2.3, 2.4.
    """
    if value.__class__ is not NkiTensor:
        raise no_tensor(tracer, instruction, argument, value)
    view: View | None = value._view
    if view is None:
        indirect = value._indirection is not None
        view = operand(tracer, instruction, argument, value) if indirect else value.base_view
    allocation = view.allocation
    space = allocation.space
    if space is _HBM:
        raise reject(tracer, instruction, argument, f"{value.name} in HBM", "must be in SBUF or PSUM")
    if space is _PSUM and not psum:
        raise reject(tracer, instruction, argument, f"{value.name} in PSUM", "must be in SBUF")
    start = view.partition if allocation.address is None else view.partition + allocation.address[0]
    if start:
        count = view.partitions
        if start not in start_partitions(count):
            tracer.limit(reject(tracer, instruction, argument, f"{value.name} from partition {start}",
                                f"{count} partitions must start at {starts_text(count)}"))  # fmt: skip
    return view


def alike(t: Tracer, instruction: str, **tensors: Any) -> tuple[View, ...]:
    """Return the views of on-chip operands by name, which have equally many partitions, and elements in each."""
    views = tuple(tile(t, instruction, argument, one) for argument, one in tensors.items())
    *others, last = tensors
    names = f"{', '.join(others)} and {last}"
    same_partitions(t, instruction, names, *views)
    same_free(t, instruction, names, *tensors.values())
    return views


def column(t: Tracer, instruction: str, argument: str, value: Any, partitions: int) -> View:
    """Return the view of a (partitions, 1) tile."""
    view = tile(t, instruction, argument, value)
    if value.free_size != 1 or view.partitions != partitions:
        raise reject(t, instruction, argument, f"of shape {value.shape}", f"must be of shape ({partitions}, 1)")
    return view


def not_both_psum(t: Tracer, instruction: str, names: str, first: View, second: View) -> None:
    """Refuse two inputs of the Vector engine that both lie in PSUM."""
    if first.allocation.space is _PSUM and second.allocation.space is _PSUM:
        both = f"{first.allocation.name} and {second.allocation.name}, both in PSUM"
        raise reject(t, instruction, names, both, "at most one may be")


def starts_text(count: int) -> str:
    """Return the partitions that so many may start at, as text."""
    *others, last = map(str, start_partitions(count))
    return f"{', '.join(others)} or {last}" if others else last


def same_partitions(tracer: Tracer, instruction: str, names: str, *views: View) -> None:
    """Refuse operands with different partition counts."""
    count = views[0].partitions
    for view in views:
        if view.partitions != count:
            raise reject(tracer, instruction, f"partition count of {names}",
                         " and ".join(str(one.partitions) for one in views), "must be equal")  # fmt: skip


def same_free(tracer: Tracer, instruction: str, names: str, *tensors: NkiTensor) -> None:
    """Refuse operands whose elements per partition differ; their shapes may."""
    shape = tensors[0].shape[1:]
    for one in tensors:
        if one.shape[1:] != shape:
            sizes = [other.free_size for other in tensors]
            if len(set(sizes)) > 1:
                raise reject(tracer, instruction, f"elements per partition of {names}", " and ".join(map(str, sizes)),
                             "must be equal")  # fmt: skip
            return


def free_one(view: View) -> View:
    """Return a partitions x 1 view without its extra dimensions of 1."""
    allocation, dtype, partition, partitions, offset, _ = view
    return View(allocation, dtype, partition, partitions, offset, ((1, 1),))


def number(value: Any) -> bool:
    """Return whether `value` is a Python or NumPy number."""
    return isinstance(value, (int, float, np.number, np.bool_))


def flag(tracer: Tracer, instruction: str, argument: str, value: Any) -> int:
    """Return 1 for True and 0 for False; what only counts as one, as an operand in the wrong place, is refused."""
    if value is True or value is False:
        return int(value)
    if not isinstance(value, (int, np.integer, np.bool_)) or value not in (0, 1):
        raise reject(tracer, instruction, argument, repr(value), "must be True or False")
    return int(value)


def scalar_or_column(
    tracer: Tracer, instruction: str, argument: str, value: Any, partitions: int, dtypes: tuple[str, ...] | None = None
) -> float | View:
    """Return the number, or the view of a (partitions, 1) tile, that an operand is."""
    if value.__class__ is NkiTensor:
        view = tile(tracer, instruction, argument, value)
        if value.free_size != 1 or view.partitions != partitions:
            raise reject(tracer, instruction, argument, f"a tile of shape {value.shape}",
                         f"must be a number or of shape ({partitions}, 1)")  # fmt: skip
        if dtypes is not None and value.dtype not in dtypes:
            raise reject(tracer, instruction, argument, f"a tile of {value.dtype}", f"must be {' or '.join(dtypes)}")
        return free_one(view)
    if not number(value):
        raise reject(
            tracer, instruction, argument, told(value), f"must be a number or a tile of shape ({partitions}, 1)"
        )
    found: float = value.item() if isinstance(value, np.generic) else value
    return found


def alu(tracer: Tracer, instruction: str, argument: str, value: Any) -> Operator:
    """Return the operator with an ALU code that `op=` names, if this generation has it."""
    found = operator_of(value)
    if found is None or found.alu is None:
        raise reject(tracer, instruction, argument, repr(value), "must be an nl operator with an ALU code")
    if found.since > tracer.generation:
        raise reject(tracer, instruction, argument, f"nl.{found.name}", f"exists from gen{found.since} on")
    return found


def bitvec_dtypes(tracer: Tracer, instruction: str, op: Operator, **tensors: NkiTensor) -> None:
    """Refuse bit operators on tiles that are not integers."""
    for argument, one in tensors.items():
        if not one.dtype.is_int:
            raise reject(tracer, instruction, argument, f"of {one.dtype}", f"nl.{op.name} takes integer types only")


def pick_engine(tracer: Tracer, instruction: str, wanted: Any, default: str, allowed: tuple[str, ...]) -> str:
    """Return the profiler name of the engine that the kernel asked for, or `default`."""
    if wanted is _ANY_ENGINE or wanted is None:
        return default
    name = ENGINE_NAMES.get(wanted)
    if name is None or name not in allowed:
        names = " or ".join(f"nisa.engine.{one.name}" for one, its in ENGINE_NAMES.items() if its in allowed)
        raise reject(tracer, instruction, "engine", wanted, f"must be {names}")
    return name
