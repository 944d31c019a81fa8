"""Where a world's messages and frames go: a session tells its audience (the room), a room each viewer's sink.

The edge implements `Sink`. Nothing here may ever block.
"""

from typing import Protocol

from ..engine.api import Frame
from .messages import ServerMessage

GOING_AWAY = "going_away"
ENDS = frozenset({"taken_over", "room_closed", "left", GOING_AWAY})
"""Problem codes after which the connection is over: the sink delivers the problem and closes."""


class Sink(Protocol):
    """One viewer's connection. Messages sent before its channel is open are kept by the sink, in order."""

    def send(self, message: ServerMessage) -> None: ...

    def frame(self, frame: Frame, hold_us: int) -> None:
        """`hold_us`: from the receipt of the frame's last input to the moment its chunk began."""
        ...


class Audience(Protocol):
    """Who watches a session: its room."""

    def show(self, frame: Frame, hold_us: int) -> None: ...

    def tell(self, message: ServerMessage) -> None: ...

    def closed(self, reason: str) -> None: ...
