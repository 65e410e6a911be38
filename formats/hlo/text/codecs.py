"""How values of attributes are written in HLO text: one pair of functions for each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from formats.hlo.attributes import (
    MOST_DEVICES,
    ConvolutionDimensionNumbers,
    DeviceList,
    Metadata,
    OutputAlias,
    PaddingDimension,
    Sharding,
    SliceDimension,
    WindowDimension,
)
from formats.hlo.text.lexer import Lexer, quoted, quoted_bytes
from formats.hlo.text.values import parse_shape, shape_text
from formats.named_tuple import NamedTuple

__all__ = ["Codec", "braced", "codecs", "parse_index", "texts"]


class Codec(NamedTuple):
    """Print a value, and read one."""

    show: Callable[[Any], str]
    read: Callable[[Lexer], Any]


def braced(numbers: Any) -> str:
    """Return whole numbers as {1,2}."""
    return f"{{{','.join(map(str, numbers))}}}"


def _items(lexer: Lexer, read: Callable[[Lexer], Any], left: str = "{", right: str = "}") -> tuple[Any, ...]:
    found: list[Any] = []
    lexer.need(left)
    while not lexer.accept(right):
        if found:
            lexer.need(",")
        found.append(read(lexer))
    return tuple(found)


def parse_index(lexer: Lexer) -> tuple[int, ...]:
    """Return {1,2} as numbers."""
    return _items(lexer, Lexer.integer)


def texts(attributes: dict[str, str]) -> str:
    """Return frontend attributes as {key="value",...}."""
    return f"{{{','.join(f'{key}={quoted(value)}' for key, value in attributes.items())}}}"


def _read_texts(lexer: Lexer) -> dict[str, str]:
    def pair(lexer: Lexer) -> tuple[str, str]:
        key = lexer.string() if lexer.here.kind == "string" else lexer.name()
        lexer.need("=")
        if lexer.here.kind == "string":
            return key, lexer.string()
        start = lexer.here.offset  # an attribute whose value is a dictionary is kept as its text
        lexer.skip_value()
        return key, lexer.text[start : lexer.here.offset].strip().rstrip(",").rstrip()

    return dict(_items(lexer, pair))


def _slices(parts: tuple[SliceDimension, ...]) -> str:
    each = [f"[{p.start}:{p.limit}{f':{p.stride}' if p.stride != 1 else ''}]" for p in parts]
    return f"{{{', '.join(each)}}}"


def _read_slice(lexer: Lexer) -> SliceDimension:
    lexer.need("[")
    start = lexer.integer()
    lexer.need(":")
    limit = lexer.integer()
    stride = lexer.integer() if lexer.accept(":") else 1
    lexer.need("]")
    return SliceDimension(start, limit, stride)


def _paddings(parts: tuple[PaddingDimension, ...]) -> str:
    return "x".join(
        f"{p.edge_padding_low}_{p.edge_padding_high}{f'_{p.interior_padding}' if p.interior_padding else ''}"
        for p in parts
    )


def _read_paddings(lexer: Lexer) -> tuple[PaddingDimension, ...]:
    return tuple(PaddingDimension(*map(int, part.split("_"))) for part in _pads(lexer))


def _pads(lexer: Lexer) -> list[str]:
    if lexer.here.kind == "string" and lexer.here.text == '""':
        lexer.take()
        return []
    if lexer.at(",", "{", "}") or lexer.here.kind in ("end", "name"):
        return []  # an array without dimensions
    return lexer.kind("pads", "amounts as 0_1x2_3").split("x")


# fmt: off
_WINDOW = (
    ("size", "size", 0), ("stride", "stride", 1), ("pad", "padding_low", 0), ("lhs_dilate", "base_dilation", 1),
    ("rhs_dilate", "window_dilation", 1), ("rhs_reversal", "window_reversal", False),
)
# fmt: on


def _window(dimensions: tuple[WindowDimension, ...]) -> str:
    parts = []
    for word, field, neutral in _WINDOW:
        values = [getattr(each, field) for each in dimensions]
        if word == "pad":
            if any(each.padding_low or each.padding_high for each in dimensions):
                parts.append("pad=" + "x".join(f"{each.padding_low}_{each.padding_high}" for each in dimensions))
        elif any(value != neutral for value in values):
            parts.append(f"{word}=" + "x".join(str(int(value)) for value in values))
    return f"{{{' '.join(parts)}}}"


def _read_window(lexer: Lexer) -> tuple[WindowDimension, ...]:
    found: dict[str, list[Any]] = {}
    lexer.need("{")
    while not lexer.accept("}"):
        word = lexer.name()
        fields = {name: field for name, field, _ in _WINDOW}
        if word not in fields:
            lexer.fail("unknown part of a window", expected=", ".join(fields))
        lexer.need("=")
        if word == "pad":
            pairs = [tuple(map(int, part.split("_"))) for part in _pads(lexer)]
            if any(len(pair) != 2 for pair in pairs):
                lexer.fail("a window is padded by more than two amounts")
            found["padding_low"] = [pair[0] for pair in pairs]
            found["padding_high"] = [pair[1] for pair in pairs]
        else:
            sizes = lexer.take().text.split("x") if lexer.here.kind == "sizes" else [str(lexer.integer())]
            found[fields[word]] = [int(size) for size in sizes]
    if "window_reversal" in found:
        found["window_reversal"] = [bool(value) for value in found["window_reversal"]]
    lengths = {len(values) for values in found.values()}
    if len(lengths) > 1:
        lexer.fail("parts of a window have different numbers of dimensions")
    count = lengths.pop() if lengths else 0
    return tuple(WindowDimension(**{field: values[n] for field, values in found.items()}) for n in range(count))


def _labels(numbers: ConvolutionDimensionNumbers) -> str:
    def side(batch: int, feature: int, spatial: tuple[int, ...], letters: str) -> str:
        places = dict(zip((batch, feature), letters, strict=True)) | {dim: str(n) for n, dim in enumerate(spatial)}
        return "".join(places[dim] for dim in sorted(places))

    n = numbers
    base = side(n.input_batch_dimension, n.input_feature_dimension, n.input_spatial_dimensions, "bf")
    kernel = side(
        n.kernel_input_feature_dimension, n.kernel_output_feature_dimension, n.kernel_spatial_dimensions, "io"
    )
    result = side(n.output_batch_dimension, n.output_feature_dimension, n.output_spatial_dimensions, "bf")
    return f"{base}_{kernel}->{result}"


def _read_labels(lexer: Lexer) -> ConvolutionDimensionNumbers:
    text = lexer.kind("labels", "labels as b01f_01io->b01f")
    left, result = text.split("->")
    operand, kernel = left.split("_")
    sides: list[Any] = []
    for part, letters in ((operand, "bf"), (kernel, "io"), (result, "bf")):
        digits = sorted(c for c in part if c.isdigit())
        counted = [str(n) for n in range(len(digits))]
        if sorted(part.replace("?", "")) != sorted([*letters, *digits]) or digits != counted:
            lexer.fail("labels name a dimension twice or leave one out", expected="each once")
        sides += [part.index(letters[0]), part.index(letters[1]), tuple(part.index(d) for d in digits)]
    return ConvolutionDimensionNumbers(*sides)


def _devices(devices: DeviceList) -> str:
    if devices.iota_reshape_dims:
        perm = f"T({','.join(map(str, devices.iota_transpose_perm))})" if devices.iota_transpose_perm else ""
        dims = ",".join(map(str, devices.iota_reshape_dims))
        return f"[{devices.num_replica_groups},{devices.num_devices_per_group}]<=[{dims}]{perm}"
    return f"{{{','.join(map(braced, devices.listed))}}}"


def _iota(lexer: Lexer) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return sizes, reshaped dimensions and permutation of [2,4]<=[4,2]T(1,0)."""
    sizes = _items(lexer, Lexer.integer, "[", "]")
    dims: tuple[int, ...] = ()
    perm: tuple[int, ...] = ()
    if lexer.accept("<="):
        dims = _items(lexer, Lexer.integer, "[", "]")
        if lexer.at("T"):
            lexer.take()
            perm = _items(lexer, Lexer.integer, "(", ")")
    count = total = 1
    for size in dims:
        count *= size
        if not 0 < count <= MOST_DEVICES:
            lexer.fail("impossible number of devices")
    for size in sizes:
        total *= size
    if dims and (count != total or (perm and sorted(perm) != list(range(len(dims))))):
        lexer.fail("device numbers do not fill their groups")
    return sizes, dims, perm if perm != tuple(range(len(dims))) else ()


def _read_devices(lexer: Lexer) -> DeviceList:
    if lexer.at("["):
        sizes, dims, perm = _iota(lexer)
        if len(sizes) != 2:
            lexer.fail("groups of devices are stated by other than two sizes")
        return DeviceList((), sizes[0], sizes[1], dims, perm)
    return DeviceList(_items(lexer, parse_index))


_SUBGROUPS = {0: "replicated", 4: "manual", 6: "unreduced", 5: "unknown", 1: "maximal"}


def _sharding(sharding: Sharding) -> str:
    if sharding.type == 2:
        return f"{{{', '.join(map(_sharding, sharding.tuple_shardings))}}}"
    extra = ""
    if sharding.is_shard_group:
        extra = f" shard_{'like' if sharding.shard_group_type else 'as'} {sharding.shard_group_id}"
    if sharding.type == 1:
        return f"{{maximal device={(sharding.tile_assignment_devices or (0,))[0]}{extra}}}"
    if sharding.type != 3:
        return f"{{{_SUBGROUPS.get(sharding.type, 'unknown')}{extra}}}"
    text = f"devices=[{','.join(map(str, sharding.tile_assignment_dimensions))}]"
    if sharding.iota_reshape_dims:
        text += f"<=[{','.join(map(str, sharding.iota_reshape_dims))}]"
        if sharding.iota_transpose_perm:
            text += f"T({','.join(map(str, sharding.iota_transpose_perm))})"
    else:
        text += ",".join(map(str, sharding.tile_assignment_devices))
    if sharding.replicate_on_last_tile_dim:
        text += " last_tile_dim_replicate"
    if sharding.last_tile_dims:
        text += f" last_tile_dims={{{', '.join(_SUBGROUPS.get(each, 'unknown') for each in sharding.last_tile_dims)}}}"
    return f"{{{text}{extra}}}"


def _read_sharding(lexer: Lexer, depth: int = 0) -> Sharding:
    if depth > 50:
        lexer.fail("shardings nest too deep")
    lexer.need("{")
    if lexer.at("{") or lexer.at("}"):
        parts: list[Sharding] = []
        while not lexer.accept("}"):
            if parts:
                lexer.need(",")
            parts.append(_read_sharding(lexer, depth + 1))
        return Sharding(2, tuple_shardings=tuple(parts))
    fields: dict[str, Any] = {}
    words = {word: number for number, word in _SUBGROUPS.items()}
    while not lexer.accept("}"):
        word = lexer.name()
        if word in words:
            fields["type"] = words[word]
        elif word == "device":
            lexer.need("=")
            fields["tile_assignment_devices"] = (lexer.integer(),)
        elif word == "devices":
            fields |= _read_tiles(lexer)
        elif word == "last_tile_dim_replicate":
            fields["replicate_on_last_tile_dim"] = True
        elif word == "last_tile_dims":
            lexer.need("=")
            names = _items(lexer, Lexer.name)
            fields["last_tile_dims"] = tuple(words.get(name, 5) for name in names)
        elif word in ("shard_as", "shard_like"):
            fields |= {"is_shard_group": True, "shard_group_id": lexer.integer(),
                       "shard_group_type": int(word == "shard_like")}  # fmt: skip
        else:
            lexer.fail("unknown part of a sharding")
    return Sharding(**fields)


def _read_tiles(lexer: Lexer) -> dict[str, Any]:
    lexer.need("=")
    sizes, dims, perm = _iota(lexer)
    fields: dict[str, Any] = {"type": 3, "tile_assignment_dimensions": sizes}
    if dims:
        return fields | {"iota_reshape_dims": dims, "iota_transpose_perm": perm}
    devices: list[int] = []
    while lexer.here.kind == "number":
        devices.append(lexer.integer())
        lexer.accept(",")
    return fields | {"tile_assignment_devices": tuple(devices)}


def _metadata(metadata: Metadata) -> str:
    parts = [
        f"{name}={quoted(value) if isinstance(value, str) else value}"
        for name, value in zip(Metadata._fields, metadata, strict=True)
        if value
    ]
    return f"{{{' '.join(parts)}}}"


def _read_metadata(lexer: Lexer) -> Metadata:
    fields: dict[str, Any] = {}
    lexer.need("{")
    while not lexer.accept("}"):
        word = lexer.name()
        lexer.need("=")
        known = Metadata._field_defaults.get(word)
        if known is None:
            lexer.skip_value()
        elif isinstance(known, str):
            fields[word] = lexer.string()
        else:
            fields[word] = lexer.integer(0, (1 << 31) - 1)
        lexer.accept(",")
    return Metadata(**fields)


def _aliases(aliases: tuple[OutputAlias, ...]) -> str:
    each = [f"{braced(a.output_shape_index)}: ({a.operand_index}, {braced(a.operand_shape_index)})" for a in aliases]
    return f"{{{', '.join(each)}}}"


def _read_alias(lexer: Lexer) -> OutputAlias:
    output = parse_index(lexer)
    lexer.need(":")
    lexer.need("(")
    operand = lexer.integer()
    lexer.need(",")
    index = parse_index(lexer)
    if lexer.accept(","):
        lexer.name()
    lexer.need(")")
    return OutputAlias(output, operand, index)


def _read_config(lexer: Lexer) -> bytes:
    """Return a backend config: a text, or a dictionary as its own text."""
    if lexer.here.kind == "string":
        return lexer.raw()
    start = lexer.here.offset
    lexer.skip_value()
    raw = lexer.text[start : lexer.here.offset]
    return raw[: raw.rindex("}") + 1].encode() if "}" in raw else raw.strip().encode()


def _pair(lexer: Lexer) -> tuple[int, int]:
    numbers = parse_index(lexer)
    if len(numbers) != 2:
        lexer.fail("a pair of source and target has other than two numbers")
    return numbers[0], numbers[1]


def _decimal(lexer: Lexer) -> float:
    try:
        return float(lexer.kind("number", "a number"))
    except ValueError:
        lexer.fail("no number")


codecs = {
    "integer": Codec(str, Lexer.integer),
    "number": Codec(lambda value: f"{value:g}", _decimal),
    "boolean": Codec(lambda value: "true" if value else "false", Lexer.boolean),
    "word": Codec(str, Lexer.name),
    "string": Codec(quoted, Lexer.string),
    "bytes": Codec(quoted_bytes, _read_config),
    "integers": Codec(braced, parse_index),
    "words": Codec(braced, lambda lexer: _items(lexer, Lexer.name)),
    "slices": Codec(_slices, lambda lexer: _items(lexer, _read_slice)),
    "paddings": Codec(_paddings, _read_paddings),
    "window": Codec(_window, _read_window),
    "labels": Codec(_labels, _read_labels),
    "devices": Codec(_devices, _read_devices),
    "pairs": Codec(lambda pairs: f"{{{','.join(map(braced, pairs))}}}", lambda lexer: _items(lexer, _pair)),
    "sharding": Codec(_sharding, _read_sharding),
    "texts": Codec(texts, _read_texts),
    "metadata": Codec(_metadata, _read_metadata),
    "aliases": Codec(_aliases, lambda lexer: _items(lexer, _read_alias)),
    "shapes": Codec(lambda shapes: f"{{{', '.join(map(shape_text, shapes))}}}",
                    lambda lexer: _items(lexer, parse_shape)),
    "shape": Codec(shape_text, parse_shape),
}  # fmt: skip
