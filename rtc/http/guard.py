"""In front of the application: base path, proxy, host, origin, rate, token. What gets through carries its `Access`.

    path -> who asked -> is this server meant? -> too many? -> own page or a site that was allowed? -> token -> app

Refusals are typed JSON and counted by their code. Knows which paths need what (`access/needs.py`) and nothing of what
they do.
"""

import base64
import binascii
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...clock import Clock
from ...sessions.messages import Grant
from ...sessions.rooms.rights import OPEN, Rights
from ..access.forwarded import Caller, caller_of
from ..access.names import host_allowed, origin_allowed, same_origin
from ..access.needs import ALIVE, Door, Need, door_of
from ..access.rates import Rates, whose
from ..access.spec import AccessSpec
from ..access.tokens import Access, TokenRefused, read
from ..wire import ApiError

ANYTHING = Access(None, OPEN, creates=True, lists=True)
"""What an open server gives everybody, and every server whoever holds a key."""
EXPOSED = "Location, ETag, Link, Retry-After, Accept-Patch"
ALLOWED_METHODS = "GET, POST, PATCH, DELETE, OPTIONS"
ALLOWED_HEADERS = "Authorization, Content-Type, If-Match"

SeatRights = Callable[[str, str], Rights | None]


class AccessDenied(PermissionError):
    """Becomes the answer."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.body = status, ApiError(code, detail)


class Guard:
    """See the module docstring. `seat_rights(room, token)`: of who sits in that room under that seat token."""

    def __init__(self, app: ASGIApp, spec: AccessSpec, clock: Clock, rates: Rates, seat_rights: SeatRights) -> None:
        self._app = app
        self._spec = spec
        self._clock = clock
        self._rates = rates
        self._seat_rights = seat_rights
        ancestors = " ".join(("'self'", *spec.origins))
        self._policy = f"frame-ancestors {ancestors}; object-src 'none'; base-uri 'self'"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        peer = (scope.get("client") or ("", 0))[0]
        caller = caller_of(self._spec, peer, scope["scheme"], headers)
        scope["path"] = path = self._path(scope["path"])
        scope["root_path"] = ""
        origin = headers.get("origin")
        embeds = origin is not None and origin_allowed(self._spec, origin)
        send = self._with_headers(send, origin if embeds else None)
        try:
            self._check(scope["method"], path, caller, origin, embeds)
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                await _preflight(send)
                return
            access = self._access(door_of(scope["method"], path), headers.get("authorization", ""))
        except AccessDenied as refusal:
            self._rates.refused[refusal.body.code] += 1
            await _refuse(send, refusal)
            return
        state = scope.setdefault("state", {})
        state["access"], state["caller"] = access, caller
        if scope["method"] == "HEAD":  # as GET; the server sends no body
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)

    # ---- checks -----------------------------------------------------------------------------------------------------

    def _path(self, path: str) -> str:
        """Without the base path, whether the proxy in front has taken it off or not."""
        base = self._spec.base_path
        if base and (path == base or path.startswith(base + "/")):
            return path[len(base) :] or "/"
        return path

    def _check(self, method: str, path: str, caller: Caller, origin: str | None, embeds: bool) -> None:
        if path not in ALIVE and not host_allowed(self._spec, caller.host):
            raise AccessDenied(421, "wrong_host", "this server does not go by that name; --allow-host lets it")
        if not self._rates.request(whose(caller.address), self._clock.now()):
            raise AccessDenied(429, "too_many_requests", "too many requests from this address: slow down")
        if origin is None or embeds or same_origin(origin, caller.scheme, caller.host):
            return
        if method not in ("GET", "HEAD") or door_of(method, path).need is not Need.NOTHING:
            raise AccessDenied(
                403, "foreign_origin", "pages of that origin may not use this server; --allow-origin lets them"
            )

    def _access(self, door: Door, authorization: str) -> Access:
        """What the credentials say, enough for this door; raises `AccessDenied`."""
        if not self._spec.keys or door.need is Need.NOTHING:
            return ANYTHING
        scheme, _, value = authorization.partition(" ")
        match scheme.lower():
            case "basic" if self._holds_key(value):
                return ANYTHING
            case "bearer" if value:
                return self._by_token(door, value.strip())
            case "":
                raise AccessDenied(401, "no_token", "a token is needed: Authorization: Bearer <token>")
            case _:
                raise AccessDenied(401, "bad_token", "the credentials are not those of this server")

    def _by_token(self, door: Door, token: str) -> Access:
        if door.need is Need.ROOM and (rights := self._seat_rights(door.room, token)) is not None:
            return Access(door.room, rights)
        try:
            access = read(self._spec.keys, token, self._clock.wall())
        except TokenRefused as error:
            raise AccessDenied(401, error.code, error.detail) from None
        if door.need is Need.ROOM and access.room != door.room:
            raise AccessDenied(403, "other_room", "the token opens another room")
        if door.need is Need.RECORDER and not (access.lists or access.rights.grant is Grant.RECORDER):
            raise AccessDenied(403, "needs_recorder", "this needs a recorder's token of a room, or an API key")
        if door.need is Need.KEY and not access.creates:
            raise AccessDenied(403, "needs_key", "this needs an API key or a token with roomCreate")
        return access

    def _holds_key(self, encoded: str) -> bool:
        try:
            name, _, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        return self._spec.keys.holds(name, secret)

    # ---- answers ----------------------------------------------------------------------------------------------------

    def _with_headers(self, send: Send, origin: str | None) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("X-Content-Type-Options", "nosniff")
                if headers.get("content-type", "").startswith("text/html"):
                    headers.setdefault("Content-Security-Policy", self._policy)
                    headers.setdefault("Referrer-Policy", "no-referrer")
                if self._spec.origins:
                    headers.add_vary_header("Origin")
                if origin is not None:
                    headers["Access-Control-Allow-Origin"] = origin
                    headers["Access-Control-Expose-Headers"] = EXPOSED
            await send(message)

        return sending


async def _preflight(send: Send) -> None:
    allowed = {
        "Access-Control-Allow-Methods": ALLOWED_METHODS,
        "Access-Control-Allow-Headers": ALLOWED_HEADERS,
        "Access-Control-Max-Age": "600",
    }
    await _answer(send, 204, allowed, b"")


async def _refuse(send: Send, refusal: AccessDenied) -> None:
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if refusal.status == 429:
        headers["Retry-After"] = "1"
    await _answer(send, refusal.status, headers, msgspec.json.encode(refusal.body))


async def _answer(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    raw: list[tuple[bytes, bytes]] = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    raw.append((b"content-length", str(len(body)).encode()))
    start: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": raw}
    await send(start)
    await send({"type": "http.response.body", "body": body})
