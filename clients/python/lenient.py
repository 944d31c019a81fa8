"""Messages of a newer server, as far as this client knows them: clients outlive servers, and servers clients."""

from typing import get_args, get_type_hints

import msgspec

from ...rtc.wire import ServerMessage, WireError, decode_server


def decode_known(data: str | bytes) -> ServerMessage | None:
    """One server message as far as this version knows it: fields of a newer server are left out, a message of a type
    it does not know is None. For clients, which outlive servers; raises `WireError` on what is no message at all."""
    try:
        return decode_server(data)
    except WireError:
        pass
    try:
        found = msgspec.json.decode(data)
        kind = next((kind for kind in get_args(ServerMessage) if kind.__struct_config__.tag == found["type"]), None)
        return None if kind is None else msgspec.convert(_known(found, kind), kind)
    except (msgspec.MsgspecError, RecursionError, TypeError, KeyError) as error:
        raise WireError("invalid", str(error)) from None


def _known(value: object, kind: object) -> object:
    """A decoded value without the fields that its type does not have, all the way down."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, dict):
        types = get_type_hints(kind)
        known = {name: _known(value[name], types[name]) for name in kind.__struct_fields__ if name in value}
        return known | {"type": value["type"]} if "type" in value else known
    inner = next((each for each in get_args(kind) if each is not type(None) and each is not Ellipsis), None)
    if isinstance(value, list) and inner is not None:
        return [_known(each, inner) for each in value]
    return value if inner is None or not isinstance(value, dict) else _known(value, inner)
