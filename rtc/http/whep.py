"""WHEP: a room as a stream for any player that speaks it (draft-ietf-wish-whep; what it shares with WHIP: RFC 9725).

    POST   /v1/rooms/{room}/whep        offer -> 201, answer, Location and ETag of the session
    PATCH  /v1/rooms/{room}/whep/{id}   trickled candidates -> 204; an ICE restart -> 200, our fragment, ETag
    DELETE /v1/rooms/{room}/whep/{id}   -> 200

A player watches; it begins no world, so a room that nobody has opened is a 409 that says when to ask again.
"""

from fastapi import FastAPI, Request, Response

from ...clock import Clock
from ...engine.api import Refused
from ..access.rates import Rates
from ..access.spec import AccessSpec
from ..edge import Edge
from ..viewer import Viewer
from .answers import BUSY_RETRY_S, ApiFault, named, refused_answer
from .offers import newcomer_of
from .sdp_sessions import add_questions, check_offer, created, no_session, patched, taken


def add_whep(app: FastAPI, edge: Edge, access: AccessSpec, rates: Rates, clock: Clock) -> None:
    @app.post("/v1/rooms/{room}/whep")
    async def view(room: str, request: Request) -> Response:
        named(room)
        check_offer(request)
        newcomer = newcomer_of(request, rates, clock.now())
        if not edge.open(room):
            raise ApiFault(409, "no_stream", "nobody has opened this room yet", BUSY_RETRY_S)
        player = await taken(request, lambda offer: edge.take_player(room, offer, newcomer))
        if isinstance(player, Refused):
            return refused_answer(player)
        return created(player, f"{access.base_path}/v1/rooms/{room}/whep", edge.ice_servers(player.id))

    add_questions(app, "/v1/rooms/{room}/whep")

    @app.patch("/v1/rooms/{room}/whep/{id}")
    async def patch(room: str, id: str, request: Request) -> Response:
        return await patched(request, _player(edge, room, id).connection)

    @app.delete("/v1/rooms/{room}/whep/{id}")
    async def end(room: str, id: str) -> Response:
        _player(edge, room, id).leave_for_good()
        return Response(status_code=200)


def _player(edge: Edge, room: str, id: str) -> Viewer:
    viewer = edge.player(room, id)
    if viewer is None:
        raise no_session()
    return viewer
