"""The switch that films a room, and the last half minute of it: for who has a seat there."""

from fastapi import FastAPI, Request, Response

from ...sessions.rooms.recording import RecordingRefused, RoomRecordings
from .answers import ApiFault, json_answer, named

STATUS = {"no_place": 401, "not_driving": 403, "no_room": 404, "not_recorded": 409, "disk": 507}


def add_recording(app: FastAPI, films: RoomRecordings) -> None:
    @app.post("/v1/rooms/{room}/recording")
    async def start(room: str, request: Request) -> Response:
        """The bearer is the token of the driver's seat."""
        named(room)
        try:
            return json_answer(films.start(room, _bearer(request)), 201)
        except RecordingRefused as refusal:
            raise ApiFault(STATUS[refusal.code], refusal.code, str(refusal)) from None

    @app.delete("/v1/rooms/{room}/recording")
    async def stop(room: str, request: Request) -> Response:
        named(room)
        try:
            return json_answer(films.stop(room, _bearer(request)))
        except RecordingRefused as refusal:
            raise ApiFault(STATUS[refusal.code], refusal.code, str(refusal)) from None

    @app.get("/v1/rooms/{room}/clip")
    async def clip(room: str, request: Request) -> Response:
        """The last half minute as it was sent; the bearer is the token of any seat of the room."""
        named(room)
        try:
            film = await films.clip(room, _bearer(request))
        except RecordingRefused as refusal:
            raise ApiFault(STATUS[refusal.code], refusal.code, str(refusal)) from None
        headers = {"Content-Disposition": f'attachment; filename="{room}.mp4"', "Cache-Control": "no-store"}
        return Response(film, headers=headers, media_type="video/mp4")


def _bearer(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.isascii():
        raise ApiFault(401, "no_token", "the token of a seat is needed: Authorization: Bearer <token>")
    return token
