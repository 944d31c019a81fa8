"""The stack of adapters of a room's world, from outside of its data channel."""

from fastapi import FastAPI, Request, Response

from ...sessions.rooms.adapting import AdaptFailed, adapt
from ...sessions.rooms.rooms import Rooms
from ...sessions.views import AdaptersBody
from ..wire import decode_body
from .answers import BUSY_RETRY_S, JSON, ApiFault, bearer_of, body_of, json_answer, media_type, named, offer_faults

STATUS = {
    "no_room": 404,
    "no_place": 401,
    "not_driving": 403,
    "replay": 409,
    "no_adapters": 409,
    "no_compute": 409,
    "busy": 503,
}


def add_adapters(app: FastAPI, rooms: Rooms) -> None:
    @app.post("/v1/rooms/{room}/adapters")
    async def adapters(room: str, request: Request) -> Response:
        """Swap the stack; answered with the first chunk that has it. The bearer is the token of the driver's seat."""
        named(room)
        token = bearer_of(request)
        if media_type(request) != JSON:
            raise ApiFault(415, "not_json", "a stack of adapters is application/json")
        with offer_faults():
            asked = decode_body(await body_of(request), AdaptersBody)
        try:
            return json_answer(await adapt(rooms.open_room(room), token, asked.stack))
        except AdaptFailed as error:
            status = STATUS.get(error.code, 422)
            raise ApiFault(status, error.code, str(error), BUSY_RETRY_S if status == 503 else None) from None
