"""Rooms made of what was: a new one whose world goes on from a moment of a session in the library."""

import msgspec
from fastapi import FastAPI, Request, Response

from ...sessions.library.library import Library, NoFilm
from ...sessions.rooms.past import PAST_FAULTS, NoMoment, PastRooms
from .answers import BUSY_RETRY_S, ApiFault, body_of, json_answer, offer_faults
from .library import known

BODY_MOST = 4096


class OnwardAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From `chunk` on (None = the end), of `epoch` (None = the last one that has it); or behind what `film` shows after
    `seconds`."""

    chunk: int | None = None
    epoch: int | None = None
    film: str = ""
    seconds: float = 0.0


class PlannedRoom(msgspec.Struct, frozen=True):
    """A name that opens as was asked, for the first who joins."""

    room: str


def add_past_rooms(app: FastAPI, library: Library, past: PastRooms) -> None:
    @app.post("/v1/library/{session}/rooms")
    async def onward(session: str, request: Request) -> Response:
        await known(library, session, request)
        try:
            with offer_faults():
                body = await body_of(request, BODY_MOST)
            asked = msgspec.json.decode(body or b"{}", type=OnwardAsk)
        except msgspec.MsgspecError as error:
            raise ApiFault(400, "bad_request", str(error)) from None
        epoch, chunk = asked.epoch, asked.chunk
        try:
            if asked.film:
                epoch, chunk = await library.moment(session, asked.film, asked.seconds)
            return json_answer(PlannedRoom(await past.plan(session, chunk, epoch)), 201)
        except (NoMoment, NoFilm) as error:
            raise ApiFault(422, "no_moment", str(error)) from None
        except PAST_FAULTS as error:
            raise ApiFault(503, "journal", str(error), BUSY_RETRY_S) from None
