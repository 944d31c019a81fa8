"""People who come to watch for a few seconds and go, each with one of the ways in that a server has.

as a browser does   WHEP (aiortc as it is)   LiveKit (its own SDK), where the server has rooms there
"""

import asyncio
import random
import sys
from enum import StrEnum

import httpx
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from ...rtc.wire import Role
from ..python.loopback import gather_on_loopback
from ..python.room import join
from ..python.signalling import NoServer, RoomRefused
from .child import ending

STAY_S = (0.5, 4.0)
PATIENCE_S = 15.0
GUEST = f"{__package__}.livekit_guest"


class WayIn(StrEnum):
    """How somebody comes in."""

    BROWSER = "browser"
    WHEP = "whep"
    LIVEKIT = "livekit"


class Visits:
    """Who came by which way, and for how many no picture came in time."""

    def __init__(self, base: str, rooms: tuple[str, ...], livekit: bool, dice: random.Random) -> None:
        self._base, self._rooms, self._dice = base, rooms, dice
        self._weights = {WayIn.BROWSER: 5, WayIn.WHEP: 3, **({WayIn.LIVEKIT: 2} if livekit else {})}
        self.came = dict.fromkeys(self._weights, 0)
        self.failed = 0

    async def keep_coming(self, seconds: float) -> None:
        """One after another, at random; returns when the last of them has gone."""
        loop, present = asyncio.get_running_loop(), set[asyncio.Task[None]]()
        ends = loop.time() + seconds
        while loop.time() < ends:
            task = asyncio.create_task(self.visit())
            present.add(task)
            task.add_done_callback(present.discard)
            await asyncio.sleep(self._dice.uniform(0.3, 1.2))
        await asyncio.gather(*present)

    async def visit(self) -> None:
        room, stay = self._dice.choice(self._rooms), self._dice.uniform(*STAY_S)
        way = self._dice.choices([*self._weights], [*self._weights.values()])[0]
        self.came[way] += 1
        try:
            async with asyncio.timeout(PATIENCE_S):
                match way:
                    case WayIn.BROWSER:
                        await self._watch(room, stay)
                    case WayIn.WHEP:
                        await self._play(room, stay)
                    case WayIn.LIVEKIT:
                        await self._meet(room, stay)
        except (TimeoutError, NoServer, RoomRefused, httpx.HTTPError):
            self.failed += 1

    async def _watch(self, room: str, stay: float) -> None:
        async with join(f"{self._base}/r/{room}", role=Role.SPECTATOR, loopback=True, decode=False) as viewer:
            async for _ in viewer.frames():
                break
            await asyncio.sleep(stay)

    async def _play(self, room: str, stay: float) -> None:
        pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        try:
            receiver = pc.addTransceiver("video", direction="recvonly").receiver
            gather_on_loopback(pc)
            await pc.setLocalDescription(await pc.createOffer())
            async with httpx.AsyncClient(base_url=self._base, trust_env=False) as http:
                headers = {"Content-Type": "application/sdp"}
                path = f"/v1/rooms/{room}/whep"
                answer = await http.post(path, content=pc.localDescription.sdp, headers=headers)
                answer.raise_for_status()
                await pc.setRemoteDescription(RTCSessionDescription(answer.text, "answer"))
                await receiver.track.recv()  # there is none before an answer
                await asyncio.sleep(stay)
                await http.delete(answer.headers["Location"])
        finally:
            await pc.close()

    async def _meet(self, room: str, stay: float) -> None:
        async with httpx.AsyncClient(base_url=self._base, trust_env=False) as http:
            answer = await http.post(f"/v1/rooms/{room}/livekit")
            answer.raise_for_status()
        passed = answer.json()
        arguments = (sys.executable, "-m", GUEST, passed["url"], passed["token"], str(stay))
        guest = await asyncio.create_subprocess_exec(*arguments, stderr=asyncio.subprocess.DEVNULL)
        async with ending(guest):
            self.failed += await guest.wait() != 0
