"""Messages of the data channels to text and back, and which of them travels on which channel."""

import re
from enum import StrEnum

import msgspec

from ...sessions.messages import (
    Adapt,
    Choose,
    ClientMessage,
    Feedback,
    Fork,
    Input,
    Leave,
    PassWheel,
    PauseWorld,
    Ping,
    Prompt,
    Receipt,
    Receipts,
    RefuseWheel,
    Regenerate,
    ResetWorld,
    ResumeWorld,
    Rewind,
    Seek,
    ServerMessage,
    Shown,
)

MESSAGE_BYTES_MAX = 16 * 1024
DETAIL_CHARS_MAX = 200


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
        Adapt,
        PauseWorld,
        ResumeWorld,
        ResetWorld,
        Rewind,
        Fork,
        Regenerate,
        Seek,
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
