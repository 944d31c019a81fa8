"""Does a server stay as it is while people come and go? Memory, threads, descriptors and tasks of it. Linux only.

drivers, one a session, all the time           the browser's protocol, and WHEP players (aiortc as it is), come and go
"""

import asyncio
import random
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import httpx
import msgspec
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from ...rtc.wire import Role
from ..python.loopback import gather_on_loopback
from ..python.measure import Observation, press_at_random
from ..python.room import RoomClient, join
from ..python.signalling import NoServer, RoomRefused
from .memory import ProcessMemory, children, course, resident
from .metrics import figures

EVERY_S = 2.0
STAY_S = (0.5, 4.0)
TASKS = "worldroom_edge_tasks"
SETTLE_SHARE = 0.25
"""Of the time, at the beginning, in which rings and heaps fill: it is not counted."""


class Counted(msgspec.Struct, frozen=True):
    """A count that should not grow: at the first and the last look with nobody but the drivers there, and the most."""

    first: int
    last: int
    most: int


class SoakReport(msgspec.Struct, frozen=True):
    """`server`: edge and worker together. `came`: visitors, `players` of them over WHEP; `failed` saw no picture."""

    sessions: int
    seconds: float
    came: int
    players: int
    failed: int
    frames: int
    server: ProcessMemory
    threads: Counted
    descriptors: Counted
    tasks: Counted


class Visits:
    """Who came, and how it went."""

    def __init__(self, base: str, sessions: int, dice: random.Random) -> None:
        self._base, self._sessions, self._dice = base, sessions, dice
        self.came = self.players = self.failed = 0

    async def visit(self) -> None:
        room = f"soak-{self._dice.randrange(self._sessions)}"
        stay, over_whep = self._dice.uniform(*STAY_S), self._dice.random() < 0.3
        self.came, self.players = self.came + 1, self.players + over_whep
        try:
            async with asyncio.timeout(15):
                await (self._player(room, stay) if over_whep else self._spectator(room, stay))
        except (TimeoutError, NoServer, RoomRefused, httpx.HTTPError):
            self.failed += 1

    async def _spectator(self, room: str, stay: float) -> None:
        async with join(f"{self._base}/r/{room}", role=Role.SPECTATOR, loopback=True, decode=False) as viewer:
            async for _ in viewer.frames():
                break
            await asyncio.sleep(stay)

    async def _player(self, room: str, stay: float) -> None:
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


async def soak(base: str, pid: int, sessions: int, seconds: float, seed: int) -> SoakReport:
    """`pid`: the edge's. Raises what `join` raises."""
    dice = random.Random(seed)
    visits = Visits(base, sessions, dice)
    memory: list[int] = []
    counts: list[tuple[int, int, int]] = []
    async with AsyncExitStack() as stack, httpx.AsyncClient(base_url=base, trust_env=False) as http:
        drivers: list[RoomClient] = []
        driving: list[asyncio.Task[None]] = []
        for session in range(sessions):
            joining = join(f"{base}/r/soak-{session}", loopback=True, decode=False, seed=dice.getrandbits(30))
            driver = await stack.enter_async_context(joining)
            drivers.append(driver)
            driving.append(asyncio.create_task(press_at_random(driver, Observation(), seconds * 2 + 60, dice)))
        await asyncio.sleep(3.0)
        await asyncio.gather(*(visits.visit() for _ in range(4)))  # what is made once is made
        await asyncio.sleep(3.0)
        counts.append(await _counted(http, pid))
        began, present = time.monotonic(), set[asyncio.Task[None]]()
        looked = began
        while (now := time.monotonic()) - began < seconds:
            task = asyncio.create_task(visits.visit())
            present.add(task)
            task.add_done_callback(present.discard)
            if now - looked >= EVERY_S:
                looked = now
                if now - began > SETTLE_SHARE * seconds:
                    memory.append(sum(bytes for name, bytes in resident(pid).items() if name != "redis"))
                counts.append(await _counted(http, pid))
            await asyncio.sleep(dice.uniform(0.3, 1.2))
        if present:
            await asyncio.wait(present)
        await asyncio.sleep(6.0)
        counts.append(await _counted(http, pid))
        frames = sum(driver.latency.frames for driver in drivers)
        for task in driving:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*driving, return_exceptions=True)
    threads, descriptors, tasks = (Counted(looks[0], looks[-1], max(looks)) for looks in zip(*counts, strict=True))
    server = course("edge + worker", memory)
    return SoakReport(
        sessions,
        seconds,
        visits.came,
        visits.players,
        visits.failed,
        frames,
        server,
        threads,
        descriptors,
        tasks,
    )


async def _counted(http: httpx.AsyncClient, pid: int) -> tuple[int, int, int]:
    """Threads and descriptors of the edge and what it started, and tasks on the edge's loop."""
    threads, descriptors = _of_processes(pid)
    return threads, descriptors, round((await figures(http))[TASKS])


def _of_processes(pid: int) -> tuple[int, int]:
    """Threads and descriptors of a process and of what it started."""
    processes = [Path(f"/proc/{one}") for one in (pid, *children(pid))]
    threads = sum(1 for process in processes for _ in (process / "task").iterdir())
    return threads, sum(1 for process in processes for _ in (process / "fd").iterdir())
