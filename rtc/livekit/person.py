"""Somebody in a LiveKit room, as a participant of the room here: a sink of its messages, a source of acts."""

import logging
from collections.abc import Callable

from ...engine.api import Frame, Rendered
from ...sessions.audience import ENDS
from ...sessions.messages import Leave, Ping, Pong, Problem, Role, ServerMessage
from ...sessions.rooms.participant import Participant
from ...sessions.rooms.rights import Rights
from ..wire import Channel, WireError, decode_client
from .spec import LiveKitCounts

log = logging.getLogger(__name__)


class LiveKitPerson:
    """`tell` sends to them alone; `show` gets every frame of the world, once for each person."""

    def __init__(
        self,
        rights: Rights,
        tell: Callable[[ServerMessage], None],
        show: Callable[[Frame, int], None],
        counts: LiveKitCounts,
    ) -> None:
        self.rights = rights
        self._counts = counts
        self._tell, self._show = tell, show
        self._participant: Participant | None = None
        self._gone = False

    # ---- sink of the room -------------------------------------------------------------------------------------------

    def send(self, message: ServerMessage) -> None:
        if self._gone:
            return
        self._tell(message)
        if isinstance(message, Problem) and message.code in ENDS:
            self._gone = True

    def frame(self, frame: Frame, hold_us: int) -> None:
        self._show(frame, hold_us)

    def rendered(self, rendered: Rendered, hold_us: int) -> None:
        """What is published there is H.264."""

    # ---- what they do -----------------------------------------------------------------------------------------------

    def seated(self, participant: Participant) -> None:
        """They may be gone already, because a seat can take a while."""
        self._participant = participant
        if self._gone:
            participant.leave()

    @property
    def drives(self) -> bool:
        return self._participant is not None and self._participant.role is Role.DRIVER

    @property
    def over(self) -> bool:
        """They left, or the room let them go."""
        return self._gone

    def request_key(self) -> None:
        if self._participant is not None:
            self._participant.request_key()

    def receive(self, channel: Channel, data: bytes) -> None:
        if self._participant is None or self._gone:
            return
        try:
            message = decode_client(data, channel)
        except WireError as error:
            self._counts.malformed += 1
            self._participant.malformed(f"{error.code}: {error.detail}", error.id)
            return
        if isinstance(message, Ping):
            self.send(Pong(id=message.id, sent_ms=message.sent_ms))
            return
        try:
            self._participant.receive(message)
        except Exception:
            log.exception("a room failed on a '%s' message", type(message).__name__.lower())
            self.send(Problem(code="internal", detail="the message had no effect"))

    def leave(self, on_purpose: bool) -> None:
        """They are gone: on purpose, their wheel is free at once."""
        if self._participant is not None and not self._gone:
            if on_purpose:
                self._participant.receive(Leave(id=0))
            self._participant.leave()
        self._gone = True
