"""Asking a room's server over HTTP: its address, tokens, certificates, and what a refusal says.

Knows no WebRTC and no messages. Proxies of the environment are not asked; SSL_CERT_FILE is honoured.
"""

import asyncio
import math
import os
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import certifi
import httpx
import msgspec

from ...rtc.wire import ApiError, RefusalBody, RefusalFigures, RoomPass

ANSWER_TIMEOUT = 10.0
AGAIN_S = 0.7
"""A question that cannot do harm is asked again so often, without waiting for those that may be lost on the way."""
GATEWAY_STATUS = (500, 502, 504)
"""What a proxy says while the server behind it is away."""


class RoomRefused(ConnectionError):
    """The server said no; honour `retry_after_s` (None = do not come back with the same request).

    `queue_place`: from 1 in front of the line, 0 = not in line. `figures`: what was too little, where that is known.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        retry_after_s: float | None,
        queue_place: int = 0,
        figures: RefusalFigures | None = None,
    ) -> None:
        super().__init__(f"{detail} ({code})" + (f", number {queue_place} in line" if queue_place else ""))
        self.status, self.code, self.retry_after_s = status, code, retry_after_s
        self.queue_place, self.figures = queue_place, figures


class NoServer(ConnectionError):
    """Nothing answers at the address, or the connection did not come up in time."""


@dataclass(frozen=True, slots=True)
class RoomPlace:
    """A room's address: `http://host:port`, with a base path where there is one, and the room's name ('' = none yet).

    `access`: the token that opens it. `cacert`: who signed the server's certificate, None = whom this machine trusts.
    `card`: its world, if it is not open yet; None = the server's first. `drivers`: how several people drive it then.
    """

    base: str
    room: str
    access: str | None = None
    cacert: Path | None = None
    card: str | None = None
    drivers: str | None = None

    @classmethod
    def of(
        cls,
        url: str,
        access: str | None = None,
        cacert: Path | None = None,
        card: str | None = None,
        drivers: str | None = None,
    ) -> "RoomPlace":
        """From a page's address, e.g. http://127.0.0.1:8080/r/blue-otter-12#token=..., or the server's alone; raises
        ValueError."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(f"'{url}' is not a room's address like http://127.0.0.1:8080/r/blue-otter-12")
        path, r, room = parts.path.rstrip("/").rpartition("/r/")
        if not r:
            path, room = room, ""
        if "/" in room:
            raise ValueError(f"'{url}' is not a room's address like http://127.0.0.1:8080/r/blue-otter-12")
        said = parse_qs(parts.query)
        world = card or next(iter(said.get("card", ())), None)
        rule = drivers or next(iter(said.get("drivers", ())), None)
        _, marked, told = parts.fragment.partition("token=")
        opens = access or (told if marked else None)
        return cls(f"{parts.scheme}://{parts.netloc}{path}", room, opens, cacert, world, rule)

    @property
    def local(self) -> bool:
        return (urlsplit(self.base).hostname or "") in ("127.0.0.1", "localhost", "::1")

    async def named(self) -> "RoomPlace":
        """Itself, in a fresh room of the server where no room is named; raises `RoomRefused` or `NoServer`."""
        if self.room:
            return self
        try:
            made = msgspec.json.decode(await self.post("", b"", {}), type=RoomPass)
        except msgspec.MsgspecError as error:
            raise NoServer(f"what answers at {self.base} makes no rooms ({type(error).__name__})") from None
        return replace(self, room=made.room, access=self.access or made.token or None)

    async def reached(self) -> None:
        """Return when the server answers, whatever it says; soon after a network is back. Raises `NoServer`."""
        answered, asked = asyncio.Event(), list[asyncio.Task[None]]()
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                while not answered.is_set():
                    asked.append(asyncio.create_task(self._knock(answered)))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(answered.wait(), AGAIN_S)
                    if not answered.is_set() and all(task.done() for task in asked):
                        raise NoServer(f"no server at {self.base}")
        except TimeoutError:
            raise NoServer(f"no server at {self.base} within {ANSWER_TIMEOUT:.0f} s") from None
        finally:
            for task in asked:
                task.cancel()

    async def _knock(self, answered: asyncio.Event) -> None:
        with suppress(httpx.HTTPError, NoServer):
            async with httpx.AsyncClient(timeout=ANSWER_TIMEOUT, trust_env=False, verify=self._trust()) as http:
                await http.get(f"{self.base}/v1/rooms/{self.room}/ice")
            answered.set()

    async def post(self, what: str, body: bytes, headers: dict[str, str], method: str = "POST") -> bytes:
        """The body of a success; raises `RoomRefused` or `NoServer`. `what` '' asks for a room."""
        path = f"/v1/rooms/{self.room}/{what}" if what else "/v1/rooms"
        if self.access is not None:
            headers = {"Authorization": f"Bearer {self.access}"} | headers
        try:
            async with httpx.AsyncClient(timeout=ANSWER_TIMEOUT, trust_env=False, verify=self._trust()) as http:
                reply = await http.request(method, f"{self.base}{path}", content=body, headers=headers)
        except httpx.HTTPError as error:
            raise _unreached(self.base, error) from None
        if reply.status_code in (200, 201):
            return reply.content
        if reply.status_code in GATEWAY_STATUS:
            raise NoServer(f"no server behind {self.base} ({reply.status_code})")
        raise _refusal(reply)

    def _trust(self) -> ssl.SSLContext | bool:
        if self.base.startswith("http:"):
            return False
        try:
            context = ssl.create_default_context(cafile=self.cacert)
        except (OSError, ssl.SSLError) as error:
            raise NoServer(f"cannot read the certificates in {self.cacert}: {error}") from None
        if self.cacert is None and "SSL_CERT_FILE" not in os.environ:
            context.load_verify_locations(certifi.where())
        return context


def _unreached(base: str, error: httpx.HTTPError) -> NoServer:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return NoServer(
                f"the certificate of {base} is not trusted ({cause.verify_message}): give the file of who signed it "
                "(--cacert, or SSL_CERT_FILE)"
            )
        cause = cause.__cause__ or cause.__context__
    return NoServer(f"no server at {base} ({type(error).__name__})")


def retry_after_s(header: str | None, now: float) -> float | None:
    """Seconds from a Retry-After header, which holds seconds or a date; never negative, None when there is none."""
    if header is None:
        return None
    try:
        return max(0.0, float(header)) if math.isfinite(float(header)) else None
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - now)
    except ValueError:
        return None


def _refusal(reply: httpx.Response) -> RoomRefused:
    try:
        refusal = msgspec.json.decode(reply.content, type=RefusalBody)
        place, figures = refusal.queue_place, refusal.figures
        return RoomRefused(reply.status_code, refusal.code, refusal.detail, refusal.retry_after_s, place, figures)
    except msgspec.MsgspecError:
        pass
    retry_after = retry_after_s(reply.headers.get("Retry-After"), time.time())
    try:
        error = msgspec.json.decode(reply.content, type=ApiError)
    except msgspec.MsgspecError:
        error = ApiError(str(reply.status_code), "the server's answer is no JSON of ours")
    return RoomRefused(reply.status_code, error.code, error.detail, retry_after)
