"""What the API answers: JSON bodies, typed errors, and the status of every fault that an offer can meet."""

import asyncio
import errno
import math
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from ...engine.api import RefusalReason, Refused
from ...sessions.audience import TAKEN_OVER
from ...sessions.drivers import BadDrivers
from ...sessions.rooms.names import ROOM_NAME_RULE, valid_room
from ..access.forwarded import Caller
from ..access.tokens import Access
from ..edge import BadOffer, EndedEarly, TooManyViewers
from ..media.ice import PortsExhausted
from ..media.offer import NO_CODEC
from ..wire import BODY_BYTES_MAX, ApiError, RefusalBody, RefusalFigures, WireError

T = TypeVar("T")

JSON = "application/json"
CONFLICTS = (RefusalReason.CONFLICT,)
BAD_REQUESTS = (RefusalReason.UNKNOWN_CARD, RefusalReason.ROOM_NAME, RefusalReason.RECIPE, RefusalReason.DRIVERS)
BUSY_RETRY_S = 2.0
FULL_RETRY_S = 5.0
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class ApiFault(Exception):
    """Becomes a JSON error with this status."""

    def __init__(self, status: int, code: str, detail: str, retry_after_s: float | None = None) -> None:
        super().__init__(detail)
        self.status, self.error, self.retry_after_s = status, ApiError(code, detail), retry_after_s


def json_answer(
    value: object, status: int = 200, retry_after_s: float | None = None, headers: dict[str, str] | None = None
) -> Response:
    all_headers = {"Cache-Control": "no-store"} | (headers or {})
    if retry_after_s is not None:
        all_headers["Retry-After"] = str(max(1, math.ceil(retry_after_s)))
    return Response(msgspec.json.encode(value), status, all_headers, JSON)


def refused_answer(refused: Refused) -> Response:
    status = 409 if refused.reason in CONFLICTS else 400 if refused.reason in BAD_REQUESTS else 503
    reason, said = refused.reason.value, refused.figures
    figures = None if said is None else RefusalFigures(said.needed, said.used, said.limit, said.unit.value)
    body = RefusalBody(reason, refused.detail, reason, refused.queue_place, refused.retry_after_s, figures)
    return json_answer(body, status, refused.retry_after_s if status != 400 else None)


@contextmanager
def offer_faults() -> Iterator[None]:
    """Faults of an offer as API faults, whatever protocol it came by."""
    try:
        yield
    except WireError as error:
        raise ApiFault(413 if error.code == "too_large" else 400, error.code, error.detail) from None
    except BadDrivers as error:
        raise ApiFault(400, "bad_drivers", str(error)) from None
    except BadOffer as error:
        raise ApiFault(422 if error.code == NO_CODEC else 400, error.code, error.detail) from None
    except PortsExhausted as error:
        raise ApiFault(503, "no_udp_port", str(error), BUSY_RETRY_S) from None
    except TooManyViewers as error:
        raise ApiFault(503, error.code, str(error), BUSY_RETRY_S) from None
    except EndedEarly as error:
        if error.code == TAKEN_OVER:
            raise ApiFault(409, error.code, "a newer connection has this seat") from None
        raise ApiFault(503, "ended", str(error), BUSY_RETRY_S) from None
    except OSError as error:
        if error.errno not in EXHAUSTED:
            raise
        raise ApiFault(503, "exhausted", "the server has no more sockets: come back in a while", FULL_RETRY_S) from None
    except ClientDisconnect:
        raise ApiFault(400, "cut_off", "the client went away before the answer") from None


def named(room: str) -> None:
    if not valid_room(room):
        raise ApiFault(400, "bad_room", ROOM_NAME_RULE)


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def access_of(request: Request) -> Access:
    """What the guard found in the request's credentials."""
    access = request.state.access
    assert isinstance(access, Access)
    return access


def bearer_of(request: Request, whose: str = "the token of a seat") -> str:
    """The token that comes with a request, for what a seat may do."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.isascii():
        raise ApiFault(401, "no_token", f"{whose} is needed: Authorization: Bearer <token>")
    return token


def caller(request: Request) -> Caller:
    """Who asked, behind any proxy that is trusted."""
    found = request.state.caller
    assert isinstance(found, Caller)
    return found


async def body_of(request: Request, limit: int = BODY_BYTES_MAX) -> bytes:
    """The body, read no further than the limit; raises `WireError`."""
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > limit:
            raise WireError("too_large", f"body of more than {limit} bytes")
    return bytes(parts)


async def while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The work's result; raises `ClientDisconnect`, and ends the work, when the client goes away first."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        for waiting in (task, gone):
            waiting.cancel()


async def _disconnected(request: Request) -> None:
    """Returns when the client has gone; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
