"""The edge's doors: the freest worker is asked first, who must wait keeps waiting where it began to, and a session is
taken over as it was let in."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from worldroom.clock import SystemClock
from worldroom.engine import api
from worldroom.engine.spec import EngineSpec
from worldroom.engine.worker.client import WorkerClient
from worldroom.engine.worker.pool import WorkerPool
from worldroom.engine.worker.process import WorkerProcess
from worldroom.engine.worker.spec import WorkerSpec
from worldroom.tests.fake_door import CARD

FULL = api.Shortage(needed=1, used=1, limit=1, unit=api.Unit.PLACES)


@dataclass
class FakeWorker:
    """A worker with room or without; writes down who asked and under which name in line."""

    playing: int = 0
    waiting: int = 0
    room: bool = False
    ready: bool = True
    ended: Callable[[], None] = lambda: None
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        self.asked.append((command.session, command.line))
        await asyncio.sleep(0)
        if self.room:
            return api.Opened(command.session, CARD)
        place = self.waiting + 1 if command.line else 0
        return api.Refused(command.session, api.RefusalReason.NO_SLOT, "all taken", place, 0.2, FULL)

    def capacity(self) -> tuple[api.Capacity, ...]:
        used = 0.1 * self.playing
        entry = api.Capacity(
            "toy", "cpu", self.playing, 4, used, 0.9, 100, 0, 0, 0, 0, 0, 0, 0, 0, waiting=self.waiting
        )
        return (entry,)

    def sessions(self) -> tuple[api.SessionInfo, ...]:
        return ()


def door(*workers: FakeWorker) -> WorkerPool:
    return WorkerPool(tuple(cast(WorkerClient, worker) for worker in workers))


async def ask(workers: WorkerPool, session: str, line: str = "") -> api.Opened | api.Refused:
    return await workers.open(api.Open(session, "toy", 1, line=line), lambda event: None)


async def test_nobody_waits_at_one_worker_while_another_has_room() -> None:
    full, free = FakeWorker(playing=1), FakeWorker(playing=2, room=True)
    assert isinstance(await ask(door(full, free), "a", "lobby"), api.Opened)
    assert (full.asked, free.asked) == ([("a", "")], [("a", "")])


async def test_the_shortest_line_is_joined_and_kept_from_one_attempt_to_the_next() -> None:
    long, short = FakeWorker(playing=1, waiting=3), FakeWorker(playing=2, waiting=1)
    workers = door(long, short)
    refused = await ask(workers, "a", "lobby")
    assert isinstance(refused, api.Refused)
    assert refused.queue_place == 2
    short.waiting = 9
    await ask(workers, "b", "lobby")
    assert [line for _, line in short.asked] == ["", "lobby", "", "lobby"]
    assert [line for _, line in long.asked] == ["", ""]
    long.room = True
    assert isinstance(await ask(workers, "c", "lobby"), api.Opened)
    long.room = False
    await ask(workers, "d", "lobby")
    assert long.asked[-1] == ("d", "lobby"), "who came in and comes again begins anew"


async def test_without_a_name_nobody_waits_and_one_worker_is_asked_once() -> None:
    first, second, only = FakeWorker(), FakeWorker(), FakeWorker()
    assert isinstance(await ask(door(first, second), "a"), api.Refused)
    assert (first.asked, second.asked) == ([("a", "")], [("a", "")])
    assert isinstance(await ask(door(only), "a", "lobby"), api.Refused)
    assert only.asked == [("a", "lobby")]


async def test_a_session_let_in_with_fewer_steps_is_taken_over_with_as_many() -> None:
    command = (sys.executable, "-m", "worldroom.tests.fake_worker")
    process = partial(WorkerProcess, command=command)
    engine = WorkerClient(WorkerSpec(("toy",), None, EngineSpec()), SystemClock(), process)
    await engine.start()
    heard: list[api.Event] = []
    assert isinstance(await engine.open(api.Open("a", "toy", 1), heard.append), api.Opened)
    os.kill(engine.pid, signal.SIGKILL)
    async with asyncio.timeout(60):
        while not heard:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert heard == [api.Fault("a", "lost", "asked for 1 steps", fatal=True)]
    await engine.close()
