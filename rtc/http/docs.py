"""The protocol as documents, generated from the message types: `python -m worldroom.rtc.http.docs [docs folder]`.

Writes PROTOCOL.md and protocol.schema.json; a test asserts that the ones in the repository are current.
"""

import inspect
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, get_args, get_origin, get_type_hints

import msgspec

from .. import wire
from ..wire import Channel, ClientMessage, ServerMessage

BODIES: tuple[type[msgspec.Struct], ...] = (
    wire.OfferBody,
    wire.AnswerBody,
    wire.FirstFrame,
    wire.RefusalBody,
    wire.ApiError,
    wire.RoomView,
)

INTRODUCTION = """# Protocol

This page and `protocol.schema.json` are generated from the message types (`python -m worldroom.rtc.http.docs docs`).

## Joining

`POST /v1/rooms/{room}/offer` with an `offer` body: the SDP of a peer connection that receives one video (H.264,
constrained baseline, packetization mode 1) and has created the three data channels below. The answer carries complete
host candidates; nothing is trickled. Sent again with the `token` of an earlier answer, it takes the same seat over.

When everything is taken, a room gets a place in line, and its offer is refused with that place. Sent again within five
seconds, an offer for that room waits: it is answered the moment the room can open, when the place has moved, or after
five seconds with the same refusal. The line is kept by the room's name; who stops asking loses the place.

A refusal is a `503` (or `409` for a conflict) with a `Retry-After` header and a `refusal` body. Every other error has
an `apierror` body: `400` for a bad body, SDP or room name, `413` above 64 KiB, `415` if not
`application/json`, `422` for a peer without H.264.

| channel | created by the client as | carries |
|---|---|---|
| `control` | ordered, reliable | everything but inputs and receipts; `welcome` comes first |
| `input` | unordered, `maxRetransmits: 0` | `input`, `ping`, `shown` |
| `receipts` | unordered, `maxRetransmits: 0` | to the driver `receipt` with every frame, to spectators `receipts` |

Messages are JSON text of at most 16 KiB with a `type` field; unknown fields are refused. A message that cannot be read
is answered by `problem`. A viewer that is not heard (any datagram: reports, acknowledgements, messages) for 4.5 seconds
is removed, so clients send `ping` every second. The problems `taken_over`, `room_closed` and `going_away`
(the server stops: come back with the token) end the connection.

The video carries the playout-delay extension with 0..0, so browsers show frames as they come. A receipt's `rtp` equals
the frame's RTP timestamp (`rtpTimestamp` in requestVideoFrameCallback).

## First frames

Where `welcome` has a `first_frame`, `POST /v1/rooms/{room}/first_frame` begins the world anew from a picture or from
the end of a video. The body is the file, its `Content-Type` one of `image/png`, `image/jpeg`, `image/webp` (at most
8 MiB and 16 million pixels), `video/mp4` and `video/webm` (at most 32 MiB); `Authorization: Bearer` carries the token
of the driver's seat. Pictures are cut and scaled to the world's size; of a video the last frames are taken at its
rate.

The answer is a `firstframe` body or an `apierror`: `401` no token or no place, `403` not the driver, `404` no such
room, `408` too slow, `409` worlds of this card begin from words alone, `413` too large, `415` another type, `422` not
readable, too short, too many pixels, `503` busy.
"""


def client_types() -> tuple[type[msgspec.Struct], ...]:
    return get_args(ClientMessage)


def server_types() -> tuple[type[msgspec.Struct], ...]:
    return get_args(ServerMessage)


def json_schema() -> bytes:
    """JSON Schema of all messages and bodies, as a document with `$defs`."""
    _, components = msgspec.json.schema_components(
        [ClientMessage, ServerMessage, *BODIES], ref_template="#/$defs/{name}"
    )
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Worldroom protocol",
        "client": {"anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in client_types()]},
        "server": {"anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in server_types()]},
        "$defs": components,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def protocol_markdown() -> str:
    """PROTOCOL.md."""
    sections = [INTRODUCTION]
    sections.append("## Client to server\n")
    sections += [_section(kind, _client_channels(kind)) for kind in client_types()]
    sections.append("## Server to client\n")
    sections += [_section(kind, _server_channel(kind)) for kind in server_types()]
    sections.append("## HTTP bodies\n")
    sections += [_section(kind, "") for kind in BODIES]
    return "\n".join(sections)


def _section(kind: type[msgspec.Struct], channels: str) -> str:
    name = kind.__struct_config__.tag or kind.__name__.lower()
    lines = [f"### `{name}`", ""]
    if channels:
        lines += [f"Channel: {channels}.", ""]
    lines += [inspect.cleandoc(kind.__doc__) if kind.__doc__ else "", "", "| field | type | default |", "|---|---|---|"]
    hints = get_type_hints(kind, include_extras=True)
    for field in msgspec.structs.fields(kind):
        default = "" if field.required else f"`{msgspec.json.encode(field.default).decode()}`"
        lines.append(f"| `{field.encode_name}` | {_type_text(hints[field.name])} | {default} |")
    return "\n".join(lines) + "\n"


def _type_text(hint: object) -> str:
    """A type as words that a JSON author understands."""
    if get_origin(hint) is Annotated:
        inner, *rest = get_args(hint)
        return " ".join([_type_text(inner), *(_bounds(meta) for meta in rest if isinstance(meta, msgspec.Meta))])
    if get_origin(hint) is tuple:
        items = get_args(hint)
        if items[-1] is Ellipsis:
            return f"array of {_type_text(items[0])}"
        return "[" + ", ".join(_type_text(item) for item in items) + "]"
    if arguments := get_args(hint):
        return " or ".join(_type_text(argument) for argument in arguments)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return " / ".join(f"`{member}`" for member in hint)
    if hint is type(None):
        return "null"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        fields = ", ".join(field.encode_name for field in msgspec.structs.fields(hint))
        return f"{{{fields}}}"
    names = {int: "integer", float: "number", str: "string", bool: "boolean"}
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


def _client_channels(kind: type[msgspec.Struct]) -> str:
    return ", ".join(f"`{channel}`" for channel in Channel if kind in wire.CLIENT_TYPES[channel])


def _server_channel(kind: type[msgspec.Struct]) -> str:
    return f"`{Channel.RECEIPTS if kind in (wire.Receipt, wire.Receipts) else Channel.CONTROL}`"


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    (folder / "PROTOCOL.md").write_text(protocol_markdown())
    (folder / "protocol.schema.json").write_bytes(json_schema())


if __name__ == "__main__":
    main()
