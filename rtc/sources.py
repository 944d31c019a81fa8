"""Cameras and games that a room's world begins from: connections that only receive, by WHIP.

    offer -> answer -> first pictures -> the world begins anew from them; after that its packets are thrown away

The driver's seat says whose source it is. Knows no HTTP.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass

from aiortc.exceptions import InvalidStateError
from aiortc.mediastreams import MediaStreamError
from aiortc.rtp import RtpPacket
from av.video.frame import VideoFrame

from ..sessions.rooms.first_frames import BadFirstFrames
from ..sessions.rooms.rooms import Rooms
from .edge import Edge, Newcomer, Player, TooManyViewers
from .media.offered import OfferedConnection

log = logging.getLogger(__name__)

SOURCES_MAX = 8
LIFE_S = 600.0
"""A source that nobody ends is ended."""


class SourceConnection(OfferedConnection):
    """Receives one video stream."""

    async def pictures(self) -> AsyncIterator[VideoFrame]:
        while True:
            try:
                picture = await self._video.receiver.track.recv()
            except (MediaStreamError, InvalidStateError):
                return
            if isinstance(picture, VideoFrame):
                yield picture

    def stop_decoding(self) -> None:
        """What comes from now on is thrown away."""

        async def ignore(packet: RtpPacket, arrival_time_ms: int) -> None:
            pass

        self._video.receiver._handle_rtp_packet = ignore  # type: ignore[method-assign]


@dataclass(slots=True)
class _Source:
    connection: SourceConnection
    life: asyncio.Task[None]


class Sources:
    """Of one server."""

    def __init__(self, rooms: Rooms, edge: Edge) -> None:
        self._rooms, self._edge = rooms, edge
        self._sources: dict[tuple[str, str], _Source] = {}

    async def take(self, room: str, token: str, sdp: str, newcomer: Newcomer) -> Player:
        """Answer a source; raises `BadFirstFrames`, `BadOffer`, `PortsExhausted` or `TooManyViewers`."""
        self._rooms.check_first_frame(room, token)
        if len(self._sources) >= SOURCES_MAX:
            raise TooManyViewers("too_many_sources", f"{SOURCES_MAX} sources are connected, no more may be")
        connection = SourceConnection("recvonly", self._edge.policy, newcomer.local, self._edge.server_ice())
        try:
            await connection.take_offer(sdp)
            answer = await connection.answer()
        except BaseException:
            await connection.end()
            raise
        id = secrets.token_urlsafe(16)
        life = asyncio.create_task(self._live(room, id, token, connection), name=f"source {room}")
        self._sources[room, id] = _Source(connection, life)
        return Player(id, answer, connection.etag)

    def find(self, room: str, id: str) -> SourceConnection | None:
        source = self._sources.get((room, id))
        return None if source is None else source.connection

    async def end(self, room: str, id: str) -> bool:
        """Whether there was one."""
        source = self._sources.pop((room, id), None)
        if source is None:
            return False
        source.life.cancel()
        await source.connection.end()
        return True

    async def close(self) -> None:
        for room, id in list(self._sources):
            await self.end(room, id)

    async def _live(self, room: str, id: str, token: str, connection: SourceConnection) -> None:
        over = asyncio.Event()

        @connection.on("connectionstatechange")
        def changed() -> None:
            if connection.connectionState in ("failed", "closed"):
                over.set()

        try:
            await self._rooms.live_first_frame(room, token, connection.pictures())
            log.info("room %s begins anew from a source", room)
            connection.stop_decoding()
            async with asyncio.timeout(LIFE_S):
                await over.wait()
        except BadFirstFrames as error:
            log.info("room %s takes no first frame from a source: %s", room, error.code)
        except TimeoutError:
            log.info("room %s: a source was left connected for %.0f s and is ended", room, LIFE_S)
        self._sources.pop((room, id), None)
        await connection.end()
