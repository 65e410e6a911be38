"""Activation functions as the file's own tables compute them: cubics on pieces that exponent and mantissa choose.

Source: formats.md 3.10 (inferred; checked against library functions, never against hardware's own output).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from emulator import activation_functions
from emulator.activation_functions import Activation
from emulator.dtypes import Array
from formats.errors import FormatError, UnsupportedError
from formats.neff.activation import ActivationFunction, ActivationSet

__all__ = ["MODES", "PiecewiseCubics", "bind_table"]

MODES = ("exact", "table")
_SIGN, _MAGNITUDE, _INFINITY = np.uint32(0x80000000), np.uint32(0x7FFFFFFF), np.uint32(0x7F800000)
_MANTISSA, _EXPONENTS, _BIAS = 23, 255, 127
_ONE_BUCKET = 31  # a shift that leaves nothing of the mantissa
# What steers a table in ways that are not established.
_UNKNOWN_STEPS = ("fma_const_0", "fma_const_1", "fma_indirection_src_sel", "use_multipass", "symmetry_point")


class PiecewiseCubics:
    """One function of a set: `evaluate(x)` gives fp32 values of an fp32 array of any shape.

    Raises FormatError where the profile points outside the tables, UnsupportedError where it asks for steps whose
    meaning is not established.
    """

    def __init__(self, function: ActivationFunction, tables: ActivationSet) -> None:
        self.name, profile = function.name, function.profile
        where = f"{tables.name}: {function.name}"
        odd = [name for name in _UNKNOWN_STEPS if profile.get(name)]
        if odd:
            raise UnsupportedError(f"activation table {where} uses {odd[0]}, whose meaning is not established")
        missing = [name for name in _needed() if name not in profile]
        if missing:
            raise FormatError("activation profile is incomplete", path=where, field=missing[0])
        self._folds = bool(profile.get("symmetry_opt_en")) and not profile.get("symmetry_opt_use_neg_region")
        self._odd = self._folds and bool(profile.get("sym_invert_sign_point"))
        # By sign and exponent: first bucket, and how far the mantissa is shifted to count from there.
        self._first = np.zeros((2, _EXPONENTS + 1), np.int64)
        self._shift = np.full((2, _EXPONENTS + 1), _ONE_BUCKET, np.uint32)
        self._large: list[tuple[np.uint32, int]] = []
        for row, sign in enumerate(("pos", "neg")):
            self._sign(row, sign, profile, tables, where)
        self._buckets: npt.NDArray[np.float32] = np.ascontiguousarray(tables.buckets.array().T)
        self._special = tuple(
            np.uint32(profile[name] & 0xFFFFFFFF).view(np.float32)
            for name in ("fnan_result", "fpinf_result", "fninf_result", "fzero_result")
        )

    def _sign(self, row: int, sign: str, profile: Any, tables: ActivationSet, where: str) -> None:
        """Fill in one half: below the first threshold one bucket, above the second one another, between them pieces."""
        count = len(tables.buckets)
        small, large = profile[f"{sign}_small_signal_pwl_control"], profile[f"{sign}_large_signal_pwl_control"]
        for size, index in (("small", small), ("large", large)):
            if not 0 <= index < count:
                raise FormatError(
                    "activation profile points outside its buckets",
                    path=where,
                    field=f"{sign}_{size}_signal_pwl_control",
                    expected=f"below {count}",
                    got=index,
                )
        threshold = profile[f"large_{sign}_signal_exp_threshold"]
        mantissa = profile[f"large_{sign}_signal_mantissa_threshold"]
        edge = (threshold << _MANTISSA) + mantissa
        self._large.append((np.uint32(min(max(edge, 0), int(_MAGNITUDE))), large))
        begin = profile[f"small_{sign}_signal_exp_threshold"]
        for exponent in range(_EXPONENTS):
            if exponent < begin:
                self._first[row, exponent] = small
                continue
            if exponent > threshold or (exponent == threshold and mantissa == 0):
                self._first[row, exponent] = large
                continue
            if row and self._folds:
                continue  # negative values use the positive half
            place = profile[f"pwl_control_base_{sign}"] + exponent - _BIAS - profile["exp_offset"]
            if not 0 <= place < len(tables.controls):
                raise FormatError(
                    "activation profile points outside its controls",
                    path=where,
                    field=f"pwl_control_base_{sign}",
                    expected=f"below {len(tables.controls)}",
                    got=place,
                )
            control = tables.controls[place]
            if control.bucket + (1 << control.log2_count) > count:
                raise FormatError(
                    "activation control points outside the buckets",
                    path=where,
                    field="bucket",
                    expected=f"below {count}",
                    got=control.bucket,
                )
            # What is left of the mantissa counts the buckets: in every known table as many bits as they have.
            shift = control.shift if control.log2_count else _ONE_BUCKET
            if (1 << _MANTISSA) - 1 >> shift >= 1 << control.log2_count:
                raise FormatError(
                    "activation control chooses among more buckets than it has",
                    path=where,
                    field="shift",
                    expected=f"{_MANTISSA - control.log2_count} or more",
                    got=shift,
                )
            self._first[row, exponent] = control.bucket
            self._shift[row, exponent] = shift

    def evaluate(self, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the function's value of every element."""
        bits = x.view(np.uint32)
        magnitude = bits & _MAGNITUDE
        row = np.zeros(x.shape, np.int64) if self._folds else (bits >> np.uint32(31)).astype(np.int64)
        exponent = (magnitude >> np.uint32(_MANTISSA)).astype(np.int64)
        piece = (magnitude & np.uint32((1 << _MANTISSA) - 1)) >> self._shift[row, exponent]
        index = self._first[row, exponent] + piece
        for sign, (edge, large) in enumerate(self._large[:1] if self._folds else self._large):
            np.copyto(index, large, where=(magnitude >= edge) & (row == sign))
        d0, d1, d2, d3, x0 = (np.take(column, index, mode="clip") for column in self._buckets)
        with np.errstate(all="ignore"):
            # What folds is computed of the magnitude, and takes the sign back where the function is odd.
            t = (magnitude.view(np.float32) if self._folds else x) - x0
            value: npt.NDArray[np.float32] = d0 + t * (d1 + t * (d2 + t * d3))
        if self._odd:
            np.copyto(value, -value, where=bits >= _SIGN)
        nan, plus, minus, zero = self._special
        np.copyto(value, zero, where=magnitude == 0)
        np.copyto(value, plus, where=bits == _INFINITY)
        np.copyto(value, minus, where=bits == (_INFINITY | _SIGN))
        np.copyto(value, nan, where=magnitude > _INFINITY)
        return value


def _needed() -> tuple[str, ...]:
    ends = ("pos", "neg")
    return (
        "exp_offset",
        "fnan_result",
        "fpinf_result",
        "fninf_result",
        "fzero_result",
        *(f"pwl_control_base_{end}" for end in ends),
        *(f"{size}_{end}_signal_exp_threshold" for size in ("small", "large") for end in ends),
        *(f"large_{end}_signal_mantissa_threshold" for end in ends),
        *(f"{end}_{size}_signal_pwl_control" for size in ("small", "large") for end in ends),
    )


def bind_table(function: ActivationFunction, tables: ActivationSet) -> Activation:
    """Return the call `f(x, out, immediate)` of a table; of a function without one, and of copies, the exact one."""
    exact = activation_functions.FUNCTIONS.get(function.name)
    if exact is activation_functions.COPY or not function.has_table:
        return activation_functions.bind(function.name)
    cubics = PiecewiseCubics(function, tables)

    def call(x: Array, out: Array, immediate: float) -> None:
        np.copyto(out, cubics.evaluate(np.ascontiguousarray(x)).reshape(out.shape))

    return call
