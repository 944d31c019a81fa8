"""What the edge needs of the sessions layer: a way into a room and a seat there. Tests seat viewers in a room of their
own making."""

from collections.abc import AsyncIterator
from typing import Protocol

from ..engine.api import Refused
from ..sessions.audience import Sink
from ..sessions.counters import RoomsCounters
from ..sessions.messages import ClientMessage, FirstFrame, Role, RoomView
from ..sessions.rooms.first_frames import UploadedMedia


class ParticipantPort(Protocol):
    """One participant's place in a room, held through its token across connections."""

    @property
    def participant(self) -> str: ...

    @property
    def token(self) -> str: ...

    @property
    def role(self) -> Role: ...

    def receive(self, message: ClientMessage) -> None: ...

    def malformed(self, detail: str, id: int | None) -> None: ...

    def request_key(self, joined: bool = False) -> None: ...

    def leave(self) -> None:
        """The connection is gone; the world stays for the lease."""
        ...


class RoomsPort(Protocol):
    """All rooms of a server."""

    async def join(
        self, room: str, sink: Sink, token: str | None, want_role: Role | None, name: str | None = None
    ) -> ParticipantPort | Refused: ...

    async def first_frame(self, room: str, token: str, media: UploadedMedia, body: AsyncIterator[bytes]) -> FirstFrame:
        """Begin the room's world from a file; raises `opening.BadOpening`."""
        ...

    def views(self) -> tuple[RoomView, ...]: ...

    def counters(self) -> RoomsCounters: ...
