"""Uploads on their way: who may send a first frame, how many at once, how long; then the world begins from it.

    token -> driver? card? rate? -> not too many? -> body, bounded -> frames (a thread) -> still driver? -> new epoch

Knows neither HTTP nor sockets: the body is an iterator of bytes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from av.video.frame import VideoFrame

from ...clock import Clock
from ...engine.api import CardInfo, FirstFrames, FirstFramesSize
from ..counters import RoomsCounters
from ..views import FirstFrame
from .driving import driver_of
from .first_frames import BadFirstFrames, UploadedMedia, live, read
from .room import Room
from .seats import Seat

AT_ONCE = 2
BODY_SECONDS = 30.0


class FirstFrameUploads:
    """Of one server; more than `AT_ONCE` are refused with `busy`."""

    def __init__(self, clock: Clock, counters: RoomsCounters) -> None:
        self._clock = clock
        self._counters = counters
        self._under_way = 0

    async def begin(
        self, room: Room | None, token: str, media: UploadedMedia, body: AsyncIterator[bytes]
    ) -> FirstFrame:
        """Begin the room's world from a file; raises `BadFirstFrames` and then nothing has changed."""

        async def file(card: CardInfo, size: FirstFramesSize) -> FirstFrames:
            data = await _bounded(body, media.bytes_max)
            return await asyncio.to_thread(read, data, media, card, size)

        return await self._counted(self._taken(room, token, file))

    async def begin_live(self, room: Room | None, token: str, pictures: AsyncIterator[VideoFrame]) -> FirstFrame:
        """Begin the room's world from the next pictures of a camera; raises as `begin` does."""

        async def shot(card: CardInfo, size: FirstFramesSize) -> FirstFrames:
            return await live(pictures, card, size)

        return await self._counted(self._taken(room, token, shot))

    def check(self, room: Room | None, token: str) -> None:
        """Raises what would be raised at once."""
        _wanted(room, token)

    async def _counted(self, work: Awaitable[FirstFrame]) -> FirstFrame:
        try:
            return await work
        except BadFirstFrames:
            self._counters.uploads_refused += 1
            raise

    async def _taken(
        self,
        room: Room | None,
        token: str,
        take: Callable[[CardInfo, FirstFramesSize], Awaitable[FirstFrames]],
    ) -> FirstFrame:
        room, driver, card, size = _wanted(room, token)
        if self._under_way >= AT_ONCE or not driver.uploads.allows(self._clock.now()):
            raise BadFirstFrames("busy", "too many uploads: try again in a moment")
        self._under_way += 1
        try:
            async with asyncio.timeout(BODY_SECONDS):
                frames = await take(card, size)
        except TimeoutError:
            raise BadFirstFrames("too_slow", f"it did not arrive within {BODY_SECONDS:.0f} s") from None
        finally:
            self._under_way -= 1
        _driver(room, token)
        epoch = room.session.start_anew(None, driver.participant, frames)
        self._counters.uploads += 1
        return FirstFrame(epoch, frames.frames, frames.width, frames.height)


def _wanted(room: Room | None, token: str) -> tuple[Room, Seat, CardInfo, FirstFramesSize]:
    """Who begins what; raises `BadFirstFrames`."""
    room, driver = _driver(room, token)
    card = room.session.card
    if card is None or card.first_frames is None:
        raise BadFirstFrames("no_first_frame", "the worlds of this card begin from words alone")
    return room, driver, card, card.first_frames


def _driver(room: Room | None, token: str) -> tuple[Room, Seat]:
    return driver_of(room, token, BadFirstFrames, "only the driver says where the world begins")


async def _bounded(body: AsyncIterator[bytes], limit: int) -> bytes:
    """The body, read no further than the limit."""
    parts = bytearray()
    async for part in body:
        parts += part
        if len(parts) > limit:
            raise BadFirstFrames("too_large", f"more than {limit} bytes")
    return bytes(parts)
