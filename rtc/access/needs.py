"""What a path asks of who comes: nothing, any token, the room's token, a recorder's, or an API key. Pure.

What is under /v1 and named nowhere here asks for a key, so nothing is open because somebody forgot it.
"""

import re
from dataclasses import dataclass
from enum import StrEnum, auto

ROOM_PATH = re.compile(r"/v1/rooms/([^/]+)/.+")
FOR_ANY_TOKEN = frozenset({("GET", "/v1/rooms"), ("GET", "/v1/cards"), ("GET", "/v1/capacity")})
LIBRARY = "/v1/library"
EXPORT = f"{LIBRARY}/export"
ALIVE = frozenset({"/healthz", "/readyz"})


class Need(StrEnum):
    NOTHING = auto()
    TOKEN = auto()
    ROOM = auto()
    RECORDER = auto()
    """Of one room, whose past it opens; or of who may list all rooms."""
    KEY = auto()


@dataclass(frozen=True, slots=True)
class Door:
    """`room`: whose token is needed."""

    need: Need
    room: str = ""


def door_of(method: str, path: str) -> Door:
    """HEAD asks for what GET does."""
    if ((method, "GET")[method == "HEAD"], path) in FOR_ANY_TOKEN:
        return Door(Need.TOKEN)
    if (room := ROOM_PATH.fullmatch(path)) is not None:
        return Door(Need.ROOM, room[1])
    if method in ("GET", "HEAD") and (path == LIBRARY or path.startswith(f"{LIBRARY}/")) and path != EXPORT:
        return Door(Need.RECORDER)
    if path.startswith("/v1/") or path in ("/v1", "/metrics"):
        return Door(Need.KEY)
    return Door(Need.NOTHING)
