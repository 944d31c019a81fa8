"""Do rooms go on while very many people come at once? The longest time without a frame that their drivers see.

    drivers, one a room, all the time
    nobody comes | storm | all of it has gone | storm | ..

A storm is so many offers at once, from a process of its own: `joins` of people into one room, or `reloads` of one
person's page. Nobody of a storm connects, so it costs the server what an offer costs, and its clients nothing.

    python -m worldroom.clients.bench.storm BASE ROOM OFFERS joins|reloads       says how many were answered with 200
"""

import asyncio
import itertools
import sys
import time
from collections.abc import Awaitable, Iterator
from contextlib import AsyncExitStack
from typing import TypeVar

import httpx
import msgspec
from aiortc import RTCConfiguration, RTCPeerConnection

from ...rtc.wire import AnswerBody, OfferBody
from ..python.latency import LatencySpread, spread
from ..python.room import RoomClient, join
from .child import ending
from .metrics import figures, total

CALM_S = 5.0
GONE_S = 30
VIEWERS = "worldroom_viewers"
T = TypeVar("T")


class Storm(msgspec.Struct, frozen=True):
    """`answered`: offers that came in. `interval_ms`: between frames in all rooms, until a second after its end."""

    kind: str
    offers: int
    answered: int
    seconds: float
    interval_ms: LatencySpread


class StormReport(msgspec.Struct, frozen=True):
    """`calm_ms`: between frames while nobody came."""

    rooms: int
    calm_ms: LatencySpread
    storms: tuple[Storm, ...]


class Watched:
    """When a driver's frames came."""

    def __init__(self, room: RoomClient) -> None:
        self.came: list[float] = []
        self.task = asyncio.create_task(self._watch(room))

    async def _watch(self, room: RoomClient) -> None:
        async for _ in room.frames():
            self.came.append(time.monotonic())

    def intervals_ms(self, since: float) -> Iterator[float]:
        """Of the frames since then, the last one before it among them."""
        first = max(0, sum(at < since for at in self.came) - 1)
        return (1000 * (later - earlier) for earlier, later in itertools.pairwise(self.came[first:]))


async def storms(base: str, rooms: int, offers: int, count: int) -> StormReport:
    """`count` storms of each kind. Raises what `join` raises."""
    async with AsyncExitStack() as stack, httpx.AsyncClient(base_url=base, trust_env=False) as http:
        drivers = [
            Watched(await stack.enter_async_context(join(f"{base}/r/storm-{number}", loopback=True, decode=False)))
            for number in range(rooms)
        ]
        calm, _ = await _intervals(drivers, asyncio.sleep(CALM_S))
        seen: list[Storm] = []
        for kind in ("joins", "reloads"):
            for _ in range(count):
                began = time.monotonic()
                intervals, answered = await _intervals(drivers, _storm(base, offers, kind))
                seen.append(Storm(kind, offers, answered, round(time.monotonic() - began, 2), spread(intervals)))
                await _calm(http, rooms)
        for driver in drivers:
            driver.task.cancel()
        await asyncio.gather(*(driver.task for driver in drivers), return_exceptions=True)
    return StormReport(rooms, spread(calm), tuple(seen))


async def _intervals(drivers: list[Watched], during: Awaitable[T]) -> tuple[list[float], T]:
    since = time.monotonic()
    result = await during
    await asyncio.sleep(1)
    return [interval for driver in drivers for interval in driver.intervals_ms(since)], result


async def _calm(http: httpx.AsyncClient, viewers: int) -> None:
    """Until everybody of a storm has been given up."""
    for _ in range(GONE_S):
        if total(await figures(http), VIEWERS) <= viewers:
            return
        await asyncio.sleep(1)


async def _storm(base: str, offers: int, kind: str) -> int:
    arguments = (sys.executable, "-m", __name__, base, "storm-0", str(offers), kind)
    process = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
    async with ending(process):
        assert process.stdout is not None
        return int(await process.stdout.readline())


async def _offer(base: str, room: str, offers: int, kind: str) -> int:
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    pc.addTransceiver("video", direction="recvonly")
    pc.createDataChannel("control")
    sdp = (await pc.createOffer()).sdp
    await pc.close()
    limits = httpx.Limits(max_connections=offers)
    async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=60, limits=limits) as http:

        async def ask(token: str | None) -> httpx.Response:
            body = msgspec.json.encode(OfferBody(sdp, token))
            headers = {"Content-Type": "application/json"}
            return await http.post(f"/v1/rooms/{room}/offer", content=body, headers=headers)

        token = None
        if kind == "reloads":
            token = msgspec.json.decode((await ask(None)).content, type=AnswerBody).token
        replies = await asyncio.gather(*(ask(token) for _ in range(offers)))
    return sum(reply.status_code == 200 for reply in replies)


if __name__ == "__main__":
    print(asyncio.run(_offer(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])), flush=True)
