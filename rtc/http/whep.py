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
from ..media.ice_servers import link_headers
from ..media.offer import NO_CODEC
from ..media.trickle import BadFragment, Fragment, read_fragment
from ..viewer import Viewer
from ..wire import WireError
from .answers import BUSY_RETRY_S, ApiFault, body_of, media_type, named, offer_faults, refused_answer, while_there
from .offers import newcomer_of

SDP = "application/sdp"
FRAGMENT = "application/trickle-ice-sdpfrag"


def add_whep(app: FastAPI, edge: Edge, access: AccessSpec, rates: Rates, clock: Clock) -> None:
    @app.post("/v1/rooms/{room}/whep")
    async def view(room: str, request: Request) -> Response:
        named(room)
        if media_type(request) != SDP:
            raise ApiFault(415, "not_sdp", f"the body of an offer is {SDP}")
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
        response = Response(player.answer, 201, media_type=SDP)
        response.headers["Location"] = f"{access.base_path}/v1/rooms/{room}/whep/{player.id}"
        response.headers["ETag"] = player.etag
        response.headers["Accept-Patch"] = FRAGMENT
        for link in link_headers(edge.ice_servers(player.id)):
            response.headers.append("Link", link)
        return response

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
        viewer = _player(edge, room, id)
        if media_type(request) != FRAGMENT:
            raise ApiFault(415, "not_a_fragment", f"the body of a PATCH is {FRAGMENT}")
        fragment = await _fragment(request)
        asked = request.headers.get("if-match")
        if asked is None:
            raise ApiFault(428, "no_if_match", "a PATCH needs If-Match with the session's ETag")
        if asked == "*" or (fragment.ufrag and fragment.ufrag != viewer.connection.remote_ufrag):
            raise ApiFault(422, "no_ice_restart", "ICE is not restarted within a session: offer anew")
        if asked != viewer.connection.etag:
            raise ApiFault(412, "other_etag", "the session's ETag is another one")
        await viewer.connection.add_candidates(fragment.candidates)
        return Response(status_code=204)

    @app.delete("/v1/rooms/{room}/whep/{id}")
    async def end(room: str, id: str) -> Response:
        _player(edge, room, id).leave_for_good()
        return Response(status_code=200)


def _player(edge: Edge, room: str, id: str) -> Viewer:
    viewer = edge.player(room, id)
    if viewer is None:
        raise ApiFault(404, "no_session", "there is no such session, or it is over")
    return viewer


async def _fragment(request: Request) -> Fragment:
    try:
        return read_fragment((await body_of(request)).decode("utf-8", "replace"))
    except (BadFragment, WireError) as error:
        raise ApiFault(400, "bad_fragment", str(error)) from None
