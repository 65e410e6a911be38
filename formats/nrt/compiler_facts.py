"""Error codes of the Neuron Graph Compiler: user-facing ones begin with E, internal ones with I.

Source: AWS Neuron documentation, compiler error-code pages; the rows that say so are named in release notes only.
"""

from __future__ import annotations

from formats.nrt.facts import NOTES, Fact

__all__ = ["COMPILER_FACTS"]

_PAGES = "AWS Neuron documentation, compiler error codes"
_MX, _SCALED = "custom call QuantizeMX: ", "scaled matrix product: "
_HBM = "The program needs more HBM than a core has: inputs and outputs, scratchpad and spills together."
_LONG = "The program has too many instructions."
_NAMED_ONLY = "Named in release notes; no page describes it."

_MEANINGS: dict[str, str] = {
    # arguments and target
    "EARG001": "The target does not have this logical core configuration.",
    "EVRF051": "The element type F8E4M3FN does not exist on trn1 and trn2.",
    "EVRF052": "The element type F8E4M3 does not exist beyond trn3.",
    # shapes
    "EMOD025": "A dimension is dynamic, bounded or not; the compiler takes static shapes.",
    "EVRF064": "The HLO breaks the rules for shapes.",
    # element types
    "ESPP004": "No code can be generated for an element type, such as float4.",
    "ESPP047": "An 8-bit floating-point type is not supported.",
    "EVRF004": "Complex numbers are supported by few operators only.",
    "EVRF005": "The FNUZ kinds of float8 are not supported.",
    "ESFH002": "A uint64 constant does not fit into 32 bits.",
    # operators
    "EUOC002": "The operator is not supported.",
    "EVRF001": "The operator is not supported.",
    "EVRF006": "The algorithm of the random number generator is not the default one.",
    "EVRF010": "A convolution dilates input and kernel together.",
    "EVRF011": "A convolution has a stride and dilates its input.",
    "EVRF013": "TopK does not take int32 and int64.",
    "EVRF016": "A reducing scatter does not take integers and booleans.",
    "EVRF017": "A windowed reduction does not take base dilation.",
    "EVRF018": "A windowed reduction does not take window dilation.",
    "EVRF019": "A windowed reduction takes exactly two operands.",
    "EVRF022": "An arithmetic shift right takes 32-bit elements only.",
    "EVRF031": "A scatter's iota indices run past the operand.",
    "EVRF056": "A gather's iota indices run past the operand.",
    # integer arithmetic
    "EVRF035": "A dot product does not take int32 on trn2 and later, nor int64 anywhere.",
    "EVRF060": "A computing scatter on integers is exact up to 2^24 only.",
    "EVRF061": "An all-reduce on integers is exact up to 2^24 only.",
    "EVRF063": "A reduce-scatter on integers is exact up to 2^24 only.",
    "EVRF062": "A power on int64 is computed in int32.",
    # custom calls
    "EHCA005": "The target of a custom call is not known.",
    "EVRF015": "The target of a custom call is not known.",
    "EVRF059": "The file of a kernel is not there.",
    "EVRF065": "The NKI version is too old.",
    "EVRF036": _MX + "its configuration is not valid JSON.",
    "EVRF037": _MX + "the number of operands is wrong.",
    "EVRF038": _MX + "the dimension is neither the last nor the one before.",
    "EVRF039": _MX + "the block size is not 32.",
    "EVRF040": _MX + "the scale method is not EMAX.",
    "EVRF041": _MX + "the input is neither BF16 nor F16.",
    "EVRF042": _MX + "the packed element type is malformed.",
    "EVRF057": _MX + "the result is not a pair.",
    "EVRF058": _MX + "the dimension is no multiple of 4.",
    "EVRF043": _SCALED + "it takes four operands.",
    "EVRF044": _SCALED + "the left side is not U32.",
    "EVRF045": _SCALED + "the output is neither F32 nor BF16.",
    "EVRF046": _SCALED + "the left side has fewer than two dimensions.",
    "EVRF047": _SCALED + "the right side has fewer than two dimensions.",
    "EVRF048": _SCALED + "the batch dimensions do not match.",
    "EVRF049": _SCALED + "its configuration is not valid.",
    "EVRF050": _SCALED + "the contracted sizes do not match.",
    "EVRF053": _SCALED + "a contracted dimension is a batch dimension too.",
    "EVRF054": _SCALED + "a batch dimension does not exist.",
    "EVRF055": _SCALED + "a contracted dimension does not exist.",
    # resources
    "EOOM001": _HBM,
    "EOOM002": _HBM,
    "EVRF009": _HBM,
    "EXSP001": _HBM,
    "EBVF030": _LONG,
    "EVRF007": _LONG,
    "EXTP004": _LONG,
    "EBIR023": "An intermediate dimension of an MLP is larger than 4096.",
    # named in release notes
    "ESMP002": "A constant index is out of bounds.",
    "IBIR229": "SBUF was extended beyond a partition.",
    **dict.fromkeys(("ITEN406", "IBIR182", "ILIN902", "INLA001", "IRPX902", "CFG015"), _NAMED_ONLY),
}
_NOTED = {"ESMP002", "IBIR229", "ITEN406", "IBIR182", "ILIN902", "INLA001", "IRPX902", "CFG015"}
_SMALLER = ("Make the batch or the model smaller, or spread it over more cores.",)
_INTERNAL = ("An error inside the compiler: update it, or report it with the log.",)


def _steps(code: str, meaning: str) -> tuple[str, ...]:
    if meaning in (_HBM, _LONG):
        return _SMALLER
    return _INTERNAL if code.startswith("I") else ()


COMPILER_FACTS: dict[str, Fact] = {
    code: Fact(
        code, f"NCC_{code}", "compiler", meaning, (), _steps(code, meaning), cite=NOTES if code in _NOTED else _PAGES
    )
    for code, meaning in _MEANINGS.items()
}
