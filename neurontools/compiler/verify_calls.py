"""Rules of custom calls: which targets are known, and what the microscaling ones ask of operands and configuration.

Source: compiler.md 6.1.
"""

from __future__ import annotations

import os
from math import prod
from pathlib import Path
from typing import Any

from formats.errors import NeuronError
from formats.neff.fields import Fields
from neurontools.builder.native_kernel import TARGET, config_of
from neurontools.compiler.errors import UnsupportedGraphError, failed
from neurontools.compiler.expand_calls import KNOWN_TARGETS, UNDERSTOOD
from neurontools.compiler.graph import Node
from neurontools.compiler.inlining import check_kernel
from neurontools.compiler.options import CompileOptions

__all__ = ["check_call"]

_QUANTIZE = ("QuantizeMX", "AwsNeuronQuantizeMX")
_SCALED = "__op$block_scaled_dot"
_FP8 = ("float8_e5m2", "float8_e4m3fn")
_BLOCK, _PACKED = 32, 4


def check_call(node: Node, options: CompileOptions) -> NeuronError | None:
    """Return what a rule has against a custom call."""
    target: str = node.attrs["target"]
    if target in _QUANTIZE:
        return _quantize(node, options)
    if target == _SCALED:
        return _scaled(node)
    if target == TARGET:
        return _kernel(node, options)
    if target not in KNOWN_TARGETS and target not in UNDERSTOOD:
        names = ", ".join(sorted(KNOWN_TARGETS))
        return failed("EHCA005", f"custom call {target!r} is not known; allowed are {names}", node.origin)
    return None


def _quantize(node: Node, options: CompileOptions) -> NeuronError:
    origin = node.origin
    given_config = config_of(node.attrs["config"])
    if given_config is None:
        return failed("EVRF036", "QuantizeMX: backend_config is no JSON object", origin)
    if len(node.operands) != 1:
        return failed("EVRF037", f"QuantizeMX: {len(node.operands)} operands, must be 1", origin)
    given, config = node.operands[0], given_config.raw
    rank = len(given.shape)
    dim = config.get("dim", 0)
    allowed = {rank - 1, -1} | ({rank - 2, -2} if rank >= 2 else set())
    if not isinstance(dim, int) or dim not in allowed or rank < 1:
        return failed("EVRF038", f"QuantizeMX: dim {dim!r} of rank {rank}, must be the last or the one before", origin)
    if config.get("block_size", _BLOCK) != _BLOCK:
        return failed("EVRF039", f"QuantizeMX: block_size {config['block_size']!r}, must be {_BLOCK}", origin)
    if config.get("scale_method", "EMAX") != "EMAX":
        return failed("EVRF040", f"QuantizeMX: scale_method {config['scale_method']!r}, must be EMAX", origin)
    if given.dtype not in ("bf16", "f16"):
        return failed("EVRF041", f"QuantizeMX: an input of {given.dtype}, must be bf16 or f16", origin)
    if len(node.results) != 2:
        return failed("EVRF057", f"QuantizeMX: {len(node.results)} results, must be 2", origin)
    if given.shape[dim] % _PACKED:
        return failed(
            "EVRF058", f"QuantizeMX: {given.shape[dim]} elements in dim {dim}, must be a multiple of 4", origin
        )
    kind, data = config.get("dtype"), node.results[0]
    wanted = list(given.shape)
    wanted[dim] //= _PACKED
    if kind not in _FP8 or data.dtype != "u32" or (len(data.shape) == rank and list(data.shape) != wanted):
        return failed("EVRF042", f"QuantizeMX: dtype {kind!r} into {data.dtype}{list(data.shape)}, must be "
                      f"{' or '.join(_FP8)} into u32{wanted}", origin)  # fmt: skip
    if kind == "float8_e4m3fn" and (options.fp8_as_e4m3 or options.chip.generation != "gen4"):
        return failed("EVRF051", f"QuantizeMX: {kind} on {options.target}; trn3 has it", origin)
    return UnsupportedGraphError("EUOC002", "QuantizeMX is verified, and not compiled", origin)


def _scaled(node: Node) -> NeuronError:
    origin = node.origin
    if len(node.operands) != 4:
        return failed("EVRF043", f"ScaledMatmul: {len(node.operands)} operands, must be 4", origin)
    left, right = node.operands[:2]
    if left.dtype != "u32":
        return failed("EVRF044", f"ScaledMatmul: left side of {left.dtype}, must be u32", origin)
    if node.result.dtype not in ("f32", "bf16"):
        return failed("EVRF045", f"ScaledMatmul: a result of {node.result.dtype}, must be f32 or bf16", origin)
    for code, side, value in (("EVRF046", "left", left), ("EVRF047", "right", right)):
        if len(value.shape) < 2:
            return failed(code, f"ScaledMatmul: {side} side of rank {len(value.shape)}, must be 2 or more", origin)
    numbers = _numbers(node.attrs["config"])
    if numbers is None:
        return failed("EVRF049", "ScaledMatmul: backend_config is no JSON with integers", origin)
    return _dimensions(node, numbers) or UnsupportedGraphError(
        "EUOC002", "block_scaled_dot is verified, and not compiled", origin
    )


def _numbers(config: bytes) -> dict[str, list[int]] | None:
    if config in (b"", b"None"):
        whole: dict[str, Any] = {}
    else:
        read = config_of(config)
        if read is None:
            return None
        whole = read.raw
    inner = whole.get("scaled_dot_backend_config", whole)
    if not isinstance(inner, dict):
        return None
    names = [f"{side}_{kind}_dimensions" for side in ("lhs", "rhs") for kind in ("batch", "contracting")]
    found = {name: inner.get(name, []) for name in names}
    integers = all(isinstance(each, list) and all(type(one) is int for one in each) for each in found.values())
    return found if integers else None


def _dimensions(node: Node, numbers: dict[str, list[int]]) -> NeuronError | None:
    origin, sizes, products = node.origin, [], []
    for side, value in zip(("lhs", "rhs"), node.operands[:2], strict=True):
        rank = len(value.shape)
        batch = numbers[f"{side}_batch_dimensions"]
        for one in batch:
            if not 0 <= one < rank:
                return failed("EVRF054", f"ScaledMatmul: {side} batch dimension {one} of rank {rank}", origin)
        contracted = (numbers[f"{side}_contracting_dimensions"] or [rank - 1])[0]
        if not 0 <= contracted < rank:
            return failed("EVRF055", f"ScaledMatmul: {side} contracting dimension {contracted} of rank {rank}", origin)
        if contracted in batch:
            return failed("EVRF053", f"ScaledMatmul: {side} dimension {contracted} is batch and contracted", origin)
        sizes.append(value.shape[contracted])
        products.append((len(batch), prod(value.shape[one] for one in batch)))
    if products[0][0] == products[1][0] and products[0][1] != products[1][1]:
        return failed("EVRF048", f"ScaledMatmul: batches of {products[0][1]} and {products[1][1]}", origin)
    if sizes[0] != sizes[1]:
        return failed("EVRF050", f"ScaledMatmul: contracts {sizes[0]} with {sizes[1]} elements", origin)
    return None


def _kernel(node: Node, options: CompileOptions) -> NeuronError | None:
    """Return why an NKI kernel is not compiled: its file is missing, it is not ours, or it does not fit the call."""
    config = config_of(node.attrs["config"])
    if config is not None and "neurontools" in config:
        return check_kernel(node, options.chip)
    text = node.attrs["config"].decode("utf-8", "replace").strip()
    named = {} if config is None else {**config.raw, **_inner_objects(config)}
    path = Path(next((str(named[key]) for key in _FILE_KEYS if isinstance(named.get(key), str)), text))
    near = Path.cwd() / path.parent.name / path.name
    # os.path.exists: no file has a name that is too long, either
    if text and "/" in str(path) and not os.path.exists(path) and not os.path.exists(near):
        return failed("EVRF059", f"kernel file {str(path)!r} does not exist, nor does {str(near)!r}", node.origin)
    if config is not None and "kernel_version" not in config:
        return failed("EVRF065", "the NKI kernel does not say the version it was traced with", node.origin)
    what = f"NKI kernel of {str(path)[:200]!r}: only kernels that neurontools' own nki traced are inlined"
    return UnsupportedGraphError("EUOC002", f"{what}; trace the model with that", node.origin)


def _inner_objects(config: Fields) -> dict[str, Any]:
    """Return what the objects inside of a configuration hold, such as the `klir_binary` of documented ones."""
    return {key: value for one in config.raw.values() if isinstance(one, dict) for key, value in one.items()}


_FILE_KEYS = ("kernel_file", "path", "binary", "neff")
