"""The node graph of a NEFF: `neff.json`, `kelf-0.json`, `info.json`, and the tensors of `tensor_map.json`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import prod

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neff.fields import Fields

__all__ = ["Graph", "Info", "Kelf", "Node", "TensorInfo", "parse_graph", "parse_info", "parse_kelf", "parse_tensor_map"]


class TensorInfo(NamedTuple):
    """A tensor as a file names it: NumPy name of its element type, shape, and "input", "output", "constant" or ""."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    kind: str

    @property
    def nbytes(self) -> int:
        """Return the bytes of the tensor.

        Raises FormatError for an element type that the hardware does not have.
        """
        return _size_of(self.dtype) * prod(self.shape)


@cache
def _size_of(dtype: str) -> int:
    """Return the bytes of an element; other types are refused each time, so that as many are kept as there are."""
    from formats.dtypes import Dtype  # deferred: start-up

    return Dtype.from_numpy_name(dtype).size


class Node(NamedTuple):
    """One node: `op` is "null" for an input, "tvm_op" for a compiled part; `inputs` are (node, output, version)."""

    op: str
    name: str
    inputs: tuple[tuple[int, ...], ...]
    output_names: tuple[str, ...]
    attrs: Mapping[str, str]

    @property
    def kelf(self) -> str | None:
        """Return the member that describes the compiled part."""
        return self.attrs.get("kelf")


class Graph(NamedTuple):
    """What `neff.json` says; with LNC 2 every output stands once per subgraph in it, and once in `outputs` here.

    Source: formats.md 3.3.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    raw: Mapping[str, object]


class Kelf(NamedTuple):
    """One compiled node: its subgraphs as (name, member of the definition), and the architecture code."""

    graphs: tuple[tuple[str, str], ...]
    version: str
    target: str


class Info(NamedTuple):
    """What `info.json` says."""

    tool_version: str
    kelp_version: str
    name: str
    num_tpb: int
    num_tpb_requested: int
    num_tpb_per_node: tuple[int, ...]


def parse_info(fields: Fields) -> Info:
    """Return what `info.json` says."""
    return Info(
        fields.text("tool_version", ""),
        fields.text("kelp_version", ""),
        fields.text("name", ""),
        fields.integer("num_tpb", 0),
        fields.integer("num_tpb_requested", 0),
        fields.integers("num_tpb_per_node"),
    )


def parse_kelf(fields: Fields) -> Kelf:
    """Return what a kelf member says."""
    return Kelf(
        tuple((item.text("name"), item.text("definition")) for item in fields.objects("graphs")),
        fields.text("version", ""),
        fields.text("target", ""),
    )


def parse_graph(fields: Fields) -> Graph:
    """Return the node graph with its inputs and outputs.

    Raises FormatError where an index points outside, or a tensor has no shape or element type.
    """
    nodes = tuple(_node(item) for item in fields.objects("nodes"))
    table = _Entries(nodes, fields)
    inputs = tuple(table.tensor(index, 0, "input") for index in fields.integers("arg_nodes"))
    outputs: dict[str, TensorInfo] = {}
    for head in fields.array("heads"):
        node, output = _reference(head, fields, "heads")[:2]
        tensor = table.tensor(node, output, "output")
        outputs.setdefault(tensor.name, tensor)
    return Graph(nodes, inputs, tuple(outputs.values()), fields.raw)


class _Entries:
    """Shapes and element types, which the graph keeps in lists over all outputs of all nodes."""

    def __init__(self, nodes: tuple[Node, ...], fields: Fields) -> None:
        self.nodes, self.fields = nodes, fields
        self.rows = fields.integers("node_row_ptr")
        attrs = fields.object("attrs")
        self.shapes, self.types = _tagged(attrs, "shape"), _tagged(attrs, "dltype")

    def tensor(self, node: int, output: int, kind: str) -> TensorInfo:
        if (
            not 0 <= node < len(self.nodes)
            or not 0 <= output < len(self.nodes[node].output_names)
            or node >= len(self.rows)
        ):
            raise FormatError("reference to no output of the graph", path=self.fields.where, got=f"[{node}, {output}]")
        row = self.rows[node] + output
        name = self.nodes[node].output_names[output]
        if not 0 <= row < min(len(self.shapes), len(self.types)):
            raise FormatError("tensor has no shape or type", path=self.fields.where, field=name, got=f"row {row}")
        dtype = self.types[row]
        if not isinstance(dtype, str):
            raise FormatError(
                "wrong value", path=self.fields.where, field="dltype", expected="a string", got=type(dtype).__name__
            )
        return TensorInfo(name, dtype, _shape(self.shapes[row], self.fields, name), kind)


def parse_tensor_map(fields: Fields) -> dict[str, TensorInfo]:
    """Return the tensors of `tensor_map.json` by name. Source: formats.md 3.7."""
    found = {}
    for name, item in fields.items():
        kind = item.text("kind", "constant" if item.flag("is_const") else "")
        shape = item.raw.get("sim_shape", item.raw.get("tf_shape", []))
        found[name] = TensorInfo(name, item.text("dtype"), _shape(shape, item, name), kind)
    return found


def _node(fields: Fields) -> Node:
    attrs = fields.object("attrs")
    return Node(
        fields.text("op"),
        fields.text("name", ""),
        tuple(_reference(item, fields, "inputs") for item in fields.array("inputs")),
        fields.texts("output_names"),
        {key: attrs.text(key) for key in attrs.raw},
    )


def _reference(item: object, fields: Fields, key: str) -> tuple[int, ...]:
    if not isinstance(item, list) or len(item) < 2 or any(not isinstance(v, int) or isinstance(v, bool) for v in item):
        raise FormatError("wrong value", path=fields.where, field=key, expected="[node, output, version]")
    return tuple(item)


def _tagged(attrs: Fields, key: str) -> list[object]:
    """Return the list in a pair such as ["list_shape", […]]."""
    pair = attrs.array(key)
    if len(pair) != 2 or not isinstance(pair[1], list):
        raise attrs.fail(key, "a tag and a list")
    return pair[1]


def _shape(value: object, fields: Fields, key: str) -> tuple[int, ...]:
    if not isinstance(value, list) or any(not isinstance(v, int) or isinstance(v, bool) or v < 0 for v in value):
        raise FormatError("wrong shape", path=fields.where, field=key, expected="a list of lengths")
    return tuple(value)
