"""Kernels as graphs carry them: the `backend_config` of a custom call to `AwsNeuronCustomNativeKernel`.

The documented form is base64 of a JSON object with the kernel's version, name and grid and the name of a file that
AWS's own front end wrote (compiler.md 5.7). Ours has the traces themselves under `neurontools`, so it needs no file and
outlives the process that traced; the compiler inlines them.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.limits import DEFAULT_LIMITS
from formats.named_tuple import NamedTuple
from formats.neff.fields import Fields, load
from neurontools.builder.loaded_trace import load_trace
from neurontools.builder.saved_trace import save_trace
from neurontools.builder.trace import CollectiveOp, Trace

__all__ = ["TARGET", "VERSION", "KernelResult", "NativeKernel", "config_of", "decode", "encode"]

TARGET = "AwsNeuronCustomNativeKernel"
VERSION = 1  # of the object around ours, as documented calls have it
_FORMAT = 1
_WHERE = "backend_config"


class KernelResult(NamedTuple):
    """One result: elements of the tensor numbered `allocation` of the first program; offset and strides in elements."""

    allocation: int
    dtype: Dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class NativeKernel(NamedTuple):
    """A traced kernel: a trace for each program, and its results."""

    name: str
    grid: tuple[int, ...]
    traces: tuple[Trace, ...]
    results: tuple[KernelResult, ...]

    @property
    def has_collectives(self) -> bool:
        """Return whether the kernel communicates with other ranks."""
        return any(isinstance(op, CollectiveOp) for trace in self.traces for op in trace.ops)

    @property
    def aliases(self) -> dict[int, int]:
        """Return, by the place of an input that the kernel returns, the place of that result."""
        inputs = {one.id: place for place, one in enumerate(self.traces[0].inputs)}
        found: dict[int, int] = {}
        for place, one in enumerate(self.results):
            if one.allocation in inputs:
                found.setdefault(inputs[one.allocation], place)
        return found


def encode(kernel: NativeKernel, artifact: str = "") -> str:
    """Return the text of a custom call's configuration; `artifact` names a file with the kernel alone, for others."""
    plain = {
        "format": _FORMAT,
        "traces": [save_trace(one) for one in kernel.traces],
        "results": [[one.allocation, int(one.dtype), one.shape, one.strides, one.offset] for one in kernel.results],
    }
    packed = zlib.compress(json.dumps(plain, separators=(",", ":")).encode(), 6)
    whole = {
        "kernel_version": VERSION,
        "func_name": kernel.name,
        "grid": list(kernel.grid),
        "has_collectives": kernel.has_collectives,
        "neurontools": base64.b64encode(packed).decode(),
    }
    if artifact:
        first = kernel.traces[0]
        outputs = [first.allocations[one.allocation].name for one in kernel.results]
        whole |= {"neff": artifact, "inputs": [one.name for one in first.inputs], "outputs": outputs}
    return base64.b64encode(json.dumps(whole).encode()).decode()


def config_of(text: bytes) -> Fields | None:
    """Return the object of a configuration, plain or in base64; None where it is none."""
    for data in (text, _from_base64(text)):
        try:
            if data is not None and data.lstrip()[:1] == b"{":
                return load(data, _WHERE)
        except FormatError:
            continue
    return None


def _from_base64(text: bytes) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def decode(config: Fields) -> NativeKernel:
    """Return the kernel that a configuration of ours holds; FormatError where it is malformed."""
    packed = _from_base64(config.text("neurontools").encode())
    most = DEFAULT_LIMITS.parsed_from(len(packed or b""))
    try:
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(packed or b"", most)
    except zlib.error:
        plain = b""
    # not at its end: more than the cap, or cut off
    if not plain or not unpacker.eof:
        raise config.fail("neurontools", f"a packed object of at most {most} bytes")
    whole = load(plain, _WHERE)
    if whole.integer("format") != _FORMAT:
        raise whole.fail("format", str(_FORMAT))
    traces = tuple(load_trace(one) for one in whole.objects("traces"))
    if len(traces) not in (1, 2) or any(one.target != traces[0].target for one in traces):
        raise whole.fail("traces", "one or two programs for one target")
    results = tuple(_result(item, traces[0], whole) for item in whole.array("results"))
    return NativeKernel(config.text("func_name"), config.shape("grid"), traces, results)


def _result(item: Any, trace: Trace, whole: Fields) -> KernelResult:
    bad = whole.fail("results", "rows of tensor, type, shape, strides and offset inside of a tensor in HBM")
    if not isinstance(item, list) or len(item) != 5 or not all(isinstance(one, list) for one in item[2:4]):
        raise bad
    number, code, shape, strides, offset = item
    if not all(type(one) is int for one in (number, code, offset, *shape, *strides)) or len(shape) != len(strides):
        raise bad
    if not 0 <= number < len(trace.allocations) or code not in Dtype._value2member_map_ or min(shape, default=1) < 1:
        raise bad
    dtype, one = Dtype(code), trace.allocations[number]
    reach = [(extent - 1) * step for extent, step in zip(shape, strides, strict=True)]
    low, high = offset + sum(min(0, one) for one in reach), offset + sum(max(0, one) for one in reach)
    if one.space.value != "hbm" or low < 0 or (high + 1) * dtype.size > one.nbytes:
        raise bad
    return KernelResult(number, dtype, tuple(shape), tuple(strides), offset)
