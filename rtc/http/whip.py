"""WHIP (RFC 9725): a camera or a game as the first frame of a room's world.

    POST   /v1/rooms/{room}/whip        offer -> 201, answer, Location and ETag of the session
    PATCH  /v1/rooms/{room}/whip/{id}   trickled candidates -> 204; an ICE restart -> 422, the source offers anew
    DELETE /v1/rooms/{room}/whip/{id}   -> 200

The bearer is the driver's: the token of the seat, or one whose identity holds the wheel. The world begins anew from the
first pictures that arrive, once a session.
"""

from fastapi import FastAPI, Request, Response

from ...clock import Clock
from ...sessions.rooms.first_frames import BadFirstFrames
from ...sessions.rooms.rooms import Rooms
from ..access.rates import Rates
from ..access.spec import AccessSpec
from ..edge import Edge
from ..media.offer import NO_CODEC
from ..sources import Sources
from .answers import BUSY_RETRY_S, ApiFault, access_of, body_of, named, offer_faults, while_there
from .offers import UPLOAD_STATUS, newcomer_of
from .sdp_sessions import SDP, check_offer, created, no_session, trickled


def add_whip(
    app: FastAPI, edge: Edge, rooms: Rooms, sources: Sources, access: AccessSpec, rates: Rates, clock: Clock
) -> None:
    @app.post("/v1/rooms/{room}/whip")
    async def source(room: str, request: Request) -> Response:
        named(room)
        check_offer(request)
        token = _seat_token(rooms, room, request)
        newcomer = newcomer_of(request, rates, clock.now())
        if not edge.open(room):
            raise ApiFault(409, "no_room", "nobody has opened this room yet", BUSY_RETRY_S)
        try:
            with offer_faults():
                offer = (await body_of(request)).decode("utf-8", "replace")
                taken = await while_there(request, sources.take(room, token, offer, newcomer))
        except BadFirstFrames as error:
            raise ApiFault(UPLOAD_STATUS.get(error.code, 422), error.code, str(error)) from None
        except ApiFault as fault:
            raise (ApiFault(406, NO_CODEC, fault.error.detail) if fault.error.code == NO_CODEC else fault) from None
        return created(taken, f"{access.base_path}/v1/rooms/{room}/whip", edge.ice_servers(taken.id))

    @app.options("/v1/rooms/{room}/whip")
    async def asks(room: str) -> Response:
        named(room)
        return Response(status_code=200, headers={"Accept-Post": SDP})

    @app.get("/v1/rooms/{room}/whip")
    @app.get("/v1/rooms/{room}/whip/{id}")
    async def nothing(room: str, id: str = "") -> Response:
        """Reserved by the RFC: a success without content."""
        return Response(status_code=200, media_type=SDP)

    @app.patch("/v1/rooms/{room}/whip/{id}")
    async def trickle(room: str, id: str, request: Request) -> Response:
        connection = sources.find(room, id)
        if connection is None:
            raise no_session()
        return await trickled(request, connection)

    @app.delete("/v1/rooms/{room}/whip/{id}")
    async def end(room: str, id: str) -> Response:
        if not await sources.end(room, id):
            raise no_session()
        return Response(status_code=200)


def _seat_token(rooms: Rooms, room: str, request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.isascii():
        raise ApiFault(401, "no_token", "the driver's token is needed: Authorization: Bearer <token>")
    identity = access_of(request).rights.identity
    of_identity = None if identity is None else rooms.seat_token(room, identity)
    return token.strip() if rooms.rights(room, token.strip()) is not None else of_identity or token.strip()
