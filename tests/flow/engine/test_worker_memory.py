"""What a room took of its worker's memory comes back when it has gone."""

import asyncio

import psutil
import pytest
from worldroom.clock import SystemClock
from worldroom.engine.spec import EngineSpec
from worldroom.engine.worker.client import WorkerClient
from worldroom.engine.worker.spec import WorkerSpec
from worldroom.models.family import packed
from worldroom.models.toy.card import ToySpec
from worldroom.sessions.journal.journal import Journal
from worldroom.sessions.rooms.opener import RoomsSpec
from worldroom.sessions.rooms.participant import Participant
from worldroom.sessions.rooms.rooms import Rooms
from worldroom.tests.fake_door import Screen
from worldroom.tests.fake_engine import until

MIB = 1 << 20


async def settled(pid: int) -> float:
    """MiB that stay resident when nothing happens."""
    seen = []
    for _ in range(10):
        await asyncio.sleep(0.3)
        seen.append(psutil.Process(pid).memory_info().rss / MIB)
    return min(seen)


@pytest.mark.slow
async def test_case_97_a_worker_does_not_grow_with_the_rooms_that_were() -> None:
    options = {"toy": packed(ToySpec(fps=60, per_chunk=1))}
    door = WorkerClient(WorkerSpec(("toy",), None, EngineSpec(share_cap=1.0, slots=4), options=options), SystemClock())
    await door.start()
    clock = SystemClock()
    rooms = Rooms(door, Journal(clock), clock, RoomsSpec(card="toy", lease_s=0.01))

    async def some(first: int, count: int) -> None:
        for number in range(first, first + count):
            screen = Screen()
            one = await rooms.join(f"room-{number}", screen, None, None)
            assert isinstance(one, Participant), one
            await until(lambda screen=screen: len(screen.frames) > 2, within=200)
            one.leave()
            await asyncio.sleep(0.05)

    await some(0, 30)
    before = await settled(door.pid)
    await some(30, 300)
    after = await settled(door.pid)
    assert after - before < 15, (before, after)
    await rooms.close()
    await door.close()
