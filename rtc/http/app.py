"""The HTTP application: the page, the offer that opens a room, health, metrics and lists.

Every error of the API is a typed JSON object. Makes the edge, starts it with the application and closes it with it.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from ...clock import Clock, SystemClock
from ...engine.api import EngineClient, RefusalReason, Refused
from ...sessions.rooms.first_frames import BadFirstFrames, UploadedMedia
from ...sessions.rooms.names import ROOM_NAME_RULE, valid_room
from ...sessions.rooms.rooms import Rooms
from ..edge import BadOffer, Edge, EdgeSpec, TooManyViewers
from ..media.ice import PortsExhausted
from ..wire import BODY_BYTES_MAX, ApiError, RefusalBody, RefusalFigures, WireError, decode_body
from .metrics import CONTENT_TYPE, exposition
from .pages import add_pages, missing_page, wants_page
from .trace import chrome_trace

log = logging.getLogger(__name__)

T = TypeVar("T")

JSON = "application/json"
CONFLICTS = (RefusalReason.CONFLICT,)
BAD_REQUESTS = (RefusalReason.UNKNOWN_CARD, RefusalReason.ROOM_NAME, RefusalReason.RECIPE)
BUSY_RETRY_S = 2.0
UPLOAD_STATUS = {
    "no_place": 401,
    "not_driving": 403,
    "no_room": 404,
    "too_slow": 408,
    "no_first_frame": 409,
    "too_large": 413,
    "busy": 503,
}


class ApiFault(Exception):
    """Becomes a JSON error with this status."""

    def __init__(self, status: int, code: str, detail: str, retry_after_s: float | None = None) -> None:
        super().__init__(detail)
        self.status, self.error, self.retry_after_s = status, ApiError(code, detail), retry_after_s


def create_app(rooms: Rooms, door: EngineClient, spec: EdgeSpec, clock: Clock | None = None) -> FastAPI:
    """The application of one server; everything it does runs on the loop that serves it."""
    for noisy in ("aiortc", "aioice", "pyee"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    edge = Edge(rooms, door, spec, clock or SystemClock())

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        edge.start()
        try:
            yield
        finally:
            await edge.close()

    app = FastAPI(title="Worldroom", lifespan=life, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.edge = edge
    _add_errors(app, spec.web_root)
    add_pages(app, spec.web_root)
    _add_offers(app, edge)
    _add_first_frames(app, rooms)
    _add_lists(app, edge, rooms, door)
    return app


def _json(value: object, status: int = 200, retry_after_s: float | None = None) -> Response:
    headers = {"Cache-Control": "no-store"}
    if retry_after_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after_s)))
    return Response(msgspec.json.encode(value), status, headers, JSON)


def _add_errors(app: FastAPI, web_root: Path) -> None:
    @app.exception_handler(ApiFault)
    async def fault(_: Request, error: ApiFault) -> Response:
        return _json(error.error, error.status, error.retry_after_s)

    @app.exception_handler(404)
    @app.exception_handler(405)
    async def missing(request: Request, error: HTTPException) -> Response:
        asked = f"{request.method} {request.url.path}"
        if wants_page(request):
            return missing_page(web_root, request, error.status_code, asked)
        return _json(
            ApiError({404: "not_found", 405: "method_not_allowed"}[error.status_code], asked), error.status_code
        )

    @app.exception_handler(500)
    async def internal(_: Request, error: Exception) -> Response:
        return _json(ApiError("internal", "the server failed on this request"), 500)


def _add_offers(app: FastAPI, edge: Edge) -> None:
    @app.post("/v1/rooms/{room}/offer")
    async def offer(room: str, request: Request) -> Response:
        _named(room)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            raise ApiFault(415, "not_json", "the body of an offer is application/json")
        try:
            asked = decode_body(await _body(request))
            client = request.client
            local = client is not None and client.host in ("127.0.0.1", "::1")
            answer = await _while_there(request, edge.take_offer(room, asked, local))
        except WireError as error:
            raise ApiFault(413 if error.code == "too_large" else 400, error.code, error.detail) from None
        except BadOffer as error:
            raise ApiFault(422 if error.code == "no_h264" else 400, error.code, error.detail) from None
        except PortsExhausted as error:
            raise ApiFault(503, "no_udp_port", str(error), BUSY_RETRY_S) from None
        except TooManyViewers as error:
            raise ApiFault(503, "too_many_viewers", str(error), BUSY_RETRY_S) from None
        except ClientDisconnect:
            raise ApiFault(400, "cut_off", "the client went away before the answer") from None
        return _refused(answer) if isinstance(answer, Refused) else _json(answer)


def _add_first_frames(app: FastAPI, rooms: Rooms) -> None:
    @app.post("/v1/rooms/{room}/first_frame")
    async def first_frame(room: str, request: Request) -> Response:
        """The body is the file; the token of the driver's seat is the bearer."""
        _named(room)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.isascii():
            raise ApiFault(401, "no_token", "the token of a seat is needed: Authorization: Bearer <token>")
        try:
            media = UploadedMedia(request.headers.get("content-type", "").partition(";")[0].strip().lower())
        except ValueError:
            raise ApiFault(415, "media_type", f"a first frame is {', '.join(UploadedMedia)}") from None
        try:
            return _json(await rooms.first_frame(room, token, media, request.stream()))
        except ClientDisconnect:
            raise ApiFault(400, "cut_off", "the connection ended before the file did") from None
        except BadFirstFrames as error:
            status = UPLOAD_STATUS.get(error.code, 422)
            raise ApiFault(status, error.code, str(error), BUSY_RETRY_S if status == 503 else None) from None


def _refused(refused: Refused) -> Response:
    status = 409 if refused.reason in CONFLICTS else 400 if refused.reason in BAD_REQUESTS else 503
    reason, said = refused.reason.value, refused.figures
    figures = None if said is None else RefusalFigures(said.needed, said.used, said.limit, said.unit.value)
    body = RefusalBody(reason, refused.detail, reason, refused.queue_place, refused.retry_after_s, figures)
    return _json(body, status, refused.retry_after_s if status != 400 else None)


def _add_lists(app: FastAPI, edge: Edge, rooms: Rooms, door: EngineClient) -> None:
    @app.get("/healthz")
    async def health() -> Response:
        return _json({"ok": True})

    @app.get("/readyz")
    async def ready() -> Response:
        if not door.ready:
            raise ApiFault(503, "not_ready", "models are loading and warming up", BUSY_RETRY_S)
        return _json({"ready": True})

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(exposition(edge, rooms, door), media_type=CONTENT_TYPE)

    @app.get("/v1/cards")
    async def cards() -> Response:
        return _json(door.cards())

    @app.get("/v1/capacity")
    async def capacity() -> Response:
        return _json(door.capacity())

    @app.get("/v1/sessions")
    async def sessions() -> Response:
        return _json(door.sessions())

    @app.get("/v1/trace")
    async def trace() -> Response:
        """Opens in ui.perfetto.dev or chrome://tracing."""
        return _json(chrome_trace(door.steps()))

    @app.get("/v1/rooms")
    async def listed() -> Response:
        return _json(rooms.views())


def _named(room: str) -> None:
    if not valid_room(room):
        raise ApiFault(400, "bad_room", ROOM_NAME_RULE)


async def _while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
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


async def _body(request: Request) -> bytes:
    """The body, read no further than the limit."""
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > BODY_BYTES_MAX:
            raise WireError("too_large", f"body of more than {BODY_BYTES_MAX} bytes")
    return bytes(parts)
