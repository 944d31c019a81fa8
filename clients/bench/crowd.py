"""Spectators that cost little, so that many of them measure the server and not themselves.

Each is a whole participant with its connection, channels and pings. Only its RTP is left unread: packets are counted by
their plain headers, so nothing is reported lost and nothing is asked for again.
"""

from ..python.room import RoomClient

MARKER = 0x80
"""Of the header's second byte: the last packet of a frame."""


class Unread:
    """Takes the place of a client's RTP receiver and counts the frames that came."""

    def __init__(self, room: RoomClient) -> None:
        self.frames = 0
        assert room.link is not None
        room.link.receiver.transport._handle_rtp_data = self.take  # type: ignore[method-assign]

    async def take(self, data: bytes, arrival_time_ms: int) -> None:
        self.frames += bool(data[1] & MARKER)


def slowest_fps(crowd: list[Unread], before: list[int], seconds: float) -> float:
    """Frames a second of the spectator that got the fewest, 0 where there is none."""
    got = (unread.frames - frames for unread, frames in zip(crowd, before, strict=True))
    return round(min(got, default=0) / seconds, 2)
