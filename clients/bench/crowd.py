"""Spectators that cost little, in a process of their own: many of them measure the server and no client of theirs.

Each is a whole participant with its connection, channels and pings. Only its RTP is left unread: packets are counted by
their plain headers, so nothing is reported lost and nothing is asked for again.

    python -m worldroom.clients.bench.crowd BASE SESSIONS EACH SEED       says a line when all are in,
                                                                          then the slowest one's frames for each line in
"""

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from ...rtc.wire import Role
from ..python.room import RoomClient, join
from ..python.signalling import NoServer, RoomRefused
from .child import ending

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


class CrowdFailed(RuntimeError):
    """The spectators could not all come in."""


class Crowd:
    """The other process, once all are in."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def slowest(self) -> int:
        """Frames of the spectator that got the fewest since this was asked last."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        return await self.heard()

    async def heard(self) -> int:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise CrowdFailed("not all spectators could come in")
        return int(line)


@asynccontextmanager
async def crowd(base: str, sessions: int, each: int, seed: int) -> AsyncIterator[Crowd]:
    """`each` spectators in each of the rooms `rtc-0`, `rtc-1`, ..; raises `CrowdFailed`."""
    arguments = (base, str(sessions), str(each), str(seed))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __name__,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with ending(process):
        spectators = Crowd(process)
        await spectators.heard()
        yield spectators


async def _watch(base: str, sessions: int, each: int, seed: int) -> None:
    dice, loop = random.Random(seed), asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        people: list[Unread] = []
        for session in range(sessions):
            for _ in range(each):
                await asyncio.sleep(dice.uniform(0.01, 0.06))
                joining = join(
                    f"{base}/r/rtc-{session}",
                    role=Role.SPECTATOR,
                    loopback=True,
                    decode=False,
                    seed=dice.getrandbits(30),
                )
                people.append(Unread(await stack.enter_async_context(joining)))
        print(0, flush=True)
        while await loop.run_in_executor(None, sys.stdin.readline):
            print(min((one.frames for one in people), default=0), flush=True)
            for one in people:
                one.frames = 0


if __name__ == "__main__":
    try:
        asyncio.run(_watch(sys.argv[1], *map(int, sys.argv[2:5])))
    except (NoServer, RoomRefused) as error:
        sys.exit(str(error))
