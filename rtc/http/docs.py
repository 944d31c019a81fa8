"""The protocol as documents, generated from the message types: `python -m worldroom.rtc.http.docs [docs folder]`.

Writes PROTOCOL.md and protocol.schema.json; a test asserts that the ones in the repository are current.
"""

import sys
from pathlib import Path
from typing import get_args

import msgspec

from ...sessions.schema_text import section
from .. import wire
from ..wire import Channel, ClientMessage, ServerMessage
from .vectors import vectors_json

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

`POST /v1/rooms/{room}/offer` with an `offer` body: the SDP of a peer connection that receives one video and has created
the three data channels below. Of the video codecs that it offers, the answer takes H.264 (constrained baseline,
packetization mode 1) where it is among them, else VP8. It carries complete host candidates; nothing
is trickled. Sent again with the `token` of an earlier answer, an offer takes the same seat over.

When everything is taken, a room gets a place in line, and its offer is refused with that place. Sent again within five
seconds, an offer for that room waits: it is answered the moment the room can open, when the place has moved, or after
five seconds with the same refusal. The line is kept by the room's name; who stops asking loses the place.

A refusal is a `503` (or `409` for a conflict) with a `Retry-After` header and a `refusal` body. Every other error has
an `apierror` body: `400` for a bad body, SDP or room name, `413` above 64 KiB, `415` if not
`application/json`, `422` for a peer with neither codec.

| channel | created by the client as | carries |
|---|---|---|
| `control` | ordered, reliable | everything but inputs and receipts; `welcome` comes first |
| `input` | unordered, `maxRetransmits: 0` | `input`, `ping`, `shown` |
| `receipts` | unordered, `maxRetransmits: 0` | to the driver `receipt` with every frame, to spectators `receipts` |

Messages are JSON text of at most 16 KiB with a `type` field; unknown fields are refused. A message that cannot be read
is answered by `problem`. A viewer that is not heard (any datagram: reports, acknowledgements, messages) for 4.5 seconds
is removed, one without channels after 15 seconds, so clients send `ping` every second. A path may die without a word: a
client that hears nothing for 0.4 s sends one every 0.2 s, and after a second it asks another way, by a `GET` of the
room's `/ice` every 0.7 s. If that is answered and here still nothing is heard, it comes back with its token by another
connection. The problems
`taken_over`, `room_closed` and `going_away` (the server stops: come back with the token) end the connection.

The stream may change between the card's size and half of it with a key frame, as the viewer's network allows; the size
that `welcome` tells is the size to show.

The video carries the playout-delay extension with 0..0, so browsers show frames as they come. A receipt's `rtp` equals
the frame's RTP timestamp (`rtpTimestamp` in requestVideoFrameCallback).

## Several drivers

A room is driven as `POST /v1/rooms`, the token, or the offer that opens it says (`drivers`), else as `--drivers` does:

- `turns`: one place at the wheel for each player of the card; a chunk is steered by what its holder presses.
- `controls:2`, `controls:left+right,up`: one place for each part of the controls; each holder presses their own, and
  what nobody is there for, the first holder has.
- `vote:5`: so many places with all controls; a control is down where more than half of those press it who press
  anything. Motion, and controls that may be pressed part of the way, are averaged.

`welcome` has the rule, `participants` the places with who holds them and the controls that each steers now. Places are
given, asked for and left with `passwheel`, one by one; whoever holds one may do all that a driver may. A receipt tells
each holder of their own `input_seq`. The journal keeps what every holder pressed, and what came of it.

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
    sections += [section(kind, f"Channel: {_client_channels(kind)}.") for kind in client_types()]
    sections.append("## Server to client\n")
    sections += [section(kind, f"Channel: {_server_channel(kind)}.") for kind in server_types()]
    sections.append("## HTTP bodies\n")
    sections += [section(kind) for kind in BODIES]
    return "\n".join(sections)


def _client_channels(kind: type[msgspec.Struct]) -> str:
    return ", ".join(f"`{channel}`" for channel in Channel if kind in wire.CLIENT_TYPES[channel])


def _server_channel(kind: type[msgspec.Struct]) -> str:
    return f"`{Channel.RECEIPTS if kind in (wire.Receipt, wire.Receipts) else Channel.CONTROL}`"


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    (folder / "PROTOCOL.md").write_text(protocol_markdown())
    (folder / "protocol.schema.json").write_bytes(json_schema())
    (folder / "game_client_vectors.json").write_text(vectors_json())


if __name__ == "__main__":
    main()
