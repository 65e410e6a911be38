"""Protobuf messages declared as data: the few of a published schema that this project writes or reads."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["message_types"]

_MESSAGE = re.compile(r"message (\w+) \{([^}]*)\}")
_FIELD = re.compile(r"(repeated )?(\w+) (\w+) = (\d+);")
# fmt: off
_SCALARS = frozenset(("bool", "bytes", "double", "fixed64", "float", "int32", "int64", "string", "uint32", "uint64"))
# fmt: on


def message_types(package: str, declared: str, *, proto3: bool = False) -> dict[str, Any]:
    """Return the classes of messages that are declared as in a .proto file, by name.

    Fields without `repeated` are optional and know whether they were set (proto2). Enumerations are int32. In `proto3`
    repeated numbers are packed, texts must be UTF-8, and what is nought is not written.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package}.proto", package=package, syntax="proto3" if proto3 else "proto2"
    )
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, body in _MESSAGE.findall(declared):
        message = file.message_type.add(name=name)
        for repeated, kind, field, number in _FIELD.findall(body):
            label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            added = message.field.add(name=field, number=int(number), label=label)
            if kind in _SCALARS:
                added.type = kinds.Type.Value(f"TYPE_{kind.upper()}")
            else:
                added.type, added.type_name = kinds.TYPE_MESSAGE, f".{package}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = [message.name for message in file.message_type]
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in names}
