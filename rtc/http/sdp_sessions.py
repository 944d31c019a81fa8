"""What WHIP and WHEP share (RFC 9725): the offer's body, the 201 with its headers, the PATCH of trickled candidates."""

from collections.abc import Sequence

from fastapi import Request, Response

from ..edge import Player
from ..media.ice_servers import IceServer, link_headers
from ..media.offered import OfferedConnection
from ..media.trickle import BadFragment, Fragment, read_fragment
from ..wire import WireError
from .answers import ApiFault, body_of, media_type

SDP = "application/sdp"
FRAGMENT = "application/trickle-ice-sdpfrag"


def check_offer(request: Request) -> None:
    if media_type(request) != SDP:
        raise ApiFault(415, "not_sdp", f"the body of an offer is {SDP}")


def created(session: Player, location: str, servers: Sequence[IceServer]) -> Response:
    """The 201."""
    response = Response(session.answer, 201, media_type=SDP)
    response.headers["Location"] = f"{location}/{session.id}"
    response.headers["ETag"] = session.etag
    response.headers["Accept-Patch"] = FRAGMENT
    for link in link_headers(tuple(servers)):
        response.headers.append("Link", link)
    return response


def no_session() -> ApiFault:
    return ApiFault(404, "no_session", "there is no such session, or it is over")


async def trickled(request: Request, connection: OfferedConnection) -> Response:
    """A PATCH: candidates are added; an ICE restart is not done, whoever wants one offers anew."""
    if media_type(request) != FRAGMENT:
        raise ApiFault(415, "not_a_fragment", f"the body of a PATCH is {FRAGMENT}")
    fragment = await _fragment(request)
    asked = request.headers.get("if-match")
    if asked is None:
        raise ApiFault(428, "no_if_match", "a PATCH needs If-Match with the session's ETag")
    if asked == "*" or (fragment.ufrag and fragment.ufrag != connection.remote_ufrag):
        raise ApiFault(422, "no_ice_restart", "ICE is not restarted within a session: offer anew")
    if asked != connection.etag:
        raise ApiFault(412, "other_etag", "the session's ETag is another one")
    await connection.add_candidates(fragment.candidates)
    return Response(status_code=204)


async def _fragment(request: Request) -> Fragment:
    try:
        return read_fragment((await body_of(request)).decode("utf-8", "replace"))
    except (BadFragment, WireError) as error:
        raise ApiFault(400, "bad_fragment", str(error)) from None
