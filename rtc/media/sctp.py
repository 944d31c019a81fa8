"""Bounds on what a peer may make the data channels hold: a message's size, and how long it may take to arrive.

aiortc keeps the parts of a message until the last one comes, however many there are. Built on its internals;
`tests/unit/rtc/media/test_rtc_aiortc_hooks.py` asserts that they exist.
"""

from collections.abc import Callable

from aiortc import RTCSctpTransport
from aiortc.rtcsctptransport import DataChunk, InboundStream, RTCSctpCapabilities

from ...clock import Clock

MESSAGE_BYTES_MAX = 64 * 1024
MESSAGE_SECONDS_MAX = 5.0
HELD_BYTES_MAX = 4 * MESSAGE_BYTES_MAX
"""Of all channels of one connection together: parts may come in any order."""


class PartialMessages:
    """What one connection holds of messages that are not whole yet. `too_much` is called once."""

    def __init__(self, clock: Clock, too_much: Callable[[], None]) -> None:
        self._clock = clock
        self._too_much = too_much
        self._streams: dict[int, _Stream] = {}
        self._since: float | None = None
        self._over = False

    def bound(self, sctp: RTCSctpTransport) -> None:
        """Make the transport's streams report to this, and the answer say what is taken."""
        sctp._get_inbound_stream = self._stream  # type: ignore[method-assign]
        sctp._inbound_streams = self._streams  # type: ignore[assignment]
        sctp.getCapabilities = lambda: RTCSctpCapabilities(MESSAGE_BYTES_MAX)  # type: ignore[method-assign]

    def watch(self, now: float) -> None:
        """Now and then: whether a message has been on its way for too long."""
        if not any(stream.reassembly for stream in self._streams.values()):
            self._since = None
        elif self._since is None:
            self._since = now
        elif now - self._since > MESSAGE_SECONDS_MAX:
            self._give_up()

    def takes(self, stream: "_Stream", chunk: DataChunk) -> bool:
        """Whether there is room for another part; afterwards nothing more is taken."""
        size = len(chunk.user_data)
        if self._over:
            return False
        if stream.held + size > MESSAGE_BYTES_MAX or self._held + size > HELD_BYTES_MAX:
            self._give_up()
            return False
        return True

    @property
    def _held(self) -> int:
        return sum(stream.held for stream in self._streams.values())

    def _stream(self, stream_id: int) -> "_Stream":
        if stream_id not in self._streams:
            self._streams[stream_id] = _Stream(self)
        return self._streams[stream_id]

    def _give_up(self) -> None:
        if not self._over:
            self._over = True
            for stream in self._streams.values():
                stream.reassembly.clear()
            self._too_much()


class _Stream(InboundStream):
    """One channel's parts."""

    def __init__(self, messages: PartialMessages) -> None:
        super().__init__()
        self._messages = messages

    @property
    def held(self) -> int:
        return sum(len(chunk.user_data) for chunk in self.reassembly)

    def add_chunk(self, chunk: DataChunk) -> None:
        if self._messages.takes(self, chunk):
            super().add_chunk(chunk)
