"""The ways into a room by our own protocol: a room's name and token, an offer, a first frame."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from starlette.requests import ClientDisconnect

from ...clock import Clock
from ...engine.api import Refused
from ...sessions.drivers import DriversRule
from ...sessions.rooms.first_frames import BadFirstFrames, UploadedMedia
from ...sessions.rooms.names import fresh_room
from ...sessions.rooms.rights import Rights
from ...sessions.rooms.rooms import Rooms
from ..access.rates import Rates, whose
from ..access.spec import AccessSpec
from ..access.tokens import mint
from ..edge import Edge, Newcomer
from ..media.ice_servers import IceServersBody
from ..wire import OfferBody, RoomAsk, RoomPass, decode_body
from .answers import (
    BUSY_RETRY_S,
    JSON,
    ApiFault,
    access_of,
    bearer_of,
    body_of,
    caller,
    json_answer,
    media_type,
    named,
    offer_faults,
    refused_answer,
    while_there,
)

UPLOAD_STATUS = {
    "no_place": 401,
    "not_driving": 403,
    "no_room": 404,
    "too_slow": 408,
    "no_first_frame": 409,
    "replay": 409,
    "too_large": 413,
    "busy": 503,
}


def add_rooms(app: FastAPI, spec: AccessSpec, clock: Clock) -> None:
    names = random.SystemRandom()

    @app.post("/v1/rooms")
    async def make(request: Request) -> Response:
        """A name and, where tokens are asked for, the token that opens it. The world begins with who comes first."""
        with offer_faults():
            body = await body_of(request)
            asked = decode_body(body, RoomAsk) if body else RoomAsk()
            drivers = None if asked.drivers is None else DriversRule.read(asked.drivers)
        room = asked.room or fresh_room(names)
        named(room)
        says = {"card": asked.card, "drivers": None if spec.keys else asked.drivers}
        said = urlencode({name: value for name, value in says.items() if value}, safe=",:")
        world = f"?{said}" if said else ""
        path, now = f"{spec.base_path}/r/{room}{world}", clock.wall()
        if not spec.keys:
            return json_answer(RoomPass(room, path), 201)
        rights = Rights(asked.role, asked.identity, asked.name, asked.metadata, drivers=drivers)
        token = mint(spec.keys.first(), room, rights, now, asked.ttl_s)
        return json_answer(RoomPass(room, path, token, int(now + asked.ttl_s)), 201)


def add_offers(app: FastAPI, edge: Edge, rates: Rates, clock: Clock) -> None:
    @app.post("/v1/rooms/{room}/offer")
    async def offer(room: str, request: Request) -> Response:
        named(room)
        if media_type(request) != JSON:
            raise ApiFault(415, "not_json", "the body of an offer is application/json")
        newcomer = newcomer_of(request, rates, clock.now())
        with offer_faults():
            asked = decode_body(await body_of(request), OfferBody)
            answer = await while_there(request, edge.take_offer(room, asked, newcomer))
        return refused_answer(answer) if isinstance(answer, Refused) else json_answer(answer)


def add_ice(app: FastAPI, edge: Edge) -> None:
    @app.get("/v1/rooms/{room}/ice")
    async def servers(room: str, request: Request) -> Response:
        """STUN and TURN servers, to be asked for before an offer is made."""
        named(room)
        identity = access_of(request).rights.identity or "guest"
        return json_answer(IceServersBody(edge.ice_servers(identity), edge.ice_ttl_s))


def newcomer_of(request: Request, rates: Rates, now: float) -> Newcomer:
    """Who offers, unless that is too often for an address or an identity."""
    access, address = access_of(request), caller(request).address
    identity = access.rights.identity
    if not rates.offer(whose(address), now) or (identity is not None and not rates.offer(f"id {identity}", now)):
        rates.refused["too_many_offers"] += 1
        raise ApiFault(429, "too_many_offers", "too many connections are asked for: slow down", 1.0)
    return Newcomer(access.rights, address)


def add_first_frames(app: FastAPI, rooms: Rooms) -> None:
    @app.post("/v1/rooms/{room}/first_frame")
    async def first_frame(room: str, request: Request) -> Response:
        """The body is the file; the token of the driver's seat is the bearer."""
        named(room)
        token = bearer_of(request)
        try:
            media = UploadedMedia(media_type(request))
        except ValueError:
            raise ApiFault(415, "media_type", f"a first frame is {', '.join(UploadedMedia)}") from None
        try:
            with first_frame_faults():
                return json_answer(await rooms.first_frame(room, token, media, request.stream()))
        except ClientDisconnect:
            raise ApiFault(400, "cut_off", "the connection ended before the file did") from None


@contextmanager
def first_frame_faults() -> Iterator[None]:
    """Why a world does not begin from pictures, as API faults."""
    try:
        yield
    except BadFirstFrames as error:
        status = UPLOAD_STATUS.get(error.code, 422)
        raise ApiFault(status, error.code, str(error), BUSY_RETRY_S if status == 503 else None) from None
