"""Bytes to messages and back: the only module of the server that a client may import.

Strict: unknown fields, unknown types, numbers out of range, messages over the size limit and messages on the wrong
channel are a `WireError`. Knows no connection; the message types themselves live in `sessions/messages.py`.
"""

import re
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from ..sessions.messages import (
    Accepted,
    Applied,
    Choose,
    ClientMessage,
    ControlView,
    Feedback,
    FirstFrameView,
    Fork,
    FutureView,
    Grant,
    Input,
    Keep,
    KeyEdge,
    Leave,
    Participants,
    PassWheel,
    PauseWorld,
    Person,
    PersonName,
    Ping,
    Pong,
    Problem,
    Prompt,
    PromptChanged,
    Receipt,
    Receipts,
    RefuseWheel,
    Regenerate,
    ResetWorld,
    ResumeWorld,
    Rewind,
    Role,
    ServerMessage,
    Shown,
    SideBySide,
    StateChanged,
    Transition,
    Way,
    Welcome,
    WorldState,
)
from ..sessions.views import FirstFrame, RecordingView, RoomView

__all__ = [
    "Accepted",
    "AnswerBody",
    "ApiError",
    "Applied",
    "Channel",
    "Choose",
    "ClientMessage",
    "ControlView",
    "Feedback",
    "FirstFrame",
    "FirstFrameView",
    "Fork",
    "FutureView",
    "Grant",
    "Input",
    "Keep",
    "KeyEdge",
    "Leave",
    "OfferBody",
    "Participants",
    "PassWheel",
    "PauseWorld",
    "Person",
    "Ping",
    "Pong",
    "Problem",
    "Prompt",
    "PromptChanged",
    "Receipt",
    "Receipts",
    "RecordingView",
    "RefusalBody",
    "RefusalFigures",
    "RefuseWheel",
    "Regenerate",
    "ResetWorld",
    "ResumeWorld",
    "Rewind",
    "Role",
    "RoomAsk",
    "RoomPass",
    "RoomView",
    "ServerMessage",
    "Shown",
    "SideBySide",
    "StateChanged",
    "Transition",
    "Way",
    "Welcome",
    "WireError",
    "WorldState",
    "channel_of",
    "decode_body",
    "decode_client",
    "decode_room_ask",
    "decode_server",
    "encode",
]

MESSAGE_BYTES_MAX = 16 * 1024
BODY_BYTES_MAX = 64 * 1024
DETAIL_CHARS_MAX = 200
TTL_MAX_S = 30 * 24 * 3600


class Channel(StrEnum):
    """The three data channels, created by the client.

    control: ordered and reliable. input: unordered, never retransmitted, client to server. receipts: the same, server
    to client.
    """

    CONTROL = "control"
    INPUT = "input"
    RECEIPTS = "receipts"


CLIENT_TYPES: dict[Channel, tuple[type[msgspec.Struct], ...]] = {
    Channel.CONTROL: (
        Prompt,
        PauseWorld,
        ResumeWorld,
        ResetWorld,
        Rewind,
        Fork,
        Regenerate,
        Choose,
        Feedback,
        PassWheel,
        RefuseWheel,
        Leave,
        Shown,
        Ping,
    ),
    Channel.INPUT: (Input, Shown, Ping),
    Channel.RECEIPTS: (),
}


class WireError(ValueError):
    """Bytes that are no message. `id` is the message's id where it could be read that far."""

    def __init__(self, code: str, detail: str, id: int | None = None) -> None:
        super().__init__(f"{code}: {detail}")
        self.code, self.detail, self.id = code, detail[:DETAIL_CHARS_MAX], id


# ---- HTTP bodies ----------------------------------------------------------------------------------------------------


class OfferBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Body of POST /v1/rooms/{room}/offer. `token` of an earlier answer takes the same seat again.

    `name`: what the others in the room read; missing = the server thinks of one. `consent`: what they do here may be
    used to train models; journaled, and asked for by exports.
    """

    sdp: str
    token: str | None = None
    role: Role | None = None
    name: PersonName | None = None
    consent: bool = False


class RoomAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of POST /v1/rooms, from an application's back end with an API key. `room` None = a fresh name.

    `identity`: whose seat it will be, however often they come. `role`: what the token lets them do. `metadata`: the
    application's own words about them. `ttl_s`: how long the token opens the room.
    """

    room: str | None = None
    identity: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    role: Grant = Grant.DRIVER
    name: PersonName | None = None
    metadata: Annotated[str, Meta(max_length=1024)] = ""
    ttl_s: Annotated[float, Meta(ge=1, le=TTL_MAX_S)] = 6 * 3600.0


class RoomPass(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Its 201 answer. `path`: the room's page on this server, to which `#token=...` is added for a browser.

    `token`: missing on a server that asks for none. `expires`: Unix seconds.
    """

    room: str
    path: str
    token: str = ""
    expires: int = 0


class AnswerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Its 200 answer: complete SDP with host candidates; `token` comes back when reconnecting."""

    sdp: str
    token: str
    participant: str


class ApiError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every error of the HTTP API."""

    code: str
    detail: str


class RefusalFigures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a world needs beside what is used of a limit: places, bytes, or the share of one device (0..1)."""

    needed: float
    used: float
    limit: float
    unit: str


class RefusalBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A room that cannot be served now (503, or 409 for a conflict); also sent as a Retry-After header.

    `queue_place`: the room's place in line, from 1 in front; 0 = it has none. `figures`: what was too little.
    """

    code: str
    detail: str
    reason: str
    queue_place: int
    retry_after_s: float
    figures: RefusalFigures | None = None


# ---- bytes and messages ---------------------------------------------------------------------------------------------


class _IdOnly(msgspec.Struct):
    """The lenient second look at a bad message: only its id, to answer it."""

    id: int | None = None


_client_decoder: msgspec.json.Decoder[ClientMessage] = msgspec.json.Decoder(ClientMessage)
_server_decoder: msgspec.json.Decoder[ServerMessage] = msgspec.json.Decoder(ServerMessage)
_envelope_decoder = msgspec.json.Decoder(_IdOnly)
_encoder = msgspec.json.Encoder()
_ID = re.compile(rb'"id"\s*:\s*(\d{1,15})\b')


def decode_client(data: str | bytes, channel: Channel) -> ClientMessage:
    """One client message that may travel on `channel`; raises `WireError`."""
    raw = _sized(data)
    try:
        message = _client_decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise WireError("invalid", str(error), _id_of(raw)) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise WireError("not_json", str(error), _id_of(raw)) from None
    if not isinstance(message, CLIENT_TYPES[channel]):
        name = type(message).__name__.lower()
        raise WireError("wrong_channel", f"'{name}' does not travel on '{channel}'", _id_of(raw))
    return message


def decode_server(data: str | bytes) -> ServerMessage:
    """One server message, for clients; raises `WireError`."""
    try:
        return _server_decoder.decode(_sized(data))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise WireError("invalid", str(error)) from None


def encode(message: ClientMessage | ServerMessage) -> str:
    """Data channels carry text, so that a person can read them in any browser's tools."""
    return _encoder.encode(message).decode()


def channel_of(message: ServerMessage) -> Channel:
    """Where the server sends this message."""
    return Channel.RECEIPTS if isinstance(message, Receipt | Receipts) else Channel.CONTROL


def decode_body(data: bytes) -> OfferBody:
    """The body of an offer; raises `WireError`."""
    if len(data) > BODY_BYTES_MAX:
        raise WireError("too_large", f"body of {len(data)} bytes, at most {BODY_BYTES_MAX}")
    try:
        return msgspec.json.decode(data, type=OfferBody)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise WireError("bad_body", str(error)) from None


def decode_room_ask(data: bytes) -> RoomAsk:
    """The body of POST /v1/rooms; raises `WireError`."""
    try:
        return msgspec.json.decode(data, type=RoomAsk)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise WireError("bad_body", str(error)) from None


def _sized(data: str | bytes) -> bytes:
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    if len(raw) > MESSAGE_BYTES_MAX:
        raise WireError("too_large", f"message of {len(raw)} bytes, at most {MESSAGE_BYTES_MAX}")
    return raw


def _id_of(raw: bytes) -> int | None:
    try:
        return _envelope_decoder.decode(raw).id
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, RecursionError):
        # No JSON as a whole, such as half of a surrogate pair in a text; who waits for an answer still gets it.
        found = _ID.search(raw)
        return int(found[1]) if found else None
