"""What WHIP and WHEP share (RFC 9725): an offer taken, the 201 with its headers, the PATCH of trickled candidates or of
an ICE restart, and what answers OPTIONS and GET."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response

from ..edge import Player
from ..media.ice_servers import IceServer, link_headers
from ..media.offer import NO_CODEC
from ..media.offered import OfferedConnection
from ..media.trickle import BadFragment, Fragment, read_fragment
from ..wire import WireError
from .answers import ApiFault, body_of, media_type, named, offer_faults, while_there

T = TypeVar("T")

SDP = "application/sdp"
FRAGMENT = "application/trickle-ice-sdpfrag"
UFRAG_MIN, PASSWORD_MIN = 4, 22
"""Characters (RFC 8839, 5.4)."""


def check_offer(request: Request) -> None:
    if media_type(request) != SDP:
        raise ApiFault(415, "not_sdp", f"the body of an offer is {SDP}")


async def taken(request: Request, take: Callable[[str], Coroutine[Any, Any, T]]) -> T:
    """What comes of the offer in the body, while its client is there; raises `ApiFault`."""
    try:
        with offer_faults():
            offer = (await body_of(request)).decode("utf-8", "replace")
            return await while_there(request, take(offer))
    except ApiFault as fault:
        raise (ApiFault(406, NO_CODEC, fault.error.detail) if fault.error.code == NO_CODEC else fault) from None


def created(session: Player, location: str, servers: Sequence[IceServer]) -> Response:
    """The 201."""
    response = Response(session.answer, 201, media_type=SDP)
    response.headers["Location"] = f"{location}/{session.id}"
    response.headers["ETag"] = session.etag
    response.headers["Accept-Patch"] = FRAGMENT
    for link in link_headers(tuple(servers)):
        response.headers.append("Link", link)
    return response


def add_questions(app: FastAPI, path: str) -> None:
    """What may be asked without beginning anything."""

    @app.options(path)
    async def asks(room: str) -> Response:
        named(room)
        return Response(status_code=200, headers={"Accept-Post": SDP})

    @app.get(path)
    @app.get(path + "/{id}")
    async def nothing(room: str, id: str = "") -> Response:
        """Reserved by the RFC and the drafts: a success without content."""
        return Response(status_code=200, media_type=SDP)


def no_session() -> ApiFault:
    return ApiFault(404, "no_session", "there is no such session, or it is over")


async def patched(request: Request, connection: OfferedConnection) -> Response:
    """A PATCH: candidates of the present ICE session are added, or, with `If-Match: *` and another user fragment, a new
    one begins and is answered with ours (RFC 9725, 4.3)."""
    if media_type(request) != FRAGMENT:
        raise ApiFault(415, "not_a_fragment", f"the body of a PATCH is {FRAGMENT}")
    fragment = await _fragment(request)
    asked, other = request.headers.get("if-match"), fragment.ufrag != connection.remote_ufrag
    if asked is None:
        raise ApiFault(428, "no_if_match", "a PATCH needs If-Match with the session's ETag, or * for an ICE restart")
    if asked == "*" and fragment.ufrag and other:
        return await _restarted(fragment, connection)
    if asked not in ("*", connection.etag):
        raise ApiFault(412, "other_etag", "the session's ETag is another one")
    if fragment.ufrag and other:
        raise ApiFault(422, "other_ufrag", "that is another ICE session: an ICE restart is asked for with If-Match: *")
    await connection.add_candidates(fragment.candidates)
    return Response(status_code=204)


async def _restarted(fragment: Fragment, connection: OfferedConnection) -> Response:
    if not (len(fragment.ufrag) >= UFRAG_MIN and len(fragment.password) >= PASSWORD_MIN):
        raise ApiFault(400, "bad_fragment", "an ICE restart needs ice-ufrag and ice-pwd")
    if connection.connectionState != "connected":
        raise ApiFault(422, "not_connected", "there is nothing yet to restart ICE of")
    with offer_faults():
        ours = await connection.restart_ice(fragment)
    return Response(ours, 200, media_type=FRAGMENT, headers={"ETag": connection.etag})


async def _fragment(request: Request) -> Fragment:
    try:
        return read_fragment((await body_of(request)).decode("utf-8", "replace"))
    except (BadFragment, WireError) as error:
        raise ApiFault(400, "bad_fragment", str(error)) from None
