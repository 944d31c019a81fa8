"""Message types as words for a page: sections with a table of fields, for the documents that are generated."""

import inspect
from enum import StrEnum
from typing import Annotated, get_args, get_origin, get_type_hints

import msgspec


def section(kind: type[msgspec.Struct], note: str = "") -> str:
    """A heading with the type's tag, `note`, its docstring and its fields."""
    name = kind.__struct_config__.tag or kind.__name__.lower()
    lines = [f"### `{name}`", ""]
    if note:
        lines += [note, ""]
    lines += [inspect.cleandoc(kind.__doc__) if kind.__doc__ else "", "", "| field | type | default |", "|---|---|---|"]
    hints = get_type_hints(kind, include_extras=True)
    for field in msgspec.structs.fields(kind):
        default = "" if field.required else f"`{msgspec.json.encode(field.default).decode()}`"
        lines.append(f"| `{field.encode_name}` | {type_text(hints[field.name])} | {default} |")
    return "\n".join(lines) + "\n"


def type_text(hint: object) -> str:
    """A type as words that a JSON author understands."""
    if get_origin(hint) is Annotated:
        inner, *rest = get_args(hint)
        return " ".join([type_text(inner), *(_bounds(meta) for meta in rest if isinstance(meta, msgspec.Meta))])
    if get_origin(hint) is tuple:
        items = get_args(hint)
        if items[-1] is Ellipsis:
            return f"array of {type_text(items[0])}"
        return "[" + ", ".join(type_text(item) for item in items) + "]"
    if arguments := get_args(hint):
        return " or ".join(type_text(argument) for argument in arguments)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return " / ".join(f"`{member}`" for member in hint)
    if hint is type(None):
        return "null"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        fields = ", ".join(field.encode_name for field in msgspec.structs.fields(hint))
        return f"{{{fields}}}"
    names = {int: "integer", float: "number", str: "string", bool: "boolean", bytes: "base64 string"}
    return names[hint] if isinstance(hint, type) else str(hint)


def _bounds(meta: msgspec.Meta) -> str:
    parts = []
    if meta.ge is not None or meta.le is not None:
        parts.append(f"{'' if meta.ge is None else meta.ge}..{'' if meta.le is None else meta.le}")
    if meta.min_length is not None or meta.max_length is not None:
        parts.append(f"length {meta.min_length or 0}..{'' if meta.max_length is None else meta.max_length}")
    if meta.pattern is not None:
        parts.append(f"`{meta.pattern}`")
    return f"({', '.join(parts)})"
