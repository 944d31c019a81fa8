"""The worker in a process of its own: it serves, is killed, is stopped, and the worlds go on as if nothing had been."""

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial

import psutil
import pytest
from worldroom.clock import SystemClock
from worldroom.engine import api
from worldroom.engine.spec import EngineSpec
from worldroom.engine.worker.client import WorkerClient, WorkerFailed
from worldroom.engine.worker.devices import WorkerDevice, named
from worldroom.engine.worker.pool import WorkerPool
from worldroom.engine.worker.spec import WorkerSpec
from worldroom.models.contract.conditions import Conditions, PromptShare
from worldroom.models.contract.loop import StepKind
from worldroom.models.family import packed
from worldroom.models.toy import golden
from worldroom.models.toy.card import ToySpec
from worldroom.sessions.journal import events
from worldroom.sessions.journal.journal import Journal
from worldroom.sessions.journal.replay import read, replay
from worldroom.sessions.messages import Input, KeyEdge, Problem, ResetWorld, Welcome
from worldroom.sessions.rooms.opener import RoomsSpec
from worldroom.sessions.rooms.participant import Participant
from worldroom.sessions.rooms.rooms import Rooms
from worldroom.tests.fake_door import Screen
from worldroom.tests.fake_engine import until as within

CPU = WorkerDevice()
SPEC = EngineSpec(share_cap=1.0, slots=4)
until = partial(within, within=200)


def remote(card: str = "toy", device: WorkerDevice = CPU) -> WorkerClient:
    options = {"toy": packed(ToySpec(fps=12, per_chunk=4))}
    return WorkerClient(WorkerSpec((card,), None, SPEC, options=options, device=device), SystemClock())


async def test_a_room_lives_through_the_death_and_the_hang_of_its_worker() -> None:
    door = remote()
    await door.start()
    clock = SystemClock()
    journal = Journal(clock)
    rooms = Rooms(door, journal, clock, RoomsSpec(card="toy", prompt="a calm blue sea"))
    screen = Screen()
    driver = await rooms.join("lobby", screen, None, None)
    assert isinstance(driver, Participant), driver
    key = door.cards()[0].controls[0].keys[0]
    await until(lambda: len(screen.frames) > 4)
    driver.receive(Input(seq=1, held=(key,), edges=(KeyEdge(seq=1, key=key, down=True),)))

    for number, blow in enumerate((signal.SIGKILL, signal.SIGSTOP)):
        victim, seen = door.pid, len(screen.frames)
        os.kill(victim, blow)
        await until(lambda number=number: door.deaths == number + 1)
        if number == 1:
            driver.receive(ResetWorld(id=7))  # while there is no worker
        await until(lambda seen=seen: len(screen.frames) > seen + 8)
        assert not psutil.pid_exists(victim)

    assert [m for m in screen.messages if isinstance(m, Problem)] == []
    assert [frame.frame for frame in screen.frames] == list(range(len(screen.frames)))
    pts = [frame.pts for frame in screen.frames]
    assert pts == sorted(set(pts))
    assert sum(frame.key for frame in screen.frames) >= 3, "every encoder starts with a key frame"
    welcome = screen.messages[0]
    assert isinstance(welcome, Welcome)
    journaled = journal.buffered(welcome.session)
    done = [event.chunk for event in journaled if isinstance(event, events.ChunkCommitted)]
    assert done == list(range(len(done))), "no chunk is lost and none is made twice"
    assert {event.epoch for event in journaled if isinstance(event, events.ChunkCommitted)} == {0, 1}
    await rooms.close()

    async def stream() -> AsyncIterator[events.JournalEvent]:
        for event in journaled:
            yield event

    replayed = await replay(door, await read(stream()), "again")
    assert replayed.chunks > 6
    assert replayed.mismatches == ()
    folder, last = door.folder, door.pid
    await door.close()
    assert not psutil.pid_exists(last)
    assert not os.access(folder, os.F_OK)


async def test_a_clip_whose_worker_is_killed_on_the_way_goes_on_from_its_last_step() -> None:
    """Fifty steps of 20 ms: the worker dies when the second first look is seen, after twenty of them."""
    options = {"toy": packed(ToySpec(step_seconds=0.02))}
    door = WorkerClient(WorkerSpec(("toy-clip",), None, SPEC, options=options), SystemClock())
    await door.start()
    heard: list[api.Event] = []
    shares: list[PromptShare] = []

    def hear(event: api.Event) -> None:
        heard.append(event)
        if isinstance(event, api.PromptEncoded):
            shares.append(PromptShare(event.key, 1.0))
        dues = [other.chunk for other in heard if isinstance(other, api.ChunkDue)]
        if isinstance(event, api.ChunkDue | api.PromptEncoded) and shares and dues:
            conditions = Conditions(0, (), (0.0, 0.0), (shares[0],), 1, dues[-1])
            door.post(api.Begin("s", dues[-1], conditions))

    def denoised() -> int:
        return sum(ran.kind == StepKind.DENOISE and ran.sessions == ("s",) for ran in door.steps())

    assert isinstance(await door.open(api.Open("s", "toy-clip", 1), hear), api.Opened)
    door.post(api.EncodePrompt("s", 1, "a red desert"))
    await until(lambda: sum(isinstance(event, api.Frame) for event in heard) == 2)
    assert all(event.preview for event in heard if isinstance(event, api.Frame))
    os.kill(door.pid, signal.SIGKILL)
    await until(lambda: door.deaths == 1)
    before = denoised()
    await until(lambda: any(isinstance(event, api.ChunkDone) for event in heard))
    done = next(event for event in heard if isinstance(event, api.ChunkDone))
    packed_clip = b"".join(value.to_bytes(8, "little") for value in golden.clip(1, 0, 0, "a red desert"))
    assert (done.chunk, done.digest) == (0, hashlib.sha256(packed_clip).hexdigest())
    assert not any(isinstance(event, api.Fault) for event in heard)
    await until(lambda: denoised() > before)
    again = denoised() - before
    assert 0 < again < 40, "twenty steps were made by the worker that died"
    await door.close()


async def test_a_worker_that_cannot_serve_says_why() -> None:
    door = remote("toi")
    with pytest.raises(WorkerFailed, match="no card 'toi': did you mean 'toy'") as failed:
        await door.start()
    assert failed.value.theirs
    await door.close()


ORPHAN = """
import asyncio, os, sys
from worldroom.clock import SystemClock
from worldroom.engine.worker.client import WorkerClient
from worldroom.engine.worker.spec import WorkerSpec
from worldroom.engine.spec import EngineSpec

async def main():
    door = WorkerClient(WorkerSpec(("toy",), None, EngineSpec()), SystemClock())
    await door.start()
    print(door.pid, door.folder, "torch" in sys.modules, flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


async def test_an_edge_has_no_torch_and_its_worker_does_not_outlive_it() -> None:
    edge = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", ORPHAN], capture_output=True, text=True, timeout=240
    )
    pid, folder, torch = edge.stdout.split()
    assert torch == "False"
    await until(lambda: not psutil.pid_exists(int(pid)) or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE)
    next_edge = remote()
    assert not os.access(folder, os.F_OK), "the next edge removes what a killed one left, if its worker could not"
    await next_edge.close()


async def test_what_is_asked_of_a_remote_engine_is_answered_like_a_near_one() -> None:
    door = remote()
    heard: list[api.Event] = []
    refused = await door.open(api.Open("a", "toy", 1), heard.append)
    assert isinstance(refused, api.Refused)
    assert refused.reason is api.RefusalReason.NOT_READY
    await door.start()
    assert door.ready
    assert isinstance(await door.open(api.Open("a", "toy", 1), heard.append), api.Opened)
    again = await door.open(api.Open("a", "toy", 1), heard.append)
    assert isinstance(again, api.Refused)
    assert again.reason is api.RefusalReason.CONFLICT
    unknown = await door.open(api.Open("b", "toi", 1), heard.append)
    assert isinstance(unknown, api.Refused)
    assert unknown.reason is api.RefusalReason.UNKNOWN_CARD
    door.post(api.EncodePrompt("a", 1, "a storm"))
    await until(lambda: any(isinstance(event, api.PromptEncoded) for event in heard))
    await until(lambda: door.capacity()[0].sessions == 1)
    door.post(api.Close("a"))
    await until(lambda: door.capacity()[0].pool_bytes_used == 0)
    await door.close()
    await door.close()


async def test_when_one_of_two_workers_dies_the_other_takes_its_sessions_over() -> None:
    workers = [remote(device=device) for device in named("cpu", workers=2, found=())]
    door = WorkerPool(tuple(workers))
    await door.start()
    heard: dict[str, list[api.Event]] = {"a": [], "b": []}
    for opened, name in enumerate("ab", 1):
        assert isinstance(await door.open(api.Open(name, "toy", 1), heard[name].append), api.Opened)
        await until(lambda opened=opened: sum(entry.sessions for entry in door.capacity()) >= opened)
    assert [entry.device for entry in door.capacity()] == ["cpu:0", "cpu:1"]

    def asked_for(session: str) -> int:
        return sum(isinstance(event, api.ChunkDue) for event in heard[session])

    victim, other = sorted(workers, key=lambda worker: worker.capacity()[0].sessions, reverse=True)
    before = asked_for("a") + asked_for("b")
    os.kill(victim.pid, signal.SIGKILL)
    await until(lambda: victim.deaths == 1)
    assert door.ready
    assert other.deaths == 0
    assert len(door.cards()) == 1
    await until(lambda: [entry.sessions for entry in other.capacity()] == [2])
    await until(lambda: asked_for("a") + asked_for("b") > before, within=20)
    assert not any(isinstance(event, api.Fault) for name in "ab" for event in heard[name])
    pids = [worker.pid for worker in workers]
    await door.close()
    assert not any(psutil.pid_exists(pid) for pid in pids)
