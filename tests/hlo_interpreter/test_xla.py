"""Every case of the interpreter on XLA's CPU compiler too, opcode by opcode; where jax is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from formats.hlo.text import parse_module
from formats.hlo.writer import module_bytes
from neurontools.hlo_interpreter import evaluate
from neurontools.selftest.agreement import compared, flattened
from tests.hlo_interpreter.cases import CASES, Case

pytest.importorskip("jax", reason="jax is not installed")

# Layouts make a bitcast, programs do not; the custom calls are AWS's.
_NOT_THERE = ("bitcast", "custom calls")
_CASES = [each for each in CASES if each.name not in _NOT_THERE]


def _on_xla(case: Case, arguments: list[Any]) -> list[Any]:
    import jax
    from jax._src import xla_bridge
    from jax._src.lib import _jax
    from jaxlib import _hlo

    backend = xla_bridge.get_backend("cpu")
    computation = _hlo.XlaComputation(module_bytes(parse_module(case.text)))
    text = _jax.mlir.xla_computation_to_mlir_module(computation)
    devices = _jax.DeviceList(tuple(jax.devices("cpu")[:1]))
    with jax.enable_x64(True):
        try:
            executable = backend.compile_and_load(text, devices, _jax.CompileOptions())
        except jax.errors.JaxRuntimeError as error:
            if "UNIMPLEMENTED" not in str(error):
                raise
            pytest.skip(str(error).splitlines()[0])
        given = [jax.device_put(np.asarray(each), jax.devices("cpu")[0]) for each in arguments]
        results = executable.execute_sharded(given).disassemble_into_single_device_arrays()
        return [np.asarray(each[0]) for each in results]


@pytest.mark.parametrize("case", _CASES, ids=[each.name for each in _CASES])
def test_xla_agrees(case: Case) -> None:
    arguments = case.make(np.random.default_rng(11))
    got = flattened(evaluate(parse_module(case.text), arguments))
    tolerances = {"float32": 1e-5, "complex64": 1e-5, "bfloat16": 1e-2, "float16": 1e-3}
    outcome, detail = compared(got, _on_xla(case, arguments), tolerances)
    assert outcome == "agree", detail
