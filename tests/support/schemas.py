"""The part of JSON Schema that the API's description uses. A keyword that is not known here fails: it would check
nothing.
"""

import re

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
KNOWN = {
    *("type", "required", "properties", "additionalProperties", "items", "prefixItems", "minItems", "maxItems"),
    *("enum", "const", "pattern", "minimum", "format"),
}


def problems(value, schema, place="answer"):
    """What is wrong with ``value``."""
    if set(schema) - KNOWN:
        raise ValueError(f"{place}: {sorted(set(schema) - KNOWN)} would not be checked")
    names = schema.get("type", list(TYPES))
    names = [names] if isinstance(names, str) else names
    if not any(_is(value, name) for name in names):
        yield f"{place}: {value!r} is no {' or '.join(names)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{place}: {value!r} is not {schema['const']!r}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{place}: {value!r} does not match {schema['pattern']}"
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        yield f"{place}: {value!r} is below {schema['minimum']}"
    if isinstance(value, dict):
        yield from _members(value, schema, place)
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{place}: {len(value)} items"
        first = schema.get("prefixItems", ())
        for position, item in enumerate(value):
            inner = first[position] if position < len(first) else schema.get("items", {})
            yield from problems(item, inner, f"{place}[{position}]")


def _is(value, name):
    return isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name in ("integer", "number"))


def _members(value, schema, place):
    members = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{place}: {name} is missing"
    for name, inner in value.items():
        if name in members:
            yield from problems(inner, members[name], f"{place}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{place}: {name} is not described"
