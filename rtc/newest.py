"""Who is in a room is told whole each time: of what a channel cannot take yet, only the newest is worth sending.

Told of each of two hundred who come at once, a driver's channel held more than it may, and the driver was removed.
"""

from aiortc import RTCDataChannel

from ..sessions.messages import Participants
from .wire import encode

FULL = 16 * 1024
"""Bytes in a channel that have not left it; with more, the next waits until there are no more than that."""


class Newest:
    """Sends through an open channel, and leaves out what is overtaken while the channel is full."""

    def __init__(self, channel: RTCDataChannel) -> None:
        self._channel = channel
        self._message: Participants | None = None
        channel.bufferedAmountLowThreshold = FULL
        channel.on("bufferedamountlow", self._drained)

    def put(self, message: Participants) -> None:
        self._message = message
        if self._channel.bufferedAmount <= FULL:
            self._drained()

    def _drained(self) -> None:
        message, self._message = self._message, None
        if message is not None and self._channel.readyState == "open":
            self._channel.send(encode(message))
