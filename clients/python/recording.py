"""Filming a room: the server keeps what it sends, from the next key frame on."""

import msgspec

from ...rtc.wire import RecordingView
from .signalling import RoomPlace


async def record(place: RoomPlace, seat_token: str | None, running: bool) -> RecordingView:
    """Begin or end the film. Raises `RoomRefused` or `NoServer`."""
    headers = {"Authorization": f"Bearer {seat_token}"}
    answer = await place.post("recording", b"", headers, "POST" if running else "DELETE")
    return msgspec.json.decode(answer, type=RecordingView)
