"""RTP packets to whole H.264 frames without a frame of delay: a frame is complete at its marker bit.

Takes the place of aiortc's jitter buffer, which waits for the first packet of the next frame. Knows no sockets.
"""

from collections.abc import Callable

from aiortc.rtp import RtpPacket

SPAN_MAX = 1024
STALLED_SPAN = 48
STALLED_S = 0.2
"""A gap that stands so long will not be filled: what was sent again is lost, too."""
PLI_INTERVAL = 0.3
KEY_STARTS = (b"\x00\x00\x00\x01\x67", b"\x00\x00\x00\x01\x27", b"\x00\x00\x00\x01\x47")

Deliver = Callable[[int, bytes, bool], None]


class FrameAssembly:
    """`deliver(rtp, annex_b, key)` is called for every whole frame, in order. `now` reads a monotonic clock."""

    def __init__(self, deliver: Deliver, now: Callable[[], float]) -> None:
        self._deliver = deliver
        self._now = now
        self._packets: dict[int, RtpPacket] = {}
        self._next: int | None = None
        self._asked_at = float("-inf")
        self._gap_since: float | None = None
        self.skipped = 0

    def add(self, packet: RtpPacket) -> tuple[bool, None]:
        """Take one packet; the flag asks for a key frame. Never hands a frame to aiortc's own decoder thread."""
        if self._next is None:
            if not _starts_key(packet):
                return self._ask(), None
            self._next = packet.sequence_number
        ahead = (packet.sequence_number - self._next) & 0xFFFF
        if ahead >= 0x8000:
            return False, None
        if ahead > SPAN_MAX:
            self._packets.clear()
            self._next = None
            self.skipped += 1
            return self._ask(), None
        self._packets[packet.sequence_number] = packet
        self._drain()
        if not self._stalled():
            return False, None
        return (False if self._jump_to_key() else self._ask()), None

    def _stalled(self) -> bool:
        """Whether what is missing has been for too long, in packets or in seconds."""
        if not self._packets:
            self._gap_since = None
            return False
        if self._gap_since is None:
            self._gap_since = self._now()
        return self._span() > STALLED_SPAN or self._now() - self._gap_since > STALLED_S

    def _drain(self) -> None:
        while (frame := self._whole_frame()) is not None:
            for packet in frame:
                del self._packets[packet.sequence_number]
            self._next = (frame[-1].sequence_number + 1) & 0xFFFF
            data = b"".join(_payload(packet) for packet in frame)
            self._gap_since = None
            self._deliver(frame[0].timestamp, data, _starts_key(frame[0]))

    def _whole_frame(self) -> list[RtpPacket] | None:
        """The packets from the next expected one up to a marker, or None while one is missing."""
        frame: list[RtpPacket] = []
        sequence = self._next
        while sequence is not None and (packet := self._packets.get(sequence)) is not None:
            frame.append(packet)
            if packet.marker:
                return frame
            sequence = (sequence + 1) & 0xFFFF
        return None

    def _jump_to_key(self) -> bool:
        """Give up what is missing if a later key frame has begun to arrive."""
        assert self._next is not None
        origin = self._next
        starts = [s for s, packet in self._packets.items() if s != origin and _starts_key(packet)]
        if not starts:
            return False
        newest = max(starts, key=lambda sequence: (sequence - origin) & 0xFFFF)
        kept = (newest - origin) & 0xFFFF
        self._packets = {s: p for s, p in self._packets.items() if (s - origin) & 0xFFFF >= kept}
        self._next = newest
        self.skipped += 1
        self._drain()
        return True

    def _span(self) -> int:
        assert self._next is not None
        return max((sequence - self._next) & 0xFFFF for sequence in self._packets)

    def _ask(self) -> bool:
        if self._now() - self._asked_at < PLI_INTERVAL:
            return False
        self._asked_at = self._now()
        return True


def _payload(packet: RtpPacket) -> bytes:
    """The depayloaded bytes that aiortc attaches to a packet before it reaches the buffer."""
    data: bytes = packet._data  # type: ignore[attr-defined]
    return data


def _starts_key(packet: RtpPacket) -> bool:
    return _payload(packet).startswith(KEY_STARTS)
