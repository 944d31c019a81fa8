"""Somebody in a LiveKit room, as a participant of the room here: a sink of its messages, a source of acts."""

from collections.abc import Callable

from ...engine.api import Frame, Rendered
from ...sessions.audience import ENDS, FrameInput
from ...sessions.messages import Leave, Problem, Role, ServerMessage
from ...sessions.rooms.participant import Participant
from ...sessions.rooms.rights import Rights
from ..inbound import take_in
from ..wire import Channel
from .spec import LiveKitCounts


class LiveKitPerson:
    """`tell` sends to them alone; `show` gets every frame of the world, once for each person."""

    def __init__(
        self,
        rights: Rights,
        tell: Callable[[ServerMessage], None],
        show: Callable[[Frame, FrameInput], None],
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

    def frame(self, frame: Frame, given: FrameInput) -> None:
        if not self._gone:
            self._show(frame, given)

    def rendered(self, rendered: Rendered, given: FrameInput) -> None:
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
        if self._participant is not None and not self._gone:
            take_in(channel, data, self._participant, self.send, self._counts)

    def leave(self, on_purpose: bool) -> None:
        """They are gone: on purpose, their wheel is free at once."""
        if self._participant is not None and not self._gone:
            if on_purpose:
                self._participant.receive(Leave(id=0))
            self._participant.leave()
        self._gone = True
