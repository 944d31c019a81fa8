"""The HTTP interface as an OpenAPI 3.1 document: `GET /openapi.json`.

One line of `OPERATIONS` for each endpoint under /v1 and the three beside it; schemas come from the structs that are
sent. Tests ask the application for its routes, make requests from the document, and hold each answer against it.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
from fastapi import FastAPI, Response

from ...engine.api import Capacity, CardInfo, SessionInfo
from ...sessions.erasing import Removed
from ...sessions.library.library import LibraryPage, SessionDetail
from ...sessions.library.timeline import FilmTimeline
from ...sessions.views import AdaptersBody, AdaptersView, FirstFrame, RecordingView, RoomView
from .. import wire
from ..livekit.spec import LiveKitPass
from ..media.ice_servers import IceServersBody
from .past_rooms import MomentAsk, PlannedRoom, ReplayRoomAsk
from .sdp_sessions import FRAGMENT, SDP

JSON, REF = "application/json", "#/components/schemas/{name}"
PICTURES = ("image/png", "image/jpeg", "image/webp", "video/mp4", "video/webm")
FILMS = ("video/mp4", "image/jpeg", "application/x-ndjson", JSON)


@dataclass(frozen=True, slots=True)
class Bytes:
    """A body that is no JSON, of one of these media types."""

    media: tuple[str, ...]


class Alive(msgspec.Struct, frozen=True):
    """The answer of GET /healthz."""

    ok: bool


class Ready(msgspec.Struct, frozen=True):
    """The 200 answer of GET /readyz."""

    ready: bool


Content = Bytes | Any
"""`Bytes`, or a type whose values are JSON; None = no body."""


@dataclass(frozen=True, slots=True)
class Operation:
    """`errors`: statuses beside those that every path may have, each with an `apierror` body (503: or a `refusal`).
    `or_else`: another success, and what it holds."""

    method: str
    path: str
    about: str
    status: int
    answer: Content
    asks: Content = None
    query: tuple[str, ...] = ()
    errors: tuple[int, ...] = ()
    or_else: tuple[int, Content] | None = None


ANYWHERE = (400, 401, 403, 404, 421, 429)
ROOM, LIBRARY = "/v1/rooms/{room}", "/v1/library/{session}"
OFFERED = (406, 409, 413, 415, 503)
PATCHED = (412, 413, 415, 422, 428, 503)
SDP_PART = Bytes((FRAGMENT,))

BODY_OPTIONAL = ("/v1/rooms", LIBRARY + "/rooms", LIBRARY + "/replay")

OPERATIONS = (
    Operation("GET", "/healthz", "The process answers", 200, Alive),
    Operation("GET", "/readyz", "Worlds can begin", 200, Ready, errors=(503,)),
    Operation("GET", "/metrics", "Figures for Prometheus", 200, Bytes(("text/plain",))),
    Operation("GET", "/v1/cards", "Worlds that this server has", 200, tuple[CardInfo, ...]),
    Operation("GET", "/v1/capacity", "What it holds, and what is taken", 200, tuple[Capacity, ...]),
    Operation("GET", "/v1/sessions", "Worlds that run", 200, tuple[SessionInfo, ...]),
    Operation("GET", "/v1/trace", "The device's last steps, for Perfetto", 200, Bytes((JSON,)), errors=(503,)),
    Operation("GET", "/v1/rooms", "Rooms that the caller may see", 200, tuple[RoomView, ...]),
    Operation("POST", "/v1/rooms", "A room's name, and a token", 201, wire.RoomPass, wire.RoomAsk, errors=(413,)),
    Operation("GET", ROOM + "/ice", "STUN and TURN servers", 200, IceServersBody),
    Operation(
        "POST", ROOM + "/offer", "Come in", 200, wire.AnswerBody, wire.OfferBody, errors=(409, 413, 415, 422, 503)
    ),
    Operation("POST", ROOM + "/livekit", "A pass to the room in LiveKit", 201, LiveKitPass),
    Operation(
        "POST",
        ROOM + "/first_frame",
        "Begin the world anew from a picture or a film",
        200,
        FirstFrame,
        Bytes(PICTURES),
        errors=(408, 409, 413, 415, 422, 503),
    ),
    Operation(
        "POST",
        ROOM + "/adapters",
        "Swap the adapters",
        200,
        AdaptersView,
        AdaptersBody,
        errors=(409, 413, 415, 422, 503),
    ),
    Operation("POST", ROOM + "/recording", "Film the room", 201, RecordingView, errors=(409, 507)),
    Operation("DELETE", ROOM + "/recording", "End the film", 200, RecordingView, errors=(409,)),
    Operation("GET", ROOM + "/clip", "The last half minute", 200, Bytes(("video/mp4",)), errors=(409,)),
    Operation("POST", ROOM + "/whep", "Watch, by WHEP", 201, Bytes((SDP,)), Bytes((SDP,)), errors=OFFERED),
    Operation("POST", ROOM + "/whip", "Send video, by WHIP", 201, Bytes((SDP,)), Bytes((SDP,)), errors=OFFERED),
    *(
        operation
        for path in (ROOM + "/whep", ROOM + "/whip")
        for operation in (
            Operation("OPTIONS", path, "What may be posted", 200, None),
            Operation("GET", path, "Nothing; reserved", 200, None),
            Operation("GET", path + "/{id}", "Nothing; reserved", 200, None),
            Operation(
                "PATCH",
                path + "/{id}",
                "More candidates, or an ICE restart",
                204,
                None,
                SDP_PART,
                errors=PATCHED,
                or_else=(200, SDP_PART),
            ),
            Operation("DELETE", path + "/{id}", "End", 200, None),
        )
    ),
    Operation(
        "GET",
        "/v1/library",
        "Sessions, the newest first",
        200,
        LibraryPage,
        query=("offset", "limit", "card"),
        errors=(503,),
    ),
    Operation(
        "GET",
        "/v1/library/export",
        "A tar of sessions",
        200,
        Bytes(("application/x-tar",)),
        query=("session", "format"),
        errors=(422, 503),
    ),
    Operation("GET", LIBRARY, "One session", 200, SessionDetail, errors=(503,)),
    Operation("DELETE", LIBRARY, "Remove it", 200, Removed, query=("force",), errors=(409, 503)),
    Operation(
        "GET",
        LIBRARY + "/entries",
        "Its journal",
        200,
        Bytes(("application/x-ndjson",)),
        query=("after", "most", "types"),
        errors=(503,),
    ),
    Operation(
        "GET",
        LIBRARY + "/latents/{digest}",
        "Latents of a chunk that were kept, as .npy",
        200,
        Bytes(("application/octet-stream",)),
        errors=(503,),
    ),
    Operation(
        "POST",
        LIBRARY + "/rooms",
        "A room that goes on from a moment of it",
        201,
        PlannedRoom,
        MomentAsk,
        errors=(413, 422, 503),
    ),
    Operation(
        "POST",
        LIBRARY + "/replay",
        "A room that shows it again, live",
        201,
        PlannedRoom,
        ReplayRoomAsk,
        errors=(413, 422, 503),
    ),
    Operation(
        "GET",
        LIBRARY + "/{file}",
        "A film, what lies beside it, or its timeline (a `filmtimeline`)",
        200,
        Bytes(FILMS),
        errors=(416, 503),
    ),
)

NAMES: dict[str, dict[str, Any]] = {
    "room": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"},
    "session": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
    "offset": {"type": "integer", "minimum": 0, "maximum": 10**9},
    "limit": {"type": "integer", "minimum": 0, "maximum": 200},
    "after": {"type": "integer", "minimum": 0, "maximum": 10**12},
    "most": {"type": "integer", "minimum": 0, "maximum": 10_000},
    "force": {"type": "integer", "minimum": 0, "maximum": 1},
    "format": {"type": "string", "enum": ["webdataset", "parquet", "pairs", "lerobot"]},
}
"""Parameters that are more than any text."""
FULL: dict[str, Any] = {
    "description": "not now; Retry-After says when",
    "content": {JSON: {"schema": {"anyOf": [{"$ref": REF.format(name=name)} for name in ("ApiError", "RefusalBody")]}}},
}


@cache
def openapi_json() -> bytes:
    """The document."""
    structs = {_struct(content): None for each in OPERATIONS for content in (each.answer, each.asks)}
    known = [kind for kind in structs if kind is not None]
    _, schemas = msgspec.json.schema_components(
        [*known, FilmTimeline, wire.ApiError, wire.RefusalBody], ref_template=REF
    )
    paths: dict[str, dict[str, Any]] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method.lower()] = _described(each)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Worldroom", "version": "1", "description": "PROTOCOL.md says the rest."},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def add_openapi(app: FastAPI) -> None:
    @app.get("/openapi.json")
    async def document() -> Response:
        return Response(openapi_json(), media_type=JSON)


def _described(each: Operation) -> dict[str, Any]:
    answers = {str(each.status): _content("done", each.answer)}
    if each.or_else is not None:
        status, content = each.or_else
        answers[str(status)] = _content("done", content)
    for status in sorted({*ANYWHERE, *each.errors}):
        answers[str(status)] = FULL if status == 503 else _content("refused", wire.ApiError)
    inside = [(name, "path") for name in re.findall(r"{(\w+)}", each.path)] + [(name, "query") for name in each.query]
    described: dict[str, Any] = {"summary": each.about, "parameters": [_parameter(*one) for one in inside]}
    if each.asks is not None:
        described["requestBody"] = _content("", each.asks) | {"required": each.path not in BODY_OPTIONAL}
        del described["requestBody"]["description"]
    return described | {"responses": answers}


def _parameter(name: str, where: str) -> dict[str, Any]:
    schema: dict[str, Any] = NAMES.get(name, {"type": "string"})
    if name == "session" and where == "query":
        schema = {"type": "array", "items": schema, "minItems": 1, "maxItems": 200}
    return {"name": name, "in": where, "required": where == "path" or name == "session", "schema": schema}


def _content(about: str, content: Content) -> dict[str, Any]:
    described: dict[str, Any] = {"description": about}
    match content:
        case None:
            return described
        case Bytes(media):
            return described | {"content": {each: {} for each in media}}
    (schema,), _ = msgspec.json.schema_components([content], ref_template=REF)
    return described | {"content": {JSON: {"schema": schema}}}


def _struct(content: Content) -> Any:
    return None if isinstance(content, Bytes) else content
