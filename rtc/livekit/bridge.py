"""All rooms that are rooms of a LiveKit server, too: those that are open here, and those somebody has a pass for."""

import asyncio
from dataclasses import dataclass, replace

from ...clock import Clock
from ...sessions.rooms.rights import Rights
from ...sessions.rooms.rooms import Rooms
from ..edge import Edge
from .room import LiveKitRoom
from .spec import LiveKitCounts, LiveKitPass, LiveKitSpec, guest_pass

LOOK_S = 0.5
UNWANTED_S = 60.0
"""A room that is not open here and whose passes nobody used for so long is left."""


@dataclass(slots=True)
class _Joined:
    room: LiveKitRoom
    task: asyncio.Task[None]


class LiveKit:
    """See the module docstring."""

    def __init__(self, spec: LiveKitSpec, rooms: Rooms, edge: Edge, clock: Clock) -> None:
        self._spec, self._rooms, self._edge, self._clock = spec, rooms, edge, clock
        self._joined: dict[str, _Joined] = {}
        self._counts = LiveKitCounts()
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._looking = asyncio.create_task(self._look_around(), name="livekit")

    async def close(self) -> None:
        tasks = [joined.task for joined in self._joined.values()]
        if self._looking is not None:
            tasks.append(self._looking)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._joined.clear()

    def invite(self, room: str, rights: Rights) -> LiveKitPass:
        """A pass for somebody, and this server waits for them there."""
        self._join(room).wanted_at = self._clock.now()
        return guest_pass(self._spec, room, rights, self._clock.wall())

    def counts(self) -> LiveKitCounts:
        people = sum(joined.room.people for joined in self._joined.values())
        return replace(self._counts, rooms=len(self._joined), people=people)

    def _join(self, name: str) -> LiveKitRoom:
        joined = self._joined.get(name)
        if joined is None:
            room = LiveKitRoom(name, self._spec, self._rooms, self._edge.lend_stream(name), self._clock, self._counts)
            joined = self._joined[name] = _Joined(room, asyncio.create_task(room.run(), name=f"livekit {name}"))
        return joined.room

    async def _look_around(self) -> None:
        while True:
            open_here = {view.room for view in self._rooms.views()}
            for name in open_here:
                self._join(name)
            for name, joined in list(self._joined.items()):
                waited = self._clock.now() - joined.room.wanted_at
                if name not in open_here and not joined.room.people and waited > UNWANTED_S:
                    await self._leave(name, joined)
            await asyncio.sleep(LOOK_S)

    async def _leave(self, name: str, joined: _Joined) -> None:
        del self._joined[name]
        joined.task.cancel()
        await asyncio.gather(joined.task, return_exceptions=True)
        self._edge.return_stream(name)
