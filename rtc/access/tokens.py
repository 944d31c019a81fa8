"""Access tokens: JWT (HS256) with the claims of LiveKit grants, so that one token opens a room here and there.

    iss  the API key's name       sub   identity               nbf, exp  when it counts
    name, metadata                attributes.role              driver / co-driver / spectator / recorder
                                  attributes.drivers           how several people drive the room, if it is opened by it
    video.room, video.roomJoin    the room it opens            video.roomCreate, roomList: what a back end may do

Without `attributes.role` the grants say it: `recorder` or `hidden` a recorder, no `canPublishData` a spectator, else a
driver. Pure: time is an argument.
"""

from dataclasses import dataclass

import jwt
import msgspec

from ...sessions.drivers import BadDrivers, DriversRule
from ...sessions.messages import Grant
from ...sessions.rooms.rights import Rights
from .keys import ApiKey, ApiKeys

ALGORITHM = "HS256"
TTL_S = 6 * 3600
EARLY_S = 60
"""So much a clock that signs may be ahead of ours."""
BYTES_MAX = 4096


class TokenRefused(PermissionError):
    """A token that opens nothing; `code` is stable, the message is for a person and quotes nothing of it."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


class VideoGrant(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The part of LiveKit's video grant that means something here; the rest is ignored."""

    room: str = ""
    room_join: bool = False
    room_create: bool = False
    room_list: bool = False
    room_admin: bool = False
    can_publish: bool = True
    can_publish_data: bool | None = None
    can_subscribe: bool = True
    hidden: bool = False
    recorder: bool = False


class Claims(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is in a token; unknown claims are ignored."""

    iss: str
    exp: float
    sub: str = ""
    nbf: float = 0.0
    name: str = ""
    metadata: str = ""
    attributes: dict[str, str] = {}
    video: VideoGrant = VideoGrant()


@dataclass(frozen=True, slots=True)
class Access:
    """What a valid token says. `room`: the one it opens, None = none. `creates`, `lists`: all rooms of the server."""

    room: str | None
    rights: Rights
    creates: bool = False
    lists: bool = False


def mint(key: ApiKey, room: str, rights: Rights, now: float, ttl_s: float = TTL_S) -> str:
    """A token that opens one room; `now` in Unix seconds."""
    drives, recorder = rights.grant.may_drive, rights.grant is Grant.RECORDER
    grant = VideoGrant(
        room=room,
        room_join=True,
        can_publish=False,
        can_publish_data=drives,
        hidden=recorder,
        recorder=recorder,
    )
    claims = Claims(
        iss=key.name,
        sub=rights.identity or "",
        nbf=int(now),
        exp=int(now + ttl_s),
        name=rights.name or "",
        metadata=rights.metadata,
        attributes={"role": rights.grant.value} | ({"drivers": str(rights.drivers)} if rights.drivers else {}),
        video=grant,
    )
    return jwt.encode(msgspec.to_builtins(claims), key.secret, ALGORITHM)


def read(keys: ApiKeys, token: str, now: float) -> Access:
    """What a token says; raises `TokenRefused`."""
    if len(token) > BYTES_MAX:
        raise TokenRefused("bad_token", f"the token is longer than {BYTES_MAX} characters")
    claims = _verified(keys, token)
    if now >= claims.exp:
        raise TokenRefused("token_expired", "the token has expired: ask for a fresh one")
    if now < claims.nbf - EARLY_S:
        raise TokenRefused("token_early", "the token is not valid yet")
    grant = claims.video
    rights = Rights(
        _grant_of(claims),
        claims.sub or None,
        claims.name[:32] or None,
        claims.metadata[:1024],
        drivers=_drivers_of(claims),
    )
    room = grant.room if grant.room and grant.room_join and grant.can_subscribe else None
    return Access(room, rights, grant.room_create, grant.room_list or grant.room_admin or grant.room_create)


def _verified(keys: ApiKeys, token: str) -> Claims:
    """The claims under a good signature of a known key. The key is looked up before anything is believed."""
    try:
        issuer = jwt.decode(token, options={"verify_signature": False}).get("iss")
        key = keys.find(issuer) if isinstance(issuer, str) else None
        if key is None:
            raise TokenRefused("unknown_key", "the token was signed with a key that this server does not know")
        checked = jwt.decode(token, key.secret, [ALGORITHM], options={"verify_exp": False, "verify_nbf": False})
        return msgspec.convert(checked, Claims)
    except (jwt.InvalidTokenError, msgspec.ValidationError, ValueError, RecursionError):
        raise TokenRefused("bad_token", "the token is not a JWT signed with this server's key") from None


def _drivers_of(claims: Claims) -> DriversRule | None:
    said = claims.attributes.get("drivers")
    try:
        return None if said is None else DriversRule.read(said)
    except BadDrivers:
        raise TokenRefused(
            "bad_token", "how several drive, as the token says it, is no rule of this server's"
        ) from None


def _grant_of(claims: Claims) -> Grant:
    grant = claims.video
    if grant.recorder or grant.hidden:
        return Grant.RECORDER
    said = claims.attributes.get("role")
    try:
        role = Grant.DRIVER if said is None else Grant(said)
    except ValueError:
        raise TokenRefused("bad_token", f"the token names a role that is none of {', '.join(Grant)}") from None
    return Grant.SPECTATOR if role.may_drive and grant.can_publish_data is False else role
