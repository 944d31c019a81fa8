"""Rooms made of what was: in a new one the world of a session in the library goes on, or is shown again, live."""

from collections.abc import Awaitable, Callable

import msgspec
from fastapi import FastAPI, Request, Response

from ...sessions.journal.script import SCRIPT_FAULTS
from ...sessions.library.library import Library, NoFilm
from ...sessions.rooms.past import NoMoment, PastRooms
from .answers import BUSY_RETRY_S, ApiFault, body_of, json_answer, offer_faults
from .library import known

BODY_MOST = 4096


Plan = Callable[[str, int | None, int | None], Awaitable[str]]
"""A room's name for a session, a chunk and an epoch; raises `SCRIPT_FAULTS`."""


class MomentAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From `chunk` on (None = the end; of a replay, the beginning), of `epoch` (None = the last one that has it); or
    from what `film` shows after `seconds`."""

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
        """In which its world goes on."""
        return await _planned(library, past.plan, session, request)

    @app.post("/v1/library/{session}/replay")
    async def replay(session: str, request: Request) -> Response:
        """In which it is shown again."""
        return await _planned(library, past.plan_replay, session, request)


async def _planned(library: Library, plan: Plan, session: str, request: Request) -> Response:
    await known(library, session, request)
    try:
        with offer_faults():
            body = await body_of(request, BODY_MOST)
        asked = msgspec.json.decode(body or b"{}", type=MomentAsk)
    except msgspec.MsgspecError as error:
        raise ApiFault(400, "bad_request", str(error)) from None
    epoch, chunk = asked.epoch, asked.chunk
    try:
        if asked.film:
            epoch, chunk = await library.moment(session, asked.film, asked.seconds)
        return json_answer(PlannedRoom(await plan(session, chunk, epoch)), 201)
    except (NoMoment, NoFilm) as error:
        raise ApiFault(422, "no_moment", str(error)) from None
    except SCRIPT_FAULTS as error:
        raise ApiFault(503, "journal", str(error), BUSY_RETRY_S) from None
