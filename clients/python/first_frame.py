"""Beginning a world from a file: a picture, or the end of a video."""

import asyncio
from pathlib import Path

import msgspec

from ...rtc.wire import FirstFrame
from .signalling import RoomPlace

MEDIA = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
}


async def upload(place: RoomPlace, seat_token: str | None, file: Path) -> FirstFrame:
    """Raises `RoomRefused`, `NoServer`, OSError, or ValueError on a file of another name."""
    media = MEDIA.get(file.suffix.lower())
    if media is None:
        raise ValueError(f"a first frame is one of {', '.join(MEDIA)}, not '{file.name}'")
    body = await asyncio.to_thread(file.read_bytes)
    headers = {"Content-Type": media, "Authorization": f"Bearer {seat_token}"}
    return msgspec.json.decode(await place.post("first_frame", body, headers), type=FirstFrame)
