"""STUN and TURN servers that clients are told of, with credentials that expire.

A TURN server that shares a secret with this one (coturn's `use-auth-secret`) takes `expiry:identity` as the user and an
HMAC of it as the password ("A REST API for access to TURN services", draft-uberti-behave-turn-rest). Pure: time is an
argument.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass, field

import msgspec


class IceServer(msgspec.Struct, frozen=True, omit_defaults=True):
    """As RTCPeerConnection's `iceServers` takes it."""

    urls: tuple[str, ...]
    username: str = ""
    credential: str = ""


class IceServersBody(msgspec.Struct, frozen=True):
    """The 200 answer of GET /v1/rooms/{room}/ice. `ttl_s`: how long the credentials open the TURN server."""

    ice_servers: tuple[IceServer, ...]
    ttl_s: int


@dataclass(frozen=True, slots=True)
class IceServersSpec:
    """`turn_secret`: shared with the TURN servers; else `turn_username` and `turn_credential` are handed out as they
    are. `relay`: this server asks them for addresses of its own too."""

    stun: tuple[str, ...] = ()
    turn: tuple[str, ...] = ()
    turn_secret: str = field(default="", repr=False)
    turn_username: str = ""
    turn_credential: str = field(default="", repr=False)
    turn_ttl_s: int = 3600
    relay: bool = False

    def for_client(self, identity: str, now: float) -> tuple[IceServer, ...]:
        """`identity`: shown in the TURN server's log; `now` in Unix seconds."""
        stun = (IceServer(self.stun),) if self.stun else ()
        if not self.turn:
            return stun
        username, credential = self.turn_username, self.turn_credential
        if self.turn_secret:
            username = f"{int(now) + self.turn_ttl_s}:{identity}"
            digest = hmac.new(self.turn_secret.encode(), username.encode(), hashlib.sha1).digest()
            credential = base64.b64encode(digest).decode()
        return (*stun, IceServer(self.turn, username, credential))

    def for_server(self, now: float) -> tuple[IceServer, ...]:
        return self.for_client("worldroom", now) if self.relay else ()


def link_headers(servers: tuple[IceServer, ...]) -> list[str]:
    """One `Link` header for each URL, as WHIP and WHEP tell of them (RFC 9725, 4.6)."""
    return [
        "; ".join([f"<{url}>", 'rel="ice-server"', *(_credentials(server) if server.username else ())])
        for server in servers
        for url in server.urls
    ]


def _credentials(server: IceServer) -> tuple[str, ...]:
    return f'username="{server.username}"', f'credential="{server.credential}"', 'credential-type="password"'
