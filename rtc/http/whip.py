"""WHIP (RFC 9725): a camera or a game as the first frame of a room's world.

    POST   /v1/rooms/{room}/whip        offer -> 201, answer, Location and ETag of the session
    PATCH  /v1/rooms/{room}/whip/{id}   trickled candidates -> 204; an ICE restart -> 200, our fragment, ETag
    DELETE /v1/rooms/{room}/whip/{id}   -> 200

The bearer is the driver's: the token of the seat, or one whose identity holds the wheel. The world begins anew from the
first pictures that arrive, once a session.
"""

from fastapi import FastAPI, Request, Response

from ...clock import Clock
from ...sessions.rooms.rooms import Rooms
from ..access.rates import Rates
from ..access.spec import AccessSpec
from ..edge import Edge
from ..sources import Sources
from .answers import BUSY_RETRY_S, ApiFault, access_of, bearer_of, named
from .offers import first_frame_faults, newcomer_of
from .sdp_sessions import add_questions, check_offer, created, no_session, patched, taken


def add_whip(
    app: FastAPI, edge: Edge, rooms: Rooms, sources: Sources, access: AccessSpec, rates: Rates, clock: Clock
) -> None:
    @app.post("/v1/rooms/{room}/whip")
    async def begin(room: str, request: Request) -> Response:
        named(room)
        check_offer(request)
        token = _seat_token(rooms, room, request)
        newcomer = newcomer_of(request, rates, clock.now())
        if not edge.open(room):
            raise ApiFault(409, "no_room", "nobody has opened this room yet", BUSY_RETRY_S)
        with first_frame_faults():
            source = await taken(request, lambda offer: sources.take(room, token, offer, newcomer))
        return created(source, f"{access.base_path}/v1/rooms/{room}/whip", edge.ice_servers(source.id))

    add_questions(app, "/v1/rooms/{room}/whip")

    @app.patch("/v1/rooms/{room}/whip/{id}")
    async def patch(room: str, id: str, request: Request) -> Response:
        connection = sources.find(room, id)
        if connection is None:
            raise no_session()
        return await patched(request, connection)

    @app.delete("/v1/rooms/{room}/whip/{id}")
    async def end(room: str, id: str) -> Response:
        if not await sources.end(room, id):
            raise no_session()
        return Response(status_code=200)


def _seat_token(rooms: Rooms, room: str, request: Request) -> str:
    token = bearer_of(request, "the driver's token").strip()
    if rooms.rights(room, token) is not None:
        return token
    identity = access_of(request).rights.identity
    of_identity = None if identity is None else rooms.seat_token(room, identity)
    return of_identity or token
