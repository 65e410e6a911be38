"""The documented error codes of the Neuron compiler: what each means, what to do, and whether this compiler raises it.

Source: compiler.md 6. The words are ours.
"""

from __future__ import annotations

from typing import Literal

from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple

__all__ = ["CODES", "Code", "code_of"]

Raised = Literal["verify", "lowering", "limit", "never"]


class Code(NamedTuple):
    """One code: who raises it here, what it says, what to do about it.

    `documented` codes are limits that AWS's compiler has and this one does not share: `--limits ours` leaves them out.
    `why_never` says of a code that is never raised which one stands in its place, or what is missing here.
    """

    name: str
    raised: Raised
    documented: bool
    meaning: str
    advice: str
    why_never: str = ""


_MEMORY = "use smaller tensors, or share the model out over more cores"
_FEWER = "share the model out over more cores, so that each graph is smaller"
_LIST = "see `neurontools compile list-operators`"
_KERNEL = "retrace the model with the toolchain that compiles it"
_OTHER_MEMORY = "EOOM001 is raised in its place"
_NO_LIMIT = "programs may have any number of instructions here"
_FLOAT = "convert to float first, or allow it with --implicit-integer-downcast"

# fmt: off
_ROWS = (
    Code("EARG001", "verify", False, "the target does not have this logical core configuration",
         "trn1 and inf2 have --lnc 1, trn2 and trn3 have 1 and 2"),
    Code("EBIR023", "never", False, "an MLP kernel's intermediate dimension is above 4096", "tile it",
         "no operation of a graph becomes such a kernel here"),
    Code("EBVF030", "never", False, "too many instructions", _FEWER,
         _NO_LIMIT),
    Code("EHCA005", "verify", False, "the target of a custom call is not known", "use one of the listed targets"),
    Code("EMOD025", "verify", False, "a dimension is dynamic", "compile for static shapes, padded or in buckets"),
    Code("EOOM001", "limit", False, "inputs, outputs, scratch and spills together exceed device memory", _MEMORY),
    Code("EOOM002", "never", False, "inputs, outputs, scratch and spills together exceed device memory", _MEMORY,
         _OTHER_MEMORY),
    Code("ESFH002", "verify", False, "an unsigned 64-bit constant does not fit into 32 bits", "use 32-bit constants"),
    Code("ESPP004", "verify", False, "no code is made for this element type", "convert to a supported type"),
    Code("ESPP047", "verify", False, "this 8-bit float is not supported", "convert to bfloat16 or float16"),
    Code("EUOC002", "lowering", False, "the operation is not supported", _LIST),
    Code("EVRF001", "verify", False, "the operation is not supported", _LIST),
    Code("EVRF004", "verify", False, "complex types are not supported", "keep real and imaginary parts apart"),
    Code("EVRF005", "verify", False, "the FNUZ kinds of 8-bit floats are not supported", "convert to a supported type"),
    Code("EVRF006", "verify", True, "random bits by another algorithm than the default", "do not name an algorithm"),
    Code("EVRF007", "never", False, "too many instructions", _FEWER,
         _NO_LIMIT),
    Code("EVRF009", "never", False, "tensors exceed device memory", _MEMORY,
         _OTHER_MEMORY),
    Code("EVRF010", "verify", True, "a convolution dilates both input and kernel", "dilate one of them beforehand"),
    Code("EVRF011", "verify", True, "a convolution with strides dilates its input", "dilate the input beforehand"),
    Code("EVRF013", "verify", True, "top-k of 32- or 64-bit integers", "convert to float first"),
    Code("EVRF015", "never", False, "the target of a custom call is not known", "use one of the listed targets",
         "EHCA005 is raised in its place"),
    Code("EVRF016", "verify", True, "a scatter reduces integers or truth values", "convert to float first"),
    Code("EVRF017", "verify", True, "a reduce-window dilates its base", "dilate the input beforehand"),
    Code("EVRF018", "verify", True, "a reduce-window dilates its window", "use a window without dilation"),
    Code("EVRF019", "verify", True, "a reduce-window has not exactly two operands", "use one window a tensor"),
    Code("EVRF022", "verify", True, "an arithmetic right shift of other than 32 bits", "convert to 32 bits first"),
    Code("EVRF031", "verify", False, "a scatter's iota goes beyond the operand", "make iota and operand equally long"),
    Code("EVRF035", "verify", True, "a product of 32-bit (trn2 on) or 64-bit integers", _FLOAT),
    Code("EVRF036", "verify", False, "QuantizeMX: the configuration is no JSON", "give a JSON object"),
    Code("EVRF037", "verify", False, "QuantizeMX: not exactly one operand", "give one tensor"),
    Code("EVRF038", "verify", False, "QuantizeMX: dim is neither the last nor the one before", "use -1 or -2"),
    Code("EVRF039", "verify", False, "QuantizeMX: block_size is not 32", "use 32"),
    Code("EVRF040", "verify", False, "QuantizeMX: scale_method is not EMAX", "use EMAX"),
    Code("EVRF041", "verify", False, "QuantizeMX: the input is neither BF16 nor F16", "convert the input"),
    Code("EVRF042", "verify", False, "QuantizeMX: type or shape of the packed result is wrong",
         "dtype float8_e5m2 or float8_e4m3fn, U32 with a quarter of the elements"),
    Code("EVRF043", "verify", False, "ScaledMatmul: not exactly four operands", "give both sides and their scales"),
    Code("EVRF044", "verify", False, "ScaledMatmul: the left side is not U32", "give QuantizeMX's packed result"),
    Code("EVRF045", "verify", False, "ScaledMatmul: the result is neither F32 nor BF16", "use one of these"),
    Code("EVRF046", "verify", False, "ScaledMatmul: the left side has fewer than two dimensions", "reshape it"),
    Code("EVRF047", "verify", False, "ScaledMatmul: the right side has fewer than two dimensions", "reshape it"),
    Code("EVRF048", "verify", False, "ScaledMatmul: batch sizes differ", "make their products equal"),
    Code("EVRF049", "verify", False, "ScaledMatmul: the configuration cannot be read", "give JSON with integers"),
    Code("EVRF050", "verify", False, "ScaledMatmul: contracted dimensions differ in size", "make them equal"),
    Code("EVRF051", "verify", False, "F8E4M3FN before trn3", "target trn3, or convert the type"),
    Code("EVRF052", "never", False, "F8E4M3 on chips newer than trn3", "use F8E4M3FN",
         "no such chip is modelled"),
    Code("EVRF053", "verify", False, "ScaledMatmul: a dimension is both batch and contracted", "use it as one of them"),
    Code("EVRF054", "verify", False, "ScaledMatmul: a batch dimension does not exist", "count from 0"),
    Code("EVRF055", "verify", False, "ScaledMatmul: a contracted dimension does not exist", "count from 0"),
    Code("EVRF056", "verify", False, "a gather's iota goes beyond the operand", "make iota and operand equally long"),
    Code("EVRF057", "verify", False, "QuantizeMX: the result is no tuple of two", "return data and scale"),
    Code("EVRF058", "verify", False, "QuantizeMX: the dimension is no multiple of 4", "pad it"),
    Code("EVRF059", "verify", False, "the file of an NKI kernel does not exist", _KERNEL),
    Code("EVRF060", "verify", True, "a scatter reduces 32- or 64-bit integers", _FLOAT),
    Code("EVRF061", "verify", True, "an all-reduce of 32- or 64-bit integers", _FLOAT),
    Code("EVRF062", "verify", True, "a power of 64-bit integers", _FLOAT),
    Code("EVRF063", "verify", True, "a reduce-scatter of 32- or 64-bit integers", _FLOAT),
    Code("EVRF064", "verify", False, "an instruction breaks the shape rules of XLA", "check how the graph was made"),
    Code("EVRF065", "verify", False, "an NKI kernel was traced by a version that is too old", _KERNEL),
    Code("EXSP001", "never", False, "tensors exceed device memory", _MEMORY,
         _OTHER_MEMORY),
    Code("EXTP004", "never", False, "too many instructions", _FEWER,
         _NO_LIMIT),
)
# fmt: on
CODES: dict[str, Code] = {one.name: one for one in _ROWS}


def code_of(text: str) -> Code:
    """Return a code by its name, with or without NCC_."""
    name = text.strip().strip("[]").upper().removeprefix("NCC_")
    found = CODES.get(name)
    if found is None:
        raise NotFoundError(f"no documented code {text!r}; there are {', '.join(CODES)}")
    return found
