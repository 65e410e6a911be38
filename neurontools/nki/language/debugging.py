"""What a kernel says about values that only the run knows: `assert` on a tensor, and `device_print`."""

from __future__ import annotations

import dis
import linecache
import re
from types import FrameType

from formats.debug_stream import tensor_name
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.isa.dma import dma_copy
from neurontools.nki.language.movement import in_sbuf
from neurontools.nki.operations import OPERATIONS
from neurontools.nki.regions import MemoryRegion, is_hbm
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Observation, current, kernel_frame, kernel_line, tracer

__all__ = ["device_print"]

_SKIP = frozenset({"CACHE", "TO_BOOL", "COPY", "NOT_TAKEN"})
_RAISES = frozenset({"LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT"})
_ASSERT_LINE = re.compile(r"\s*assert\b(?!.*\b(?:not|and|or|if)\b)")


def is_assertion(frame: FrameType) -> bool:
    """Return whether the frame is in the middle of `assert x`, which raises when x is false.

    The bytecode says so: a jump over the assertion when x is true.  pytest rewrites `assert` in test modules, so the
    source line answers where the bytecode does not.
    """
    following = (one for one in dis.get_instructions(frame.f_code) if one.offset >= frame.f_lasti)
    jumped = False
    for one in following:
        if jumped:
            if one.opname in _RAISES:
                return True
            if one.opname not in _SKIP:
                break
        elif one.opname.startswith("POP_JUMP") and one.opname.endswith("IF_TRUE"):
            jumped = True
        elif one.opname not in _SKIP:
            break
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno, frame.f_globals)
    return _ASSERT_LINE.match(line) is not None


def is_field(frame: FrameType) -> bool:
    """Return whether what the frame tests is an attribute, as in `if params.bias:`; the bytecode says so."""
    before = None
    for one in dis.get_instructions(frame.f_code):
        if one.offset >= frame.f_lasti:
            break
        if one.opname not in _SKIP:
            before = one
    return before is not None and before.opname == "LOAD_ATTR"


def observe(kind: str, value: NkiTensor, text: str) -> None:
    """Copy a tensor to a hidden output, one part per program: the debug stream's, or one that the launch looks at."""
    t = tracer()
    programs = t.trace.num_programs
    shape = value.shape if programs == 1 else (programs, *value.shape)
    number = len(t.observations)
    name = tensor_name(number, text) if kind == "print" else f"{kind}_{number}"
    copy = new_tensor(t, shape, value.dtype, MemoryRegion.shared_hbm, name, kind="output")
    dma_copy(copy if programs == 1 else copy[t.trace.program_id], in_sbuf(t, value))
    t.observations.append(Observation(kind, copy.allocation, value.shape, kernel_line(), text))


def truth(value: NkiTensor) -> bool:
    """Return True in `assert value`, which then holds or fails after the run; elsewhere the truth is unknown.

    A tensor in HBM is there, hence true: no engine computes in HBM, so what kernels ask by `if bias:` is whether the
    argument was given, as with `if bias is not None:`.  So is a field with a tensor in it, `if params.bias:`.
    """
    frame = kernel_frame()
    if current() is not None and frame is not None:
        if is_assertion(frame):
            observe("assert", value, f"assertion on {value.name}")
            return True
        if is_field(frame):
            return True
    if is_hbm(value.buffer):
        return True
    file, line = kernel_line()
    raise NkiValidationError(
        f"the truth of {value!r} is not known while tracing, at {file}:{line} (only `assert tensor` "
        "is taken, and checked after the run)"
    )


def device_print(print_prefix: str, tensor: NkiTensor) -> None:
    """Print a tensor behind a prefix when the device is here, as an event of the debug stream."""
    t = tracer()
    if not isinstance(tensor, NkiTensor):
        raise t.error(f"nl.device_print: tensor is {tensor!r}, must be an NKI tensor")
    observe("print", tensor, str(print_prefix))


OPERATIONS["truth"] = truth
