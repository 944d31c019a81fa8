"""What a client says, from bytes to its participant, over whatever way it came."""

import logging
from collections.abc import Callable
from typing import Protocol

from ..sessions.messages import Ping, Pong, Problem, ServerMessage
from ..sessions.rooms.participant import Participant
from .wire import Channel, WireError, decode_client

log = logging.getLogger(__name__)


class CountsMalformed(Protocol):
    malformed: int


def take_in(
    channel: Channel,
    data: str | bytes,
    participant: Participant,
    send: Callable[[ServerMessage], None],
    counts: CountsMalformed,
) -> None:
    """Hand one message on; never raises. A ping is answered here."""
    try:
        message = decode_client(data, channel)
    except WireError as error:
        counts.malformed += 1
        participant.malformed(f"{error.code}: {error.detail}", error.id)
        return
    if isinstance(message, Ping):
        send(Pong(id=message.id, sent_ms=message.sent_ms))
        return
    try:
        participant.receive(message)
    except Exception:
        # The room's fault, not the client's: it keeps its connection and learns that the message had no effect.
        log.exception("a room failed on a '%s' message", type(message).__name__.lower())
        send(Problem(code="internal", detail="the message had no effect"))
