"""The bodies of the HTTP interface: what is posted to a room, and what comes back."""

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from ...sessions.messages import DriversText, Grant, PersonName, Role
from .channels import WireError

BODY_BYTES_MAX = 64 * 1024
TTL_MAX_S = 30 * 24 * 3600

Body = TypeVar("Body")
CardName = Annotated[str, Meta(min_length=1, max_length=64, pattern="^[a-z0-9][a-z0-9._-]*$")]


class OfferBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Body of POST /v1/rooms/{room}/offer. `token` of an earlier answer takes the same seat again.

    `name`: what the others in the room read; missing = the server thinks of one. `consent`: what they do here may be
    used to train models; journaled, and asked for by exports. `card`: the world of a room that is not open yet;
    missing = the server's first. `drivers`: how several people drive it, if it is not open and the token says nothing.
    """

    sdp: str
    token: str | None = None
    role: Role | None = None
    name: PersonName | None = None
    consent: bool = False
    card: CardName | None = None
    drivers: DriversText | None = None


class RoomAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of POST /v1/rooms, from an application's back end with an API key. `room` None = a fresh name.

    `identity`: whose seat it will be, however often they come. `role`: what the token lets them do. `metadata`: the
    application's own words about them. `ttl_s`: how long the token opens the room. `card`: the room's world.
    `drivers`: how several people drive it: `turns`, `controls:2`, `controls:left+right,up`, `vote:5`.
    """

    room: str | None = None
    card: CardName | None = None
    drivers: DriversText | None = None
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


def decode_body(data: bytes, body: type[Body]) -> Body:
    """What was posted; raises `WireError`."""
    if len(data) > BODY_BYTES_MAX:
        raise WireError("too_large", f"body of {len(data)} bytes, at most {BODY_BYTES_MAX}")
    try:
        return msgspec.json.decode(data, type=body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise WireError("bad_body", str(error)) from None
