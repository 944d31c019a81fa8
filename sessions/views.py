"""What the HTTP interface shows of rooms: the answer to a first frame, one room in a list."""

import msgspec

from .messages import WorldState


class FirstFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The 200 answer of POST /v1/rooms/{room}/first_frame: the world begins anew in this epoch, from so many frames."""

    epoch: int
    frames: int
    width: int
    height: int


class RecordingView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to POST and DELETE /v1/rooms/{room}/recording: which film of which session, and whether it goes on."""

    session: str
    recording: str
    running: bool


class RoomView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One room as GET /v1/rooms shows it."""

    room: str
    session: str
    card: str
    state: WorldState
    viewers: int
    driver: bool
    epoch: int
    chunk: int
