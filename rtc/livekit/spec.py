"""Where the LiveKit server is, and passes to its rooms. Knows no SDK."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import jwt
import msgspec

from ...sessions.drivers import BadDrivers, DriversRule
from ...sessions.messages import Grant
from ...sessions.rooms.rights import Rights
from ..access.keys import ApiKey
from ..access.tokens import ALGORITHM, Claims, VideoGrant, mint
from ..wire import Channel

PASS_TTL_S = 6 * 3600
TOPIC_PREFIX = "worldroom."


@dataclass(frozen=True, slots=True)
class LiveKitSpec:
    """`url`: for this server; `public_url`: what clients are told, '' = the same. `identity`: this server's, in every
    room."""

    url: str
    key: ApiKey
    public_url: str = ""
    identity: str = "worldroom"


@dataclass(slots=True)
class LiveKitCounts:
    """Of one server, for /metrics. `rooms` and `people`: joined now; the others sums."""

    rooms: int = 0
    people: int = 0
    connects: int = 0
    malformed: int = 0
    dropped: int = 0


class LiveKitPass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The 201 answer of POST /v1/rooms/{room}/livekit: what livekit-client connects with. `host`: the participant whose
    video is the world and to whom messages go."""

    url: str
    token: str
    identity: str
    host: str


class Topic(StrEnum):
    """Data topics, one for each channel of the protocol; other topics belong to the application."""

    CONTROL = TOPIC_PREFIX + Channel.CONTROL
    INPUT = TOPIC_PREFIX + Channel.INPUT
    RECEIPTS = TOPIC_PREFIX + Channel.RECEIPTS

    @property
    def channel(self) -> Channel:
        return Channel(self.removeprefix(TOPIC_PREFIX))

    @property
    def reliable(self) -> bool:
        return self is Topic.CONTROL


def guest_pass(spec: LiveKitSpec, room: str, rights: Rights, now: float) -> LiveKitPass:
    """For somebody with these rights, who has an identity."""
    assert rights.identity is not None
    token = mint(spec.key, room, rights, now, PASS_TTL_S)
    return LiveKitPass(spec.public_url or spec.url, token, rights.identity, spec.identity)


def host_token(spec: LiveKitSpec, room: str, now: float) -> str:
    """This server's own: it publishes the world and sends messages."""
    grant = VideoGrant(room=room, room_join=True, can_publish=True, can_publish_data=True, can_subscribe=False)
    claims = Claims(spec.key.name, now + PASS_TTL_S, spec.identity, int(now), name="Worldroom", video=grant)
    return jwt.encode(msgspec.to_builtins(claims), spec.key.secret, ALGORITHM)


def rights_of(identity: str, name: str, metadata: str, attributes: Mapping[str, str], may_send: bool) -> Rights:
    """What a LiveKit participant may do: `attributes` of the token, `may_send` its canPublishData."""
    role, said = attributes.get("role"), attributes.get("drivers")
    try:
        grant = Grant.DRIVER if role is None else Grant(role)
    except ValueError:
        grant = Grant.SPECTATOR
    if grant.may_drive and not may_send:
        grant = Grant.SPECTATOR
    try:
        drivers = None if said is None else DriversRule.read(said)
    except BadDrivers:
        drivers = None
    return Rights(grant, identity, name[:32] or None, metadata[:1024], drivers=drivers)
