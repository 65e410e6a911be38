"""Expressions over counters, registers, time, tensors and the kernel's variables, for `print`, conditions and `set`.

`S[5] >= 3 and time > 2us`, `nc1.E[2]`, `PE.R[3] == 7` (`R[3]`, or `$R[3]` as words show it, of the engine in question),
`max(abs(a - b))`, `t[k, 0:4].T`; tensor names that are not identifiers stand in quotes. Parsed by Python's own grammar,
computed here: nothing but these operators, functions and attributes exists, and what they may grow to is bounded.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from math import inf, nan, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.neff.visits import TensorName
from neurontools.debugger.errors import UsageError
from neurontools.debugger.names import engine_name, is_engine, parse_time

if TYPE_CHECKING:
    from emulator.machine_view import MachineView
    from formats.neff.visits import Value as Variable
    from neurontools.debugger.execution import Execution, Owner
    from neurontools.debugger.results import TensorValue
    from neurontools.debugger.tensors import Tensors

__all__ = ["FUNCTIONS", "Expression", "Situation", "holds", "situation_at"]

Value = Any  # a number or a truth, or an array of them
_TIME = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?(?:ps|ns|us|ms|s))\b")
_DOLLAR = re.compile(r"\$(?=R\[)")  # as words show registers
_QUOTED = re.compile(r"""\b(nc\d{1,9})\.("[^"\\]*"|'[^'\\]*')""", re.IGNORECASE)  # a tensor of a core, by any name
_CORE = re.compile(r"nc\d{1,9}", re.IGNORECASE)
_ELEMENTS = 1 << 26  # of an array that an expression makes
_BITS = 4096  # of an integer that one makes
_NODES = 400
_PRODUCTS = 1 << 32  # multiplications of one matrix product

_BINARY: dict[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Value, Value], Value]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Value], Value]] = {
    ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip
# By name: what takes one value, or a value and an axis.
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "abs": np.abs, "min": np.min, "max": np.max, "mean": np.mean, "sum": np.sum, "std": np.std, "any": np.any,
    "all": np.all, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "sqrt": np.sqrt, "exp": np.exp,
    "log": np.log, "round": np.round, "floor": np.floor, "ceil": np.ceil, "argmin": np.argmin, "argmax": np.argmax,
    "count": np.count_nonzero, "int": int, "float": float,
}  # fmt: skip
_CONSTANTS = {"nan": nan, "inf": inf}
_AXES = frozenset({"mean", "sum", "std", "any", "all", "argmin", "argmax"})
_TWO: dict[str, Callable[[Value, Value], Value]] = {"min": np.minimum, "max": np.maximum}
_ATTRIBUTES: dict[str, Callable[[Value], Value]] = {
    "T": np.transpose, "shape": np.shape, "size": np.size, "ndim": np.ndim,
}  # fmt: skip


class Situation(NamedTuple):
    """Where an expression is computed: what completes or has completed, the device, the kernel's variables there."""

    device: MachineView
    tensors: Tensors
    core: int
    engine: str
    pc: int
    time_ps: int
    events: int
    variables: Mapping[str, Variable]


def situation_at(execution: Execution, owner: Owner, time_ps: int, events: int) -> Situation:
    """Return where expressions about a completion are computed."""
    core, engine, pc, _ = owner
    place = execution.word_of(owner)
    variables = execution.program.variables(*place)
    if not 0 <= core < len(execution.device.cores):
        core = execution.focus[0]
    name = engine if engine in execution.device.cores[core].engines else execution.focus[1]
    return Situation(execution.device, execution.tensors, core, name, pc, time_ps, events, variables)


class Expression:
    """One expression; `text` is what was asked for. UsageError where it is none; `example` says what one is like."""

    def __init__(self, text: str, example: str = "max(abs(a - b))", what: str = "an expression") -> None:
        self.text = text.strip()
        prepared = _TIME.sub(lambda found: str(parse_time(found[1])), self.text)
        prepared = _DOLLAR.sub("", prepared).replace("&&", " and ").replace("||", " or ")
        prepared = _QUOTED.sub(r"\1[\2]", prepared)  # as Python's grammar takes it; see `_is_quoted`
        try:
            self._tree = ast.parse(prepared.strip(), mode="eval").body
            nodes = sum(1 for _ in ast.walk(self._tree))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise UsageError(f"{self.text!r} is not {what} such as {example}") from None
        if nodes > _NODES:
            raise UsageError(f"an expression of {nodes} parts is too long; at most {_NODES}")

    def __repr__(self) -> str:
        return self.text

    def value(self, at: Situation) -> Value:
        """Return what it is; UsageError, NotFoundError or ArithmeticError where it has no answer."""
        with np.errstate(all="ignore"):
            return _value(self._tree, at)

    def index(self, at: Situation) -> str:
        """Return the index of "_[index]" with its numbers worked out."""
        if not isinstance(self._tree, ast.Subscript):
            raise UsageError(f"{self.text!r} has no index")
        return _index_text(self._tree.slice, at)

    def tensor(self, at: Situation) -> TensorValue | None:
        """Return the tensor or slice that the whole expression names, None where it is anything else."""
        node = self._tree
        if _names(node):
            found = _find(node, at)
            return found.tensor if isinstance(found, _Named) else None
        return None


class _Named(NamedTuple):
    """A tensor, or a slice of one, that a name means."""

    tensor: TensorValue


def _value(node: ast.expr, at: Situation) -> Value:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return node.value
    if isinstance(node, ast.BoolOp):
        # As Python does: what follows the answer is not computed.
        wanted = isinstance(node.op, ast.Or)
        return next((True for item in node.values if _truth(item, at) == wanted), False) == wanted
    if isinstance(node, ast.UnaryOp):
        operand = _truth(node.operand, at) if isinstance(node.op, ast.Not) else _value(node.operand, at)
        return _computed(node, _UNARY[type(node.op)], operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _value(node.left, at), _value(node.right, at)
        _bounded(node, left, right)
        return _computed(node, _BINARY[type(node.op)], left, right)
    if isinstance(node, ast.Compare):
        return _compared(node, at)
    if isinstance(node, ast.Call):
        return _called(node, at)
    if isinstance(node, ast.IfExp):
        return _value(node.body if _truth(node.test, at) else node.orelse, at)
    if _names(node):
        found = _find(node, at)
        return _plain(found.tensor.array) if isinstance(found, _Named) else found
    raise UsageError(f"{ast.unparse(node)!r} cannot be part of an expression")


def _names(node: ast.expr) -> bool:
    """Return whether a node is a name, or a part of what has one."""
    return isinstance(node, ast.Name | ast.Subscript | ast.Attribute) or _is_quoted(node)


def _plain(values: Any) -> Value:
    """Return elements in a type that results fit in: floating-point types up to fp32 become fp32, integers 64 bits."""
    # In their own types a sum of fp16 is infinite and 1 - 2 of uint8 is 255: an answer that nobody asked for.
    kind = np.asarray(values).dtype
    if kind.kind == "b" or (kind.isbuiltin == 1 and kind.itemsize == 8):
        return values
    return np.asarray(values).astype(np.int64 if kind.kind in "iu" else np.float32, copy=False)[()]


def _truth(node: ast.expr, at: Situation) -> bool:
    value = _value(node, at)
    if np.ndim(value):
        raise UsageError(f"{ast.unparse(node)!r} has {np.size(value)} values; any(…) or all(…) makes one of them")
    return bool(value)


def _computed(node: ast.expr, function: Callable[..., Value], *values: Value) -> Value:
    try:
        found = function(*values)
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        why = "" if isinstance(error, TypeError) else f" ({error})"
        raise UsageError(f"{ast.unparse(node)} cannot be computed{why}") from None
    if isinstance(found, complex):  # such as (-8) ** 0.5, which Python's own numbers make one
        raise UsageError(f"{ast.unparse(node)} cannot be computed (it is no real number)")
    return found


def _bounded(node: ast.BinOp, left: Value, right: Value) -> None:
    """Raise UsageError for what would become too large: numbers of thousands of bits, arrays that fill the memory."""
    if isinstance(left, int) and isinstance(right, int):  # truths among them, which shift as 0 and 1
        bits = abs(left).bit_length()
        if isinstance(node.op, ast.Pow):
            bits *= max(abs(right), 1)
        elif isinstance(node.op, ast.LShift):
            bits += max(right, 0)
        elif isinstance(node.op, ast.Mult):
            bits += abs(right).bit_length()
        if bits > _BITS:
            raise UsageError(f"{ast.unparse(node)} has more than {_BITS} bits")
        return
    one, two = np.shape(left), np.shape(right)
    if isinstance(node.op, ast.MatMult):
        if not one or not two:
            raise UsageError(f"{ast.unparse(node)} is not a product of two arrays")
        size, products = prod(one[:-1]) * (two[-1] if len(two) > 1 else 1), prod(one) * (two[-1] if len(two) > 1 else 1)
        if products > _PRODUCTS:
            raise UsageError(f"{ast.unparse(node)} takes {products} multiplications; at most {_PRODUCTS}")
    else:
        try:
            size = prod(np.broadcast_shapes(one, two))
        except ValueError:
            raise UsageError(f"{ast.unparse(node)}: shapes {list(one)} and {list(two)} do not fit") from None
    if size > _ELEMENTS:
        raise UsageError(f"{ast.unparse(node)} has {size} elements; at most {_ELEMENTS}")


def _compared(node: ast.Compare, at: Situation) -> Value:
    left, answer = _value(node.left, at), True
    for kind, item in zip(node.ops, node.comparators, strict=True):
        if type(kind) not in _COMPARE:
            raise UsageError(f"{ast.unparse(node)!r}: compare with == != < <= > >=")
        right = _value(item, at)
        answer = answer & _computed(node, _COMPARE[type(kind)], left, right)
        left = right
    return answer


def _called(node: ast.Call, at: Situation) -> Value:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    function = FUNCTIONS.get(name)
    if function is None or node.keywords or not 1 <= len(node.args) <= 2:
        raise UsageError(f"no function {ast.unparse(node)}; there are {', '.join(FUNCTIONS)}, each of one value")
    values = [_value(each, at) for each in node.args]
    if len(values) == 1:
        return _computed(node, function, values[0])
    if name in _TWO:
        return _computed(node, _TWO[name], *values)
    if name not in _AXES or not isinstance(values[1], int):
        raise UsageError(f"{name} takes one value; min and max take two, {', '.join(sorted(_AXES))} an axis")
    return _computed(node, lambda array, axis: function(array, axis=axis), *values)


# --- names -----------------------------------------------------------------------------------------------------------


def _find(node: ast.expr, at: Situation) -> Value | _Named:
    """Return a counter, a register, a variable of the kernel, or the tensor that a name means."""
    index: ast.expr | None = None
    base = node
    if isinstance(node, ast.Subscript) and not _is_quoted(node):
        whole = _held(node, at)
        if whole is not None:
            return _Named(at.tensors.value(whole, at.core))
        index, base = node.slice, node.value
        part = _held(base, at)
        if part is not None:
            return _tensor([part], at.core, index, at, variables=False)
    names = _path(base)
    if names is not None and len(names) == 1:
        _refuse_holder(names[0], at)
    if isinstance(base, ast.Attribute) and base.attr in _ATTRIBUTES and not _is_tensor(names, at):
        if node is base:
            return _ATTRIBUTES[base.attr](_value(base.value, at))
        names = None
    if names is None:  # a part of what was computed
        if index is None:
            raise UsageError(f"{ast.unparse(node)!r} is not a name")
        return _computed(node, lambda values: np.asarray(values)[_index(index, at)], _value(base, at))
    core, engine, quoted = at.core, at.engine, _is_quoted(base)
    if len(names) > 1 and _CORE.fullmatch(names[0]):
        core, names = int(names[0][2:]), names[1:]
        if core >= len(at.device.cores):
            raise NotFoundError(f"no core {core}; there are {len(at.device.cores)}")
    if not quoted:
        if len(names) > 1 and is_engine(names[0]):
            engine, names = engine_name(names[0]), names[1:]
        if names in (["R"], ["S"], ["E"]):
            return _counter(names[0], core, engine, index, at)
        plain = {"time": at.time_ps, "events": at.events, "pc": at.pc, "core": at.core, **_CONSTANTS}
        if len(names) == 1 and names[0] in plain and index is None:
            return plain[names[0]]
    return _tensor(names, core, index, at, not quoted)


def _is_quoted(node: ast.expr) -> bool:
    """Return whether a node is the name of a tensor in quotes: "x", or nc1."x", which stands here as nc1["x"]."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and bool(_CORE.fullmatch(node.value.id)) and _is_quoted(node.slice)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _held(node: ast.expr, at: Situation) -> TensorName | None:
    """Return the tensor that a part of a list, tuple or dictionary of the kernel is, as `tiles[k]` or `made["out"]`."""
    key = _key(node, at) if isinstance(node, ast.Subscript) else ""
    found = at.variables.get(key)
    return found if isinstance(found, TensorName) and found in at.tensors.names(at.core) else None


def _key(node: ast.expr, at: Situation) -> str:
    """Return how a part of something that holds tensors is named in visits, "" where it is no such part."""
    if isinstance(node, ast.Name):
        return node.id
    head = _key(node.value, at) if isinstance(node, ast.Subscript) else ""
    if not isinstance(node, ast.Subscript) or not head or not holds(head, at.variables):
        return ""
    if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return f"{head}[{node.slice.value!r}]"
    place = _index(node.slice, at)
    if type(place) is int and place < 0:  # from behind, as in Python
        rest = len(head) + 1
        numbers = {name[rest:].split("]")[0] for name in at.variables if name.startswith(f"{head}[")}
        place += len(numbers)
    return f"{head}[{place}]" if type(place) is int else ""


def holds(name: str, variables: Mapping[str, Variable]) -> bool:
    """Return whether a variable of the kernel is a list, tuple or dictionary of tensors."""
    return any(each.startswith(f"{name}[") for each in variables)


def _refuse_holder(name: str, at: Situation) -> None:
    if name not in at.variables and holds(name, at.variables):
        parts = [f"{each} is {value}" for each, value in at.variables.items() if each.startswith(f"{name}[")]
        raise UsageError(f"{name} holds several tensors; print one of them: {', '.join(parts)}")


def _tensor(names: list[str], core: int, index: ast.expr | None, at: Situation, variables: bool) -> Value | _Named:
    variable = at.variables.get(names[0]) if variables and len(names) == 1 else None
    name = ".".join(names)
    if isinstance(variable, TensorName):
        # A name may be that of another tensor by now: a kernel's variable is what it was there.
        name = variable if variable in at.tensors.names(core) else name
    elif variable is not None:
        return variable if index is None else _computed(index, lambda: np.asarray(variable)[_index(index, at)])
    text = name + ("" if index is None else f"[{_index_text(index, at)}]")
    return _Named(at.tensors.value(text, core))


def _is_tensor(names: list[str] | None, at: Situation) -> bool:
    return names is not None and ".".join(names) in at.tensors.names(at.core)


def _path(node: ast.expr) -> list[str] | None:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        head = _path(node.value)
        return None if head is None else [*head, node.attr]
    if isinstance(node, ast.Subscript) and _is_quoted(node):
        return [*(_path(node.value) or ()), *(_path(node.slice) or ())]
    return [str(node.value)] if isinstance(node, ast.Constant) and _is_quoted(node) else None


def _index(node: ast.expr, at: Situation) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(_index(each, at) for each in node.elts)
    if isinstance(node, ast.Slice):
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else _index(part, at) for part in parts))
    if isinstance(node, ast.Constant) and (node.value is None or node.value is ...):
        return node.value
    value = _value(node, at)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise UsageError(f"[{ast.unparse(node)}] is not an index: numbers, slices, ... and None are")
    return int(value)


def _index_text(node: ast.expr, at: Situation) -> str:
    """Return an index with its numbers worked out, as tensors take it."""

    def shown(item: Any) -> str:
        if isinstance(item, slice):
            ends = ["" if part is None else str(part) for part in (item.start, item.stop)]
            return ":".join(ends) + ("" if item.step is None else f":{item.step}")
        return "..." if item is ... else str(item)

    found = _index(node, at)
    return ", ".join(map(shown, found)) + ("," * (len(found) == 1)) if isinstance(found, tuple) else shown(found)


def _counter(name: str, core: int, engine: str, index: ast.expr | None, at: Situation) -> int:
    where = at.device.cores[core]
    tables: dict[str, Sequence[int]] = {"S": where.semaphores.values, "E": where.events.values}
    if name == "R":
        found = where.engines.get(engine)
        if found is None:
            raise UsageError("registers of which engine? PE.R[3], Pool.R[0], …")
        tables["R"] = found.registers
    try:
        number = None if index is None or isinstance(index, ast.Slice | ast.Tuple) else _index(index, at)
    except (UsageError, NotFoundError):
        number = None
    if not isinstance(number, int):
        raise UsageError(f"{name}[…] takes one number")
    if not 0 <= number < len(tables[name]):
        raise NotFoundError(f"no {name}[{number}]; there are 0 to {len(tables[name]) - 1}")
    return int(tables[name][number])
