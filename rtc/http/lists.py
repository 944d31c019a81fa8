"""What can be looked up: health, metrics, cards, capacity, sessions, the last steps, and rooms one may see."""

import asyncio
from collections.abc import Callable

from fastapi import FastAPI, Request, Response

from ...engine.api import EngineClient
from ...sessions.rooms.rooms import Rooms
from ..access.rates import Rates
from ..edge import Edge
from ..livekit.spec import LiveKitCounts
from .answers import BUSY_RETRY_S, ApiFault, access_of, json_answer
from .metrics import CONTENT_TYPE, exposition
from .trace import chrome_trace

STEPS_MAX = 2000
"""Of a trace: about half a megabyte."""


def add_lists(
    app: FastAPI,
    edge: Edge,
    rooms: Rooms,
    door: EngineClient,
    rates: Rates,
    livekit: Callable[[], LiveKitCounts] | None,
) -> None:
    tracing = asyncio.Lock()

    @app.get("/healthz")
    async def health() -> Response:
        return json_answer({"ok": True})

    @app.get("/readyz")
    async def ready() -> Response:
        if not door.ready:
            failed = max((entry.starts_failed for entry in door.capacity()), default=0)
            why = "models are loading and warming up"
            if failed:
                why = f"no worker process can be started ({failed} tries), it is tried again"
            raise ApiFault(503, "not_ready", why, BUSY_RETRY_S)
        return json_answer({"ready": True})

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(exposition(edge, rooms, door, rates, livekit and livekit()), media_type=CONTENT_TYPE)

    @app.get("/v1/cards")
    async def cards() -> Response:
        return json_answer(door.cards())

    @app.get("/v1/capacity")
    async def capacity() -> Response:
        return json_answer(door.capacity())

    @app.get("/v1/sessions")
    async def sessions() -> Response:
        return json_answer(door.sessions())

    @app.get("/v1/trace")
    async def trace() -> Response:
        """Opens in ui.perfetto.dev or chrome://tracing. Made beside the loop, which has frames to send."""
        if tracing.locked():
            raise ApiFault(503, "busy", "somebody else is reading the trace", BUSY_RETRY_S)
        async with tracing:
            return await asyncio.to_thread(lambda: json_answer(chrome_trace(door.steps()[-STEPS_MAX:])))

    @app.get("/v1/rooms")
    async def listed(request: Request) -> Response:
        """Those that the caller's token may see."""
        access = access_of(request)
        return json_answer([view for view in rooms.views() if access.lists or view.room == access.room])
