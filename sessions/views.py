"""What the HTTP interface shows of rooms: refusals, answers to a first frame and to adapters, one room in a list."""

import msgspec

from .adapter_messages import AdapterChoice, AdapterStack
from .messages import WorldState


class FirstFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The 200 answer of POST /v1/rooms/{room}/first_frame: the world begins anew in this epoch, from so many frames."""

    epoch: int
    frames: int
    width: int
    height: int


class AdaptersBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of POST /v1/rooms/{room}/adapters."""

    stack: AdapterStack


class AdaptersView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The 200 answer of POST /v1/rooms/{room}/adapters: from this chunk on the world is made with this stack."""

    chunk: int
    stack: tuple[AdapterChoice, ...]


class RecordingView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to POST and DELETE /v1/rooms/{room}/recording: which film of which session, and whether it goes on."""

    session: str
    recording: str
    running: bool


class RoomView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One room as GET /v1/rooms shows it. `drivers`: how several people drive, `places_free`: so many more may."""

    room: str
    session: str
    card: str
    state: WorldState
    viewers: int
    driver: bool
    drivers: str
    places_free: int
    epoch: int
    chunk: int
