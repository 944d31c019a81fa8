"""The switch that films a room, and the last half minute of it: for who has a seat there."""

from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import FastAPI, Request, Response

from ...sessions.rooms.recording import RecordingRefused, RoomRecordings
from .answers import ApiFault, bearer_of, json_answer, named

STATUS = {"no_place": 401, "not_driving": 403, "no_room": 404, "not_recorded": 409, "replay": 409, "disk": 507}


def add_recording(app: FastAPI, films: RoomRecordings) -> None:
    @app.post("/v1/rooms/{room}/recording")
    async def start(room: str, request: Request) -> Response:
        """The bearer is the token of the driver's seat."""
        named(room)
        with _refusals():
            return json_answer(films.start(room, bearer_of(request)), 201)

    @app.delete("/v1/rooms/{room}/recording")
    async def stop(room: str, request: Request) -> Response:
        named(room)
        with _refusals():
            return json_answer(films.stop(room, bearer_of(request)))

    @app.get("/v1/rooms/{room}/clip")
    async def clip(room: str, request: Request) -> Response:
        """The last half minute as it was sent; the bearer is the token of any seat of the room."""
        named(room)
        with _refusals():
            film = await films.clip(room, bearer_of(request))
        headers = {"Content-Disposition": f'attachment; filename="{room}.mp4"', "Cache-Control": "no-store"}
        return Response(film, headers=headers, media_type="video/mp4")


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except RecordingRefused as refusal:
        raise ApiFault(STATUS[refusal.code], refusal.code, str(refusal)) from None
