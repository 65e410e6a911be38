"""ONNX's node tests as cases: each model becomes HLO and is compared with its expected outputs (compiler.md 4.2)."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np

from formats.errors import NeuronError, UnsupportedError
from neurontools.selftest.backends import backend_of
from neurontools.selftest.judged import judged
from neurontools.selftest.rows import CaseRow
from neurontools.version import install_with

__all__ = ["count", "name_of", "run", "version"]


@cache
def _cases() -> list[Any]:
    try:
        from onnx.backend.test.loader import load_node_model_tests  # deferred: optional onnx
    except ImportError as error:
        raise UnsupportedError(f"selftest onnx needs the extra onnx: {install_with('onnx')} ({error})") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the arithmetic that makes the expected outputs
        return sorted(load_node_model_tests(), key=lambda case: str(case.name))


def version() -> str:
    """Return the version of onnx."""
    _cases()
    import onnx  # deferred: optional onnx

    return str(onnx.__version__)


def count() -> int:
    """Return the number of cases."""
    return len(_cases())


def _array(value: Any) -> Any:
    from onnx import numpy_helper  # deferred: optional onnx

    return numpy_helper.to_array(value) if hasattr(value, "data_type") else value


def run(number: int, backend: str) -> CaseRow:
    """Import a model, evaluate it, and compare."""
    from neurontools.onnx_import import import_model  # deferred: start-up

    case = _cases()[number]
    nodes = case.model.graph.node
    group = str(nodes[0].op_type) if len(nodes) == 1 else "expanded"
    evaluate = backend_of(backend)
    inputs, outputs = case.data_sets[0]
    values = [_array(each) for each in inputs]
    names = [each.name for each in case.model.graph.input]
    given = {
        name: np.asarray(each) for name, each in zip(names, values, strict=False)
        if isinstance(each, np.ndarray | np.generic)
    }  # fmt: skip
    try:
        imported = import_model(case.model, given)
    except UnsupportedError as error:
        return CaseRow(str(case.name), group, "unsupported", str(error))
    except NeuronError as error:
        return CaseRow(str(case.name), group, "refused", str(error))
    arguments = [given[name] for name in imported.parameters]
    expected = [np.asarray(_array(each)) for each in outputs]
    kinds = {each.dtype.name for each in expected if _is_inexact(each)}
    relative, absolute = dict.fromkeys(kinds, case.rtol), dict.fromkeys(kinds, case.atol)
    found = judged(lambda: evaluate(imported.module, arguments), expected, relative, absolute)
    return CaseRow(str(case.name), group, *found)


def _is_inexact(values: Any) -> bool:
    return values.dtype.kind in "fc" or values.dtype.name.startswith(("bfloat", "float"))


def name_of(number: int) -> str:
    """Return the name of a case."""
    return str(_cases()[number].name)
