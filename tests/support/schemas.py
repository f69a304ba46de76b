"""Whether a value has the form that a JSON Schema of ours says."""

from collections.abc import Mapping
from typing import Any

KINDS: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def misfit(schema: Mapping[str, Any], value: object, place: str = "answer") -> str:
    """Return where a value is not of a form; "" if it is."""
    allowed = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    is_number_by_name = isinstance(value, bool) and "boolean" not in allowed
    if is_number_by_name or not any(isinstance(value, KINDS[kind]) for kind in allowed):
        return f"{place} is {value!r}, no {allowed}"
    if isinstance(value, list) and "items" in schema:
        return next((bad for one in value if (bad := misfit(schema["items"], one, f"{place}[]"))), "")
    if isinstance(value, dict):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        if missing := set(schema.get("required", ())) - value.keys():
            return f"{place} lacks {missing}"
        for name, one in value.items():
            form = fields.get(name, others)
            if form is False:
                return f"{place} has {name}, which is not described"
            if form and (bad := misfit(form, one, f"{place}.{name}")):
                return bad
    return ""
