"""WHEP: a room as a stream for any player that speaks it (draft-ietf-wish-whep; what it shares with WHIP: RFC 9725).

    POST   /v1/rooms/{room}/whep        offer -> 201, answer, Location and ETag of the session
    PATCH  /v1/rooms/{room}/whep/{id}   trickled candidates -> 204; an ICE restart -> 422, the player offers anew
    DELETE /v1/rooms/{room}/whep/{id}   -> 200

A player watches; it begins no world, so a room that nobody has opened is a 409 that says when to ask again.
"""

from fastapi import FastAPI, Request, Response

from ...clock import Clock
from ...engine.api import Refused
from ..access.rates import Rates
from ..access.spec import AccessSpec
from ..edge import Edge
from ..media.offer import NO_CODEC
from ..viewer import Viewer
from .answers import BUSY_RETRY_S, ApiFault, body_of, named, offer_faults, refused_answer, while_there
from .offers import newcomer_of
from .sdp_sessions import SDP, check_offer, created, no_session, trickled


def add_whep(app: FastAPI, edge: Edge, access: AccessSpec, rates: Rates, clock: Clock) -> None:
    @app.post("/v1/rooms/{room}/whep")
    async def view(room: str, request: Request) -> Response:
        named(room)
        check_offer(request)
        newcomer = newcomer_of(request, rates, clock.now())
        if not edge.open(room):
            raise ApiFault(409, "no_stream", "nobody has opened this room yet", BUSY_RETRY_S)
        try:
            with offer_faults():
                offer = (await body_of(request)).decode("utf-8", "replace")
                player = await while_there(request, edge.take_player(room, offer, newcomer))
        except ApiFault as fault:
            raise (ApiFault(406, NO_CODEC, fault.error.detail) if fault.error.code == NO_CODEC else fault) from None
        if isinstance(player, Refused):
            return refused_answer(player)
        return created(player, f"{access.base_path}/v1/rooms/{room}/whep", edge.ice_servers(player.id))

    @app.options("/v1/rooms/{room}/whep")
    async def asks(room: str) -> Response:
        named(room)
        return Response(status_code=200, headers={"Accept-Post": SDP})

    @app.get("/v1/rooms/{room}/whep")
    @app.get("/v1/rooms/{room}/whep/{id}")
    async def nothing(room: str, id: str = "") -> Response:
        """Reserved by the drafts: a success without content."""
        return Response(status_code=200, media_type=SDP)

    @app.patch("/v1/rooms/{room}/whep/{id}")
    async def trickle(room: str, id: str, request: Request) -> Response:
        return await trickled(request, _player(edge, room, id).connection)

    @app.delete("/v1/rooms/{room}/whep/{id}")
    async def end(room: str, id: str) -> Response:
        _player(edge, room, id).leave_for_good()
        return Response(status_code=200)


def _player(edge: Edge, room: str, id: str) -> Viewer:
    viewer = edge.player(room, id)
    if viewer is None:
        raise no_session()
    return viewer
