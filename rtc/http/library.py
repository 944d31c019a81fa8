"""What was: sessions with their films and timelines, page by page, and the switch that films a room."""

import re

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse

from ...sessions.journal.history import NoSession
from ...sessions.library import LIBRARY_FAULTS, Library
from ...sessions.rooms.recording import RecordingRefused, RoomRecordings
from .answers import BUSY_RETRY_S, ApiFault, json_answer, named

LIMIT_MOST = 200
FILM = re.compile(r"(\d{1,9})(\.mp4|\.jsonl|\.json|\.jpg|-sheet\.jpg)")
SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
MEDIA = {".mp4": "video/mp4", ".jsonl": "application/x-ndjson", ".json": "application/json"}
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


def add_clips(app: FastAPI, films: RoomRecordings) -> None:
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


def add_library(app: FastAPI, library: Library) -> None:
    @app.get("/v1/library")
    async def page(request: Request) -> Response:
        offset, limit = _whole(request, "offset", 0, 10**9), _whole(request, "limit", 50, LIMIT_MOST)
        try:
            return json_answer(await library.page(offset, limit, request.query_params.get("card")))
        except LIBRARY_FAULTS as error:
            raise ApiFault(503, "journal", str(error), BUSY_RETRY_S) from None

    @app.get("/v1/library/{session}")
    async def detail(session: str) -> Response:
        if SESSION.fullmatch(session) is None:
            raise ApiFault(404, "no_session", "there is no session of that name")
        try:
            return json_answer(await library.detail(session))
        except NoSession as error:
            raise ApiFault(404, "no_session", str(error)) from None
        except LIBRARY_FAULTS as error:
            raise ApiFault(503, "journal", str(error), BUSY_RETRY_S) from None

    @app.get("/v1/library/{session}/entries")
    async def entries(session: str, request: Request) -> Response:
        """One JSON object a line; `after` is the number of the last entry that the reader has."""
        if SESSION.fullmatch(session) is None:
            raise ApiFault(404, "no_session", "there is no session of that name")
        after, most = _whole(request, "after", 0, 10**12), _whole(request, "most", 1000, 10_000)
        types = tuple(filter(None, request.query_params.get("types", "").split(",")))
        try:
            found = await library.entries(session, after, types, most)
        except LIBRARY_FAULTS as error:
            raise ApiFault(503, "journal", str(error), BUSY_RETRY_S) from None
        lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in found)
        return Response(lines, media_type="application/x-ndjson", headers={"Cache-Control": "no-store"})

    @app.get("/v1/library/{session}/{file}")
    async def film(session: str, file: str) -> Response:
        """A film or what lies beside it; parts of it, where the client asks for a range."""
        match = FILM.fullmatch(file)
        path = None
        if match is not None and SESSION.fullmatch(session) is not None:
            path = library.recordings.path(session, match[1], match[2])
        if path is None or match is None:
            raise ApiFault(404, "no_film", "there is no film of that name")
        return FileResponse(path, media_type=MEDIA.get(match[2], "image/jpeg"), filename=f"{session}-{file}")


def _bearer(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.isascii():
        raise ApiFault(401, "no_token", "the token of a seat is needed: Authorization: Bearer <token>")
    return token


def _whole(request: Request, name: str, default: int, most: int) -> int:
    given = request.query_params.get(name, str(default))
    if not given.isdecimal() or not 0 <= int(given) <= most:
        raise ApiFault(400, "bad_query", f"{name} is a whole number from 0 to {most}")
    return int(given)
