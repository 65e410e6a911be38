"""The table of functions is complete: against what is written for it, and against the public headers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from neurontools.libnrt.calls import CALLS
from neurontools.libnrt.functions import FUNCTIONS
from neurontools.libnrt.start import PARTS, start

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DECLARED = re.compile(r"^(?:NRT_STATUS|void|size_t|const char)\s*\*?\s*\w+\s*\([^;{]*\)\s*;", re.MULTILINE)
# Enumerations are unsigned in the ABI of these platforms, and the callback is a pointer.
_ENUMS = r"\b(nrt_framework_type_t|nrt_tensor_placement_t|nrt_dtype_t|nrt_op_type_t|nrt_cc_op_type_t|nrta_xu_t)\b"


def test_every_function_is_written_or_says_what_it_lacks() -> None:
    assert len(PARTS) == 5
    names = [function.name for function in FUNCTIONS]
    assert len(names) == len(set(names))
    missing = {function.name for function in FUNCTIONS if function.missing}
    assert set(CALLS) - set(names) == set()
    assert set(names) - set(CALLS) - missing == set()
    assert set(CALLS) & missing == set()


def _normal(prototype: str) -> str:
    text = re.sub(_ENUMS, "nrt_enum_t", prototype)
    text = text.replace("NRT_ASYNC_EXEC_STATUS_CALLBACK", "nrt_async_exec_callback_t").replace("(void)", "()")
    return re.sub(r"\s+", "", text.rstrip(";"))


def test_prototypes_are_those_of_the_public_headers() -> None:
    corpus = os.environ.get("NEURONTOOLS_CORPUS")
    folder = Path(corpus or "", "aws-neuron-sdk", "src", "libnrt", "include", "nrt")
    if not corpus or not folder.is_dir():
        pytest.skip("NEURONTOOLS_CORPUS names no folder with aws-neuron-sdk")
    for header in sorted({function.header for function in FUNCTIONS}):
        text = _COMMENT.sub("", (folder / header).read_text())
        theirs = {_normal(found) for found in _DECLARED.findall(text)}
        ours = {_normal(function.prototype) for function in FUNCTIONS if function.header == header}
        assert theirs == ours, header


class _Ffi:
    """What cffi offers an embedded library; functions that are bound twice forget the first binding."""

    NULL = None

    def __init__(self) -> None:
        self.bound: list[str] = []

    def def_extern(self, name: str) -> Callable[[object], None]:
        return lambda entry: self.bound.append(name)


def test_first_calls_from_many_threads_start_one_library() -> None:
    ffi, lib = _Ffi(), object()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: start(ffi, lib), range(16)))
    assert all(one is found[0] for one in found)
    assert sorted(ffi.bound) == sorted(f"py_{function.name}" for function in FUNCTIONS)
    assert start(ffi, object()) is not found[0]
