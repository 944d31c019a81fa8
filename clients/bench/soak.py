"""Does a server stay as it is while people come and go? Memory, threads, descriptors and tasks of it. Linux only.

    drivers, one a session, all the time
    visitors    | warm-up | nobody: first count |  come and go; looks every 2 s  | nobody: last count |

The warm-up ends when what a server keeps of each world is as long as it gets (4096 chunks) and its spare worker is
there (half a minute after a start).
"""

import asyncio
import math
import random
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import msgspec

from ..python.measure import Observation, press_at_random
from ..python.room import RoomClient, join
from .memory import ProcessMemory, children, course, resident
from .metrics import figures
from .visits import Visits, WayIn

EVERY_S = 2.0
WARM_UP_S = 45.0
WARM_UP_FRAMES = 4200
EMPTY_S = 6.0
TASKS = "worldroom_edge_tasks"


class Counted(msgspec.Struct, frozen=True):
    """A count that should not grow: at the first and the last look with nobody but the drivers there, and the most."""

    first: int
    last: int
    most: int


class SoakReport(msgspec.Struct, frozen=True):
    """`came`: visitors of each way in; `failed` of them saw no picture. `server`: edge and workers together."""

    sessions: int
    seconds: float
    came: dict[WayIn, int]
    failed: int
    frames: int
    server: ProcessMemory
    processes: tuple[ProcessMemory, ...]
    threads: Counted
    descriptors: Counted
    tasks: Counted


class Looks:
    """What was seen of the server's processes."""

    def __init__(self, http: httpx.AsyncClient, pid: int) -> None:
        self._http, self._pid = http, pid
        self.memory: list[dict[str, int]] = []
        self.counts: list[tuple[int, int, int]] = []
        """Threads and descriptors of the edge and what it started, and tasks on the edge's loop."""

    async def count(self) -> None:
        processes = [Path(f"/proc/{one}") for one in (self._pid, *children(self._pid))]
        threads = sum(1 for process in processes for _ in (process / "task").iterdir())
        descriptors = sum(1 for process in processes for _ in (process / "fd").iterdir())
        self.counts.append((threads, descriptors, round((await figures(self._http))[TASKS])))

    async def keep_looking(self) -> None:
        while True:
            self.memory.append(resident(self._pid))
            await self.count()
            await asyncio.sleep(EVERY_S)


async def soak(
    base: str, pid: int, sessions: int, seconds: float, seed: int, livekit: bool = False, warm_up: int = WARM_UP_FRAMES
) -> SoakReport:
    """`pid`: the edge's. `livekit`: the server has rooms there, and people come from there as well. `warm_up`: frames
    of each world before anything counts. Raises what `join` raises."""
    dice = random.Random(seed)
    rooms = tuple(f"soak-{number}" for number in range(sessions))
    visits = Visits(base, rooms, livekit, dice)
    async with AsyncExitStack() as stack, httpx.AsyncClient(base_url=base, trust_env=False) as http:
        drivers: list[RoomClient] = []
        driving: list[asyncio.Task[None]] = []
        for room in rooms:
            joining = join(f"{base}/r/{room}", loopback=True, decode=False, seed=dice.getrandbits(30))
            driver = await stack.enter_async_context(joining)
            drivers.append(driver)
            driving.append(asyncio.create_task(press_at_random(driver, Observation(), math.inf, dice)))
        looks = Looks(http, pid)
        await visits.keep_coming(WARM_UP_S)
        while min(driver.latency.frames for driver in drivers) < warm_up:
            await visits.keep_coming(EMPTY_S)
        await asyncio.sleep(EMPTY_S)
        await looks.count()
        looking = asyncio.create_task(looks.keep_looking())
        await visits.keep_coming(seconds)
        looking.cancel()
        await asyncio.sleep(EMPTY_S)
        await looks.count()
        frames = sum(driver.latency.frames for driver in drivers)
        for task in (*driving, looking):
            task.cancel()
        await asyncio.gather(*driving, looking, return_exceptions=True)
    threads, descriptors, tasks = (Counted(seen[0], seen[-1], max(seen)) for seen in zip(*looks.counts, strict=True))
    names = [name for name in looks.memory[0] if name != "redis"]
    return SoakReport(
        sessions,
        seconds,
        visits.came,
        visits.failed,
        frames,
        course("edge + workers", [sum(look.get(name, 0) for name in names) for look in looks.memory]),
        tuple(course(name, [look.get(name, 0) for look in looks.memory]) for name in names),
        threads,
        descriptors,
        tasks,
    )
