"""A guest of a LiveKit room who sees a picture, stays a while and goes: `python -m ..livekit_guest URL TOKEN SECONDS`.

In a process of its own, because LiveKit's SDK ends its process where a busy loop answers it late. Exits with 0 when a
picture came.
"""

import asyncio
import sys

from livekit import rtc


async def visit(url: str, token: str, stay_s: float) -> None:
    """Raises `rtc.ConnectError`."""
    guest, tracks = rtc.Room(), asyncio.Queue[rtc.Track]()
    guest.on("track_subscribed", lambda track, *_: tracks.put_nowait(track))
    await guest.connect(url, token, rtc.RoomOptions(single_peer_connection=False))
    try:
        pictures = rtc.VideoStream(await tracks.get())
        await anext(pictures)
        await asyncio.sleep(stay_s)
        await pictures.aclose()
    finally:
        await guest.disconnect()


if __name__ == "__main__":
    asyncio.run(visit(sys.argv[1], sys.argv[2], float(sys.argv[3])))
