"""Rooms made of what was: in a new one the world of a session in the library goes on, or is shown again, live."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import msgspec
from fastapi import FastAPI, Request, Response

from ...sessions.journal.entry import JournalVersion
from ...sessions.journal.history import JournalCut
from ...sessions.journal.script import SCRIPT_FAULTS, ParentLost, ReplayError
from ...sessions.library.library import Library, NoFilm
from ...sessions.rooms.past import NoMoment, PastRooms
from ...sessions.terms import PromptText
from .answers import BUSY_RETRY_S, ApiFault, body_of, json_answer, offer_faults
from .library import known

BODY_MOST = 16_384

Ask = TypeVar("Ask", bound="MomentAsk")
Plan = Callable[[str, int | None, int | None], Awaitable[str]]
"""A room's name for a session, a chunk and an epoch; raises `SCRIPT_FAULTS`."""


class MomentAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From `chunk` on (None = the end; of a replay, the beginning), of `epoch` (None = the last one that has it); or
    from what `film` shows after `seconds`."""

    chunk: int | None = None
    epoch: int | None = None
    film: str = ""
    seconds: float = 0.0


class ReplayRoomAsk(MomentAsk, frozen=True, forbid_unknown_fields=True):
    """`prompt`: words in place of all it had: a counterfactual, compared with nothing; None = as it was."""

    prompt: PromptText | None = None


class PlannedRoom(msgspec.Struct, frozen=True):
    """A name that opens as was asked, for the first who joins."""

    room: str


def add_past_rooms(app: FastAPI, library: Library, past: PastRooms) -> None:
    @app.post("/v1/library/{session}/rooms")
    async def onward(session: str, request: Request) -> Response:
        """In which its world goes on."""
        asked = await _asked(library, session, request, MomentAsk)
        return await _planned(library, past.plan, session, asked)

    @app.post("/v1/library/{session}/replay")
    async def replay(session: str, request: Request) -> Response:
        """In which it is shown again."""
        asked = await _asked(library, session, request, ReplayRoomAsk)
        return await _planned(library, partial(past.plan_replay, words=asked.prompt or ""), session, asked)


async def _asked(library: Library, session: str, request: Request, kind: type[Ask]) -> Ask:
    await known(library, session, request)
    try:
        with offer_faults():
            body = await body_of(request, BODY_MOST)
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.MsgspecError as error:
        raise ApiFault(400, "bad_request", str(error)) from None


async def _planned(library: Library, plan: Plan, session: str, asked: MomentAsk) -> Response:
    epoch, chunk = asked.epoch, asked.chunk
    try:
        if asked.film:
            epoch, chunk = await library.moment(session, asked.film, asked.seconds)
        return json_answer(PlannedRoom(await plan(session, chunk, epoch)), 201)
    except (NoMoment, NoFilm) as error:
        raise ApiFault(422, "no_moment", str(error)) from None
    except ParentLost as error:
        raise ApiFault(422, "parent_lost", str(error)) from None
    except (ReplayError, JournalCut, JournalVersion) as error:
        raise ApiFault(422, "not_replayable", str(error)) from None
    except SCRIPT_FAULTS as error:
        raise ApiFault(503, "journal", str(error), BUSY_RETRY_S) from None
