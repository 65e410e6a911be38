"""As much of JSON Schema as docs/schemas uses, so that the tests need no package for it."""

from __future__ import annotations

from typing import Any

TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
KNOWN = frozenset(
    [
        "$schema",
        "title",
        "description",
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
    ]
)


def problems(value: Any, schema: dict[str, Any], where: str = "$") -> list[str]:
    """Return what is wrong with `value`, by path; an unknown keyword of the schema is a problem too."""
    found = [f"{where}: schema keyword {key!r}" for key in schema if key not in KNOWN]
    wanted = schema.get("type")
    if wanted is not None:
        names = [wanted] if isinstance(wanted, str) else wanted
        fits = any(
            isinstance(value, TYPES[n]) and not (isinstance(value, bool) and n in ("integer", "number")) for n in names
        )
        if not fits:
            return [*found, f"{where}: {type(value).__name__} is not {' or '.join(names)}"]
    if "anyOf" in schema and all(problems(value, one, where) for one in schema["anyOf"]):
        found.append(f"{where}: fits none of {len(schema['anyOf'])} alternatives")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is not one of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: {value!r} is not {schema['const']!r}")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{where}: {name!r} is missing" for name in schema.get("required", ()) if name not in value]
        for name, item in value.items():
            if name in properties:
                found += problems(item, properties[name], f"{where}.{name}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{where}: {name!r} is not in the schema")
            elif isinstance(schema.get("additionalProperties"), dict):
                found += problems(item, schema["additionalProperties"], f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            found += problems(item, schema["items"], f"{where}[{index}]")
    return found
