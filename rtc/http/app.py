"""The HTTP application: puts pages, rooms, offers and lists together behind the guard.

Every error of the API is a typed JSON object. Makes the edge, starts it with the application and closes it with it.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import HTTPException

from ...clock import Clock, SystemClock
from ...engine.api import EngineClient
from ...sessions.rooms.recording import RoomRecordings
from ...sessions.rooms.rooms import Rooms
from ..access.rates import Rates
from ..access.spec import AccessSpec
from ..edge import Edge, EdgeSpec
from ..livekit.spec import LiveKitSpec
from ..sources import Sources
from ..wire import ApiError
from .adapters import add_adapters
from .answers import ApiFault, json_answer
from .guard import Guard
from .library import Past, add_library
from .lists import add_lists
from .livekit import add_livekit
from .offers import add_first_frames, add_ice, add_offers, add_rooms
from .openapi import add_openapi
from .pages import add_pages, missing_page, wants_page
from .past_rooms import add_past_rooms
from .recording import add_recording
from .whep import add_whep
from .whip import add_whip

if TYPE_CHECKING:
    from ..livekit.bridge import LiveKit


def create_app(
    rooms: Rooms,
    door: EngineClient,
    spec: EdgeSpec,
    clock: Clock | None = None,
    access: AccessSpec | None = None,
    films: RoomRecordings | None = None,
    past: Past | None = None,
    livekit: LiveKitSpec | None = None,
) -> FastAPI:
    """The application of one server; everything it does runs on the loop that serves it. `livekit` needs its SDK."""
    for noisy in ("aiortc", "aioice", "pyee"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    clock, access = clock or SystemClock(), access or AccessSpec()
    edge, rates = Edge(rooms, spec, clock, access.limits.viewers), Rates(access.limits)
    sources = Sources(rooms, edge)
    bridge = None if livekit is None else _bridge(livekit, rooms, edge, clock)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        edge.start()
        if bridge is not None:
            bridge.start()
        try:
            yield
        finally:
            if bridge is not None:
                await bridge.close()
            await sources.close()
            await edge.close()

    app = FastAPI(title="Worldroom", lifespan=life, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.edge = edge
    _add_errors(app, spec.web_root)
    add_pages(app, spec.web_root)
    add_openapi(app)
    add_rooms(app, access, clock)
    add_offers(app, edge, rates, clock)
    add_first_frames(app, rooms)
    add_adapters(app, rooms)
    if films is not None:
        add_recording(app, films)
    if past is not None:
        add_library(app, past)
        if past.rooms is not None:
            add_past_rooms(app, past.library, past.rooms)
    add_whep(app, edge, access, rates, clock)
    if bridge is not None:
        add_livekit(app, bridge)
    add_whip(app, edge, rooms, sources, access, rates, clock)
    add_ice(app, edge)
    add_lists(app, edge, rooms, door, rates, None if bridge is None else bridge.counts)
    app.add_middleware(Guard, spec=access, clock=clock, rates=rates, seat_rights=rooms.rights)
    return app


def _bridge(spec: LiveKitSpec, rooms: Rooms, edge: Edge, clock: Clock) -> "LiveKit":
    from ..livekit.bridge import LiveKit  # LiveKit's SDK is an optional dependency

    return LiveKit(spec, rooms, edge, clock)


def _add_errors(app: FastAPI, web_root: Path) -> None:
    @app.exception_handler(ApiFault)
    async def fault(_: Request, error: ApiFault) -> Response:
        return json_answer(error.error, error.status, error.retry_after_s)

    @app.exception_handler(404)
    @app.exception_handler(405)
    async def missing(request: Request, error: HTTPException) -> Response:
        asked = f"{request.method} {request.url.path}"
        if wants_page(request):
            return missing_page(web_root, request, error.status_code, f"This server has no page at {request.url.path}")
        code = {404: "not_found", 405: "method_not_allowed"}[error.status_code]
        return json_answer(ApiError(code, asked), error.status_code, headers=dict(error.headers or {}))

    @app.exception_handler(500)
    async def internal(_: Request, error: Exception) -> Response:
        return json_answer(ApiError("internal", "the server failed on this request"), 500)
