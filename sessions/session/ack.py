"""The second answer to an accepted message: what waits until a chunk shows its effect."""

from collections.abc import Callable
from dataclasses import dataclass

from ..messages import ServerMessage

Reply = Callable[[ServerMessage], None]


@dataclass(frozen=True, slots=True)
class PendingAck:
    """An accepted message whose effect is still to come."""

    id: int
    reply: Reply
